//! The crates of which the programs consist: the bill of materials in the format of CycloneDX, and
//! the licences of the crates.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::platform::Platform;

/// The package that contains the programs.
const PROGRAMS: &str = "pronto-cli";

/// The crates of the programs.
pub(super) struct BillOfMaterials {
    crates: Vec<BillEntry>,
}

/// One crate of the programs.
struct BillEntry {
    name: String,
    version: String,
    licence: String,
    /// The SHA-256 of the crate in the registry; `None` for a crate of this workspace.
    checksum: Option<String>,
    /// The directory with the source.
    folder: PathBuf,
    /// The indexes of the crates that this one uses.
    uses: Vec<String>,
}

impl BillEntry {
    fn identity(&self) -> String {
        format!("pkg:cargo/{}@{}", self.name, self.version)
    }
}

impl BillOfMaterials {
    /// Reads the crates from `cargo metadata` and `Cargo.lock`. Crates that only tests, macros
    /// or build scripts use are omitted.
    ///
    /// # Errors
    /// Fails if cargo fails.
    pub(super) fn read(root: &Path, platform: Platform) -> Result<Self, String> {
        let output = crate::cargo()
            .args(["metadata", "--format-version=1", "--locked"])
            .args(["--filter-platform", platform.triple])
            .current_dir(root)
            .output()
            .map_err(|error| format!("cannot run cargo metadata: {error}"))?;
        if !output.status.success() {
            let reason = String::from_utf8_lossy(&output.stderr);
            return Err(format!("cargo metadata failed: {reason}"));
        }
        let metadata = serde_json::from_slice(&output.stdout);
        let metadata: Value = metadata.map_err(|error| format!("cargo metadata: {error}"))?;
        let lock = std::fs::read_to_string(root.join("Cargo.lock"));
        let lock = lock.map_err(|error| format!("cannot read Cargo.lock: {error}"))?;
        Ok(Self::from_metadata(&metadata, &checksums(&lock)))
    }

    fn from_metadata(metadata: &Value, checksums: &BTreeMap<String, String>) -> Self {
        let nodes = by_id(&metadata["resolve"]["nodes"]);
        let packages = by_id(&metadata["packages"]);
        let is_root = |package: &&Value| package["name"] == PROGRAMS;
        let first = list(&metadata["packages"]).iter().find(is_root);
        let mut queue: VecDeque<&str> = first
            .map(|package| text(&package["id"]))
            .into_iter()
            .collect();
        let mut seen: BTreeSet<&str> = queue.iter().copied().collect();
        let mut crates = Vec::new();
        while let Some(id) = queue.pop_front() {
            let mut uses = nodes.get(id).map_or_else(Vec::new, |node| linked(node));
            uses.retain(|used| packages.get(used).is_some_and(|used| !is_macro(used)));
            for &used in &uses {
                if seen.insert(used) {
                    queue.push_back(used);
                }
            }
            let Some(package) = packages.get(id) else {
                continue;
            };
            let manifest = Path::new(text(&package["manifest_path"]));
            let (name, version) = (text(&package["name"]), text(&package["version"]));
            let used = uses.iter().filter_map(|used| packages.get(used));
            let mut uses: Vec<String> = used
                .map(|used| {
                    format!(
                        "pkg:cargo/{}@{}",
                        text(&used["name"]),
                        text(&used["version"])
                    )
                })
                .collect();
            uses.sort();
            crates.push(BillEntry {
                name: name.to_owned(),
                version: version.to_owned(),
                licence: text(&package["license"]).replace('/', " OR "),
                checksum: checksums.get(&format!("{name} {version}")).cloned(),
                folder: manifest.parent().unwrap_or(manifest).to_owned(),
                uses,
            });
        }
        crates.sort_by_key(BillEntry::identity);
        BillOfMaterials { crates }
    }

    /// Returns the bill in CycloneDX 1.5.
    ///
    /// # Errors
    /// Fails if `time` is not a time.
    pub(super) fn to_cyclonedx(&self, version: &str, time: u64) -> Result<String, String> {
        let seconds = i64::try_from(time).map_err(|error| error.to_string())?;
        let time = Timestamp::from_second(seconds).map_err(|error| error.to_string())?;
        let components: Vec<Value> = self.crates.iter().map(component).collect();
        let dependencies = self
            .crates
            .iter()
            .map(|entry| json!({ "ref": entry.identity(), "dependsOn": entry.uses }));
        let bill = json!({
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "version": 1,
            "metadata": {
                "timestamp": time.to_string(),
                "component": {
                    "type": "application",
                    "bom-ref": format!("pronto@{version}"),
                    "name": "pronto",
                    "version": version,
                    "licenses": [{ "expression": "MIT OR Apache-2.0" }],
                },
            },
            "components": components,
            "dependencies": dependencies.collect::<Vec<_>>(),
        });
        let text = serde_json::to_string_pretty(&bill).map_err(|error| error.to_string())?;
        Ok(text + "\n")
    }

    /// Returns the licences of the crates from registries. Each text appears once, below the names of
    /// its crates.
    ///
    /// # Errors
    /// Fails if a licence cannot be read.
    pub(super) fn licences(&self) -> Result<String, String> {
        let mut crates_by_text: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut page =
            "The programs contain the following crates, under these licences.\n\n".to_owned();
        for entry in self.crates.iter().filter(|entry| entry.checksum.is_some()) {
            let title = format!("{} {}", entry.name, entry.version);
            // Writing to a string does not fail.
            let _ = writeln!(page, "{title}: {}", entry.licence);
            for text in licence_texts(&entry.folder)? {
                crates_by_text.entry(text).or_default().push(title.clone());
            }
        }
        let mut texts: Vec<(Vec<String>, String)> = crates_by_text
            .into_iter()
            .map(|(text, crates)| (crates, text))
            .collect();
        texts.sort();
        for (crates, text) in texts {
            let rule = "=".repeat(72);
            let _ = write!(
                page,
                "\n{rule}\n{}\n{rule}\n\n{}\n",
                crates.join("\n"),
                text.trim_end()
            );
        }
        Ok(page)
    }
}

fn component(entry: &BillEntry) -> Value {
    let mut component = json!({
        "type": "library",
        "bom-ref": entry.identity(),
        "name": entry.name,
        "version": entry.version,
        "licenses": [{ "expression": entry.licence }],
    });
    if let Some(checksum) = &entry.checksum {
        component["purl"] = json!(entry.identity());
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    component
}

/// Returns the ids of the packages that are linked into the package `node`.
fn linked(node: &Value) -> Vec<&str> {
    let is_linked = |edge: &&Value| {
        let kinds = list(&edge["dep_kinds"]);
        kinds.iter().any(|kind| kind["kind"].is_null())
    };
    let edges = list(&node["deps"]).iter().filter(is_linked);
    edges.map(|edge| text(&edge["pkg"])).collect()
}

/// Returns whether a package runs in the compiler.
fn is_macro(package: &Value) -> bool {
    let mut kinds = list(&package["targets"])
        .iter()
        .flat_map(|target| list(&target["kind"]));
    kinds.any(|kind| kind == "proc-macro")
}

fn by_id(values: &Value) -> BTreeMap<&str, &Value> {
    list(values)
        .iter()
        .map(|value| (text(&value["id"]), value))
        .collect()
}

/// Returns the texts of the licences in the directory of a crate.
fn licence_texts(folder: &Path) -> Result<BTreeSet<String>, String> {
    const NAMES: &[&str] = &[
        "LICENSE",
        "LICENCE",
        "COPYING",
        "COPYRIGHT",
        "NOTICE",
        "UNLICENSE",
    ];
    let failed = |error| format!("cannot read {}: {error}", folder.display());
    let mut texts = BTreeSet::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .to_uppercase();
        if path.is_file() && NAMES.iter().any(|known| name.starts_with(known)) {
            let bytes = std::fs::read(&path).map_err(failed)?;
            texts.insert(String::from_utf8_lossy(&bytes).replace('\r', ""));
        }
    }
    Ok(texts)
}

/// Returns the checksums in `Cargo.lock`, by name and version.
fn checksums(lock: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for part in lock.split("[[package]]") {
        let field = |name: &str| {
            let line = part
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \""));
            line.and_then(|value| value.strip_suffix('"'))
        };
        if let (Some(name), Some(version), Some(checksum)) =
            (field("name"), field("version"), field("checksum"))
        {
            found.insert(format!("{name} {version}"), checksum.to_owned());
        }
    }
    found
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bill_lists_what_is_linked() {
        let root = crate::root();
        let platform = Platform::named("x86_64-unknown-linux-gnu").expect("it is known");
        let bill = BillOfMaterials::read(&root, platform).expect("cargo knows them");
        let names: BTreeSet<&str> = bill
            .crates
            .iter()
            .map(|entry| entry.name.as_str())
            .collect();
        for name in ["pronto-cli", "pronto-server", "clap", "rustls", "tokio"] {
            assert!(names.contains(name), "{name}");
        }
        for name in [
            "test-support",
            "libfuzzer-sys",
            "libtest-mimic",
            "serde_derive",
        ] {
            assert!(!names.contains(name), "{name}");
        }
        let text = bill.to_cyclonedx("1.2.3", 1_700_000_000).expect("a time");
        let value: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value["metadata"]["timestamp"], "2023-11-14T22:13:20Z");
        for component in list(&value["components"]) {
            let name = text_of(&component["name"]);
            assert_ne!(component["licenses"][0]["expression"], "", "{name}");
            let is_own = name == "pronto" || name.starts_with("pronto-");
            assert_eq!(component["hashes"].is_null(), is_own, "{name}");
        }
    }

    fn text_of(value: &Value) -> String {
        text(value).to_owned()
    }

    #[test]
    fn checksums_are_read_from_the_lock_file() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"ab\"\n\n\
                    [[package]]\nname = \"own\"\nversion = \"0.1.0\"\n";
        let found = checksums(lock);
        assert_eq!(found.get("a 1.0.0").map(String::as_str), Some("ab"));
        assert_eq!(found.len(), 1);
    }
}

//! The parts of packages that can be checked without installing them.

use std::collections::BTreeMap;
use std::io::Read as _;

use flate2::read::GzDecoder;

use super::tree::PackageEntry;
use super::*;

fn parts(root: &Path) -> PackageParts<'_> {
    PackageParts {
        root,
        platform: Platform::named("x86_64-unknown-linux-gnu").expect("it is known"),
        version: "1.2.3".to_owned(),
        time: 1_700_000_000,
        pronto: b"pronto".to_vec(),
        server: b"the server".to_vec(),
        licences: "licences\n".to_owned(),
    }
}

/// An entry of an archive: type, mode, owner, time and content or target.
type Archived = (tar::EntryType, u32, u64, u64, Vec<u8>);

fn unpacked(archive: &[u8]) -> BTreeMap<String, Archived> {
    let mut archive = tar::Archive::new(archive);
    let entries = archive.entries().expect("an archive");
    let read = entries.map(|entry| {
        let mut entry = entry.expect("an entry");
        let header = entry.header();
        let path = String::from_utf8(header.path_bytes().into_owned()).expect("text");
        let (kind, mode) = (header.entry_type(), header.mode().expect("a mode"));
        let (owner, time) = (
            header.uid().expect("a user"),
            header.mtime().expect("a time"),
        );
        let mut content = header.link_name_bytes().unwrap_or_default().into_owned();
        entry.read_to_end(&mut content).expect("content");
        (path, (kind, mode, owner, time, content))
    });
    read.collect()
}

fn inflated(content: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    GzDecoder::new(content)
        .read_to_end(&mut text)
        .expect("gzip");
    text
}

/// Returns the members of an `ar` archive.
fn members(mut archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
    archive = archive
        .strip_prefix(b"!<arch>\n")
        .expect("the magic number");
    let mut found = BTreeMap::new();
    while !archive.is_empty() {
        let header = std::str::from_utf8(&archive[..60]).expect("a header");
        assert!(header.ends_with("`\n"), "{header:?}");
        let length: usize = header[48..58].trim().parse().expect("a length");
        found.insert(
            header[..16].trim().to_owned(),
            archive[60..60 + length].to_vec(),
        );
        archive = &archive[60 + length + length % 2..];
    }
    found
}

#[test]
fn a_debian_package_has_its_parts() {
    let root = crate::root();
    let members = members(&deb::build(&parts(&root)).expect("it is made"));
    assert_eq!(members["debian-binary"], b"2.0\n");
    let control = unpacked(&inflated(&members["control.tar.gz"]));
    let text = String::from_utf8(control["./control"].4.clone()).expect("text");
    for line in [
        "Package: pronto",
        "Version: 1.2.3",
        "Architecture: amd64",
        "Section: vcs",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    // The programs of this test are no dynamic programs.
    assert!(!text.contains("Depends:"), "{text}");
    assert_eq!(control["./postinst"].1, 0o755);
    let data = unpacked(&inflated(&members["data.tar.gz"]));
    for (path, mode) in [
        ("./usr/bin/pronto", 0o755),
        ("./usr/libexec/pronto/pronto-server", 0o755),
        ("./usr/share/man/man1/pronto-clone.1.gz", 0o644),
        ("./usr/share/bash-completion/completions/pronto", 0o644),
        ("./usr/share/zsh/vendor-completions/_pronto", 0o644),
        ("./usr/share/fish/vendor_completions.d/pronto.fish", 0o644),
        ("./usr/share/doc/pronto/copyright", 0o644),
        ("./usr/share/doc/pronto/changelog.gz", 0o644),
        ("./usr/share/doc/pronto/metrics/alerts.yml", 0o644),
        ("./usr/", 0o755),
    ] {
        let (_, found, owner, time, _) = data.get(path).unwrap_or_else(|| panic!("{path}"));
        assert_eq!((*found, *owner, *time), (mode, 0, 1_700_000_000), "{path}");
    }
    assert!(!data.contains_key("./usr/bin/git"));
    assert_eq!(data["./usr/lib/pronto/bin/git"].4, b"../../../bin/pronto");
    let unit = &data["./usr/lib/systemd/system/pronto-server.service"].4;
    let unit = String::from_utf8_lossy(unit);
    assert!(
        unit.contains("\nExecStart=/usr/bin/pronto serve "),
        "{unit}"
    );
    assert!(!unit.contains("/usr/local"), "{unit}");
    let sums = String::from_utf8_lossy(&control["./md5sums"].4).into_owned();
    let files = data.values().filter(|entry| entry.0.is_file()).count();
    assert_eq!(sums.lines().count(), files);
    assert!(
        sums.contains("f01717dd7a00f8c70a26663066af51fb  usr/bin/pronto\n"),
        "{sums}"
    );
}

#[test]
fn a_dynamic_program_depends_on_its_library() {
    let root = crate::root();
    let mut parts = parts(&root);
    let own = std::env::current_exe().expect("it has a path");
    parts.server = std::fs::read(own).expect("it is there");
    let text = deb::control_file(&PackageTree::default(), &parts);
    assert!(text.contains("Depends: libc6 (>= 2."), "{text}");
}

#[test]
fn a_tree_can_be_unpacked_below_any_prefix() {
    let root = crate::root();
    let parts = parts(&root);
    let tree = plain(&parts).expect("it is made");
    let archive = unpacked(&tree.to_tar(&parts.name(), parts.time).expect("short names"));
    let top = "pronto-1.2.3-x86_64-linux/";
    assert!(archive.keys().all(|path| path.starts_with(top)));
    let below: std::collections::BTreeSet<&str> = archive
        .keys()
        .filter_map(|path| {
            path[top.len()..]
                .split('/')
                .next()
                .filter(|name| !name.is_empty())
        })
        .collect();
    assert_eq!(
        below.into_iter().collect::<Vec<_>>(),
        ["bin", "lib", "libexec", "share"]
    );
    assert!(archive.contains_key(&format!("{top}share/zsh/site-functions/_pronto")));
}

#[test]
fn an_image_refers_to_its_blobs() {
    let root = crate::root();
    let parts = parts(&root);
    let base = PackageTree::default().to_tar(".", 0).expect("an archive");
    let image = unpacked(&image::build(&parts, &base).expect("it is made"));
    let json =
        |path: &str| -> serde_json::Value { serde_json::from_slice(&image[path].4).expect("JSON") };
    let blob = |entry: &serde_json::Value| {
        let digest = entry["digest"].as_str().expect("a digest");
        let path = format!("./blobs/{}", digest.replace(':', "/"));
        let content = &image[&path].4;
        assert_eq!(digest, format!("sha256:{}", sha256(content)));
        assert_eq!(entry["size"], content.len());
        path
    };
    let manifest = json(&blob(&json("./index.json")["manifests"][0]));
    let config = json(&blob(&manifest["config"]));
    assert_eq!(config["config"]["Entrypoint"][0], "/usr/local/bin/pronto");
    let layers = manifest["layers"].as_array().expect("layers");
    for (at, layer) in layers.iter().enumerate() {
        let content = inflated(&image[&blob(layer)].4);
        assert_eq!(
            config["rootfs"]["diff_ids"][at],
            format!("sha256:{}", sha256(&content))
        );
    }
    assert_eq!(layers.len(), 2);
    let container =
        std::fs::read_to_string(root.join("contrib/Containerfile")).expect("it is there");
    for words in ["Entrypoint", "Cmd"] {
        let words = config["config"][words].to_string().replace(',', ", ");
        assert!(
            container.contains(&words),
            "{words} is not in contrib/Containerfile"
        );
    }
}

#[test]
fn packages_are_the_same_each_time() {
    let root = crate::root();
    let parts = parts(&root);
    let bill = BillOfMaterials::read(&root, parts.platform).expect("cargo knows them");
    let (one, two) = (packages(&parts, &bill), packages(&parts, &bill));
    let (one, two) = (one.expect("they are made"), two.expect("they are made"));
    let bytes = |tree: &PackageTree| -> Vec<(String, String)> {
        let files = tree.entries().map(|(name, entry)| match entry {
            PackageEntry::File(content, _) => (name.to_owned(), sha256(content)),
            PackageEntry::Link(target) => (name.to_owned(), target.clone()),
        });
        files.collect()
    };
    assert_eq!(bytes(&one), bytes(&two));
    let scratch = tempfile::tempdir().expect("a directory");
    std::fs::write(scratch.path().join("pronto_1.0.0_amd64.deb"), "old").expect("it is ours");
    let written = write(&one, scratch.path()).expect("it is ours");
    let sums = std::fs::read_to_string(scratch.path().join(SUMS)).expect("it was written");
    assert_eq!(sums.lines().count() + 1, written.len());
    assert!(!scratch.path().join("pronto_1.0.0_amd64.deb").exists());
    for line in sums.lines() {
        let (sum, name) = line.split_once("  ").expect("two words");
        let content = std::fs::read(scratch.path().join(name)).expect("it was written");
        assert_eq!(sum, sha256(&content), "{name}");
    }
}

#[test]
fn published_crates_have_their_licences_and_others_are_private() {
    let root = crate::root();
    let mut folders = vec![
        "bench",
        "bench/counter",
        "bench/slowfs",
        "fuzz",
        "xtask",
        "xtask/docs",
    ]
    .into_iter()
    .map(|name| root.join(name))
    .collect::<Vec<_>>();
    let crates = std::fs::read_dir(root.join("crates")).expect("it is there");
    folders.extend(crates.map(|entry| entry.expect("an entry").path()));
    for folder in folders {
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        let name = folder.file_name().expect("it has one").to_string_lossy();
        if !name.starts_with("pronto") {
            assert!(manifest.contains("\npublish = false\n"), "{name}");
            continue;
        }
        assert!(!manifest.contains("publish"), "{name}");
        for field in ["license", "readme", "keywords", "categories", "exclude"] {
            assert!(
                manifest.contains(&format!("\n{field}.workspace = true\n")),
                "{name}"
            );
        }
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            assert!(folder.join(licence).is_file(), "{name} lacks {licence}");
        }
    }
}

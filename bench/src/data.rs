//! Test data: any repository by path, trees of Debian's packages, or a generated history of any
//! size.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A bare repository to measure on.
pub(crate) struct BenchRepository {
    pub(crate) path: PathBuf,
    pub(crate) name: String,
    /// The two commits to check out: an older one and a newer one.
    pub(crate) older: String,
    pub(crate) newer: String,
}

/// Returns the repository that `wanted` names, and creates it if necessary; see `--repository`.
pub(crate) fn prepare(wanted: &str, data: &Path) -> Result<BenchRepository, String> {
    let (path, name) = if wanted == "linux" {
        (linux(data)?, "linux".to_owned())
    } else if let Some(shape) = wanted.strip_prefix("synthetic:") {
        (
            synthetic(shape, data)?,
            format!("synthetic-{}", shape.replace(':', "-")),
        )
    } else {
        let path = PathBuf::from(wanted)
            .canonicalize()
            .map_err(|error| format!("cannot find repository '{wanted}': {error}"))?;
        let parent = |path: &Path| path.file_stem().map(|s| s.to_string_lossy().into_owned());
        let name = parent(&path).unwrap_or_else(|| "repository".to_owned());
        (path, name)
    };
    let (older, newer) = revisions(&path)?;
    Ok(BenchRepository {
        path,
        name,
        older,
        newer,
    })
}

/// Returns the commit at `HEAD`, and an ancestor at about a tenth of the history before it (or the
/// root).
fn revisions(path: &Path) -> Result<(String, String), String> {
    let count: usize = git(path, &["rev-list", "--first-parent", "--count", "HEAD"])?
        .parse()
        .map_err(|_| "cannot count commits".to_owned())?;
    let back = (count / 10).clamp(1, 1000).min(count.saturating_sub(1));
    let older = git(path, &["rev-parse", &format!("HEAD~{back}")])?;
    Ok((older, git(path, &["rev-parse", "HEAD"])?))
}

pub(crate) fn git(directory: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(directory)
        .args(arguments)
        .output()
        .map_err(|error| format!("cannot run git: {error}"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(format!(
            "git {} failed: {}",
            arguments.join(" "),
            stderr.trim()
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Creates two commits with the trees of Debian's `linux-source-6.1` and `linux-source-6.12`.
fn linux(data: &Path) -> Result<PathBuf, String> {
    let target = data.join("linux.git");
    if target.exists() {
        return Ok(target);
    }
    let sources = ["6.1", "6.12"].map(|v| {
        (
            v,
            PathBuf::from(format!("/usr/src/linux-source-{v}.tar.xz")),
        )
    });
    if let Some((_, missing)) = sources.iter().find(|(_, path)| !path.exists()) {
        let package = missing
            .file_name()
            .map(|name| name.to_string_lossy().replace(".tar.xz", ""));
        return Err(format!(
            "{} is missing: apt-get install {}",
            missing.display(),
            package.unwrap_or_default()
        ));
    }
    let work = data.join("linux-work");
    let _ = std::fs::remove_dir_all(&work);
    let script = r#"set -e
git init -q -b main "$1" && cd "$1" && git config gc.auto 0
git config user.name bench && git config user.email bench@example.com
for version in 6.1 6.12; do
    git ls-files -z | xargs -0 -r rm -f
    tar xf "/usr/src/linux-source-$version.tar.xz" --strip-components=1
    # Debian ignores everything at the top, so that no status would list anything.
    sed -i '/^# Debian packaging/,$d' .gitignore
    git add -A -f . && git commit -q -m "v$version" && git tag "v$version"
done
git clone -q --bare --no-local . "$2.tmp" && git -C "$2.tmp" repack -adfq
mv "$2.tmp" "$2" && rm -rf "$1""#;
    let status = Command::new("sh")
        .args(["-c", script, "sh"])
        .args([&work, &target])
        .stdout(Stdio::null())
        .status()
        .map_err(|error| error.to_string())?;
    if status.success() {
        Ok(target)
    } else {
        Err("cannot make the linux repository".to_owned())
    }
}

/// Creates the history `COMMITS:FILES:SEED`: text files in nested directories. Each commit changes
/// some of the files.
fn synthetic(shape: &str, data: &Path) -> Result<PathBuf, String> {
    let numbers: Vec<u64> = shape
        .split(':')
        .filter_map(|part| part.parse().ok())
        .collect();
    let [commits, files, seed] = numbers[..] else {
        return Err(format!(
            "'synthetic:{shape}' is not synthetic:COMMITS:FILES:SEED"
        ));
    };
    let target = data.join(format!("synthetic-{commits}-{files}-{seed}.git"));
    if target.exists() {
        return Ok(target);
    }
    let making = target.with_extension("tmp");
    let _ = std::fs::remove_dir_all(&making);
    let making_text = making.to_string_lossy();
    git(data, &["init", "-q", "--bare", "-b", "main", &making_text])?;
    let mut import = Command::new("git")
        .arg("-C")
        .arg(&making)
        .args(["fast-import", "--quiet"])
        .stdin(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let stdin = import.stdin.take().ok_or("git fast-import has no input")?;
    write_history(&mut BufWriter::new(stdin), commits, files, seed)
        .map_err(|error| format!("cannot feed git fast-import: {error}"))?;
    if !import.wait().map_err(|error| error.to_string())?.success() {
        return Err("git fast-import failed".to_owned());
    }
    git(&making, &["repack", "-adfq"])?;
    std::fs::rename(&making, &target).map_err(|error| error.to_string())?;
    Ok(target)
}

fn write_history(out: &mut dyn Write, commits: u64, files: u64, seed: u64) -> std::io::Result<()> {
    let mut random = Xorshift::new(seed);
    for commit in 0..commits {
        let message = format!("commit {commit}\n");
        let time = 1_600_000_000 + commit * 60;
        write!(
            out,
            "commit refs/heads/main\ncommitter B <b@example.com> {time} +0000\n"
        )?;
        write!(out, "data {}\n{message}", message.len())?;
        let changed = if commit == 0 {
            files
        } else {
            1 + random.below(files.div_ceil(100))
        };
        for step in 0..changed {
            let file = if commit == 0 {
                step
            } else {
                random.below(files)
            };
            let text = text_of(file, commit, &mut random);
            let (outer, inner) = (file % 31, file % 307);
            writeln!(out, "M 100644 inline src{outer}/part{inner}/file{file}.txt")?;
            write!(out, "data {}\n{text}\n", text.len())?;
        }
    }
    writeln!(out, "done")
}

/// Returns the text of a file. Versions of a file share most lines, so that deltas are effective.
fn text_of(file: u64, commit: u64, random: &mut Xorshift) -> String {
    let mut stable = Xorshift(file.wrapping_mul(0xd134_2543_de82_ef95) | 1);
    let lines = 10 + stable.below(200);
    let edited = random.below(lines);
    let mut text = String::new();
    for line in 0..lines {
        let word = stable.below(1 << 40);
        let mark = if line == edited { commit } else { 0 };
        text.push_str(&format!("line {line} of file {file}: {word:x} {mark}\n"));
    }
    text
}

/// The xorshift generator, which gives the same numbers on every machine.
pub(crate) struct Xorshift(u64);

impl Xorshift {
    pub(crate) fn new(seed: u64) -> Self {
        Xorshift(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound.max(1)
    }
}

//! `cargo xtask reference-git`: builds the reference git, with which pronto is compared, and its
//! test helpers.
//!
//! The source is that of the newest git in Debian's suite sid, or the tree of `--source`. Each
//! release has a directory in the user's cache (`pronto/reference-git/VERSION`): `bin` and
//! `libexec` are the installed programs, and `source` is the tree with Git's own tests. The file
//! `complete` is written last.

mod debian;
mod needs;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use test_support::git::{self, COMPLETE};

/// The variables of `make` that this build sets besides `prefix`.
///
/// Links instead of copies keep the directory small. Tk and debug information are not needed.
const VARIABLES: [&str; 4] = [
    "CFLAGS=-O2",
    "INSTALL_SYMLINKS=1",
    "NO_INSTALL_HARDLINKS=1",
    "NO_TCLTK=1",
];

/// The number of lines of a failed build that are printed.
const LAST_LINES: usize = 20;

/// The parsed arguments.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    /// Whether only the path of the program is printed, without a build (`--print`).
    print: bool,
    /// Whether a newer release is searched although one is built (`--update`).
    update: bool,
    /// The source tree of git that is used instead of Debian's (`--source`).
    source: Option<PathBuf>,
}

/// Builds the reference git if it is missing, and prints its path. Returns the problems.
pub(crate) fn run(arguments: &[&str]) -> Vec<String> {
    let result = Options::parse(arguments).and_then(|options| provide(&options));
    match result {
        Ok(program) => {
            println!("{}", program.display());
            Vec::new()
        }
        Err(problem) => vec![format!("reference-git: {problem}")],
    }
}

/// Returns the directory of the newest release that is built.
///
/// # Errors
/// Fails if no release is built.
pub(crate) fn directory() -> Result<PathBuf, String> {
    git::built().ok_or_else(|| {
        "the reference git is not built: 'cargo xtask reference-git' builds it".to_owned()
    })
}

impl Options {
    fn parse(arguments: &[&str]) -> Result<Self, String> {
        let mut options = Options::default();
        let mut arguments = arguments.iter();
        while let Some(&argument) = arguments.next() {
            match argument {
                "--print" => options.print = true,
                "--update" => options.update = true,
                "--source" => {
                    let path = arguments.next().ok_or("--source needs a directory")?;
                    options.source = Some(PathBuf::from(path));
                }
                other => return Err(format!("unknown argument '{other}'")),
            }
        }
        Ok(options)
    }
}

/// Returns the path of the program, after building it if necessary.
fn provide(options: &Options) -> Result<PathBuf, String> {
    let program = |directory: PathBuf| directory.join("bin/git");
    if options.print {
        return directory().map(program);
    }
    let cache = git::cache().ok_or("neither XDG_CACHE_HOME nor HOME is set")?;
    let _lock = lock(&cache)?;
    let keep = !options.update && options.source.is_none();
    if let Some(built) = git::built().filter(|_| keep) {
        return Ok(program(built));
    }
    needs::check(options.source.is_none())?;
    match &options.source {
        Some(tree) => build(tree, &cache),
        None => {
            let tree = debian::source(&cache)?;
            build(&tree.path(), &cache)
        }
    }
    .map(program)
}

/// Waits for the lock that allows one build at a time.
fn lock(cache: &Path) -> Result<File, String> {
    std::fs::create_dir_all(cache)
        .map_err(|error| format!("cannot create '{}': {error}", cache.display()))?;
    let path = cache.join("lock");
    let locked = || {
        let file = File::create(&path)?;
        if file.try_lock().is_err() {
            eprintln!("waiting for another process that builds the reference git");
            file.lock()?;
        }
        Ok::<_, std::io::Error>(file)
    };
    locked().map_err(|error| format!("cannot lock '{}': {error}", path.display()))
}

/// Builds the git of `tree` in the cache and returns its directory. Does not build a release that
/// is in the cache.
fn build(tree: &Path, cache: &Path) -> Result<PathBuf, String> {
    let version = version(tree)?;
    let directory = cache.join(&version);
    if directory.join(COMPLETE).is_file() {
        eprintln!("git {version} is built");
        return Ok(directory);
    }
    eprintln!(
        "building git {version} and its test helpers in '{}': four minutes on two processors",
        directory.display()
    );
    let began = Instant::now();
    if directory.exists() {
        std::fs::remove_dir_all(&directory)
            .map_err(|error| format!("cannot remove '{}': {error}", directory.display()))?;
    }
    let source = directory.join("source");
    std::fs::create_dir_all(&source)
        .map_err(|error| format!("cannot create '{}': {error}", source.display()))?;
    succeed(
        Command::new("cp")
            .arg("-a")
            .arg(tree.join("."))
            .arg(&source),
    )?;
    make(&directory, "all")?;
    make(&directory, "install")?;
    let complete = directory.join(COMPLETE);
    std::fs::write(&complete, format!("{version}\n"))
        .map_err(|error| format!("cannot write '{}': {error}", complete.display()))?;
    eprintln!("built git {version} in {} s", began.elapsed().as_secs());
    Ok(directory)
}

/// Returns the version in the version script of a source tree.
fn version(tree: &Path) -> Result<String, String> {
    let path = tree.join("GIT-VERSION-GEN");
    let text = std::fs::read_to_string(&path)
        .map_err(|error| format!("no source of git: '{}': {error}", path.display()))?;
    let mut lines = text.lines();
    let stated = lines.find_map(|line| line.strip_prefix("DEF_VER=v"));
    let is_plain = |version: &&str| {
        version.starts_with(|first: char| first.is_ascii_digit())
            && version
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-')
    };
    let version = stated.map(str::trim).filter(is_plain);
    let version = version.ok_or_else(|| format!("'{}' states no version", path.display()))?;
    Ok(version.to_owned())
}

/// Runs `make TARGET` in the source of `directory`, and writes its output to a file.
fn make(directory: &Path, target: &str) -> Result<(), String> {
    let log = directory.join("build.log");
    let failed = |error| format!("cannot write '{}': {error}", log.display());
    let open = || {
        let output = File::options().create(true).append(true).open(&log)?;
        Ok::<_, std::io::Error>((output.try_clone()?, output))
    };
    let (output, errors) = open().map_err(failed)?;
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let mut command = Command::new("make");
    command
        .arg(format!("-j{jobs}"))
        .arg(format!("prefix={}", directory.display()))
        .args(VARIABLES)
        .arg(target)
        .current_dir(directory.join("source"))
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors);
    // A part of git is written in Rust, and must not be built into the target directory of pronto.
    for (name, _) in std::env::vars_os() {
        let name_text = name.to_string_lossy();
        let is_for_cargo = name_text.starts_with("CARGO_") && name_text != "CARGO_HOME";
        if is_for_cargo || name_text.starts_with("RUSTFLAGS") || name_text.starts_with("MAKE") {
            command.env_remove(&name);
        }
    }
    succeed(&mut command).map_err(|problem| {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
        format!("{last}\n{problem}; all output is in '{}'", log.display())
    })
}

/// Runs a command and fails if it does not succeed.
fn succeed(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command
        .status()
        .map_err(|error| format!("cannot run '{program}': {error}"))?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("'{program}' failed with {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_states_its_version() {
        let scratch = test_support::Scratch::new();
        let path = scratch.path().join("GIT-VERSION-GEN");
        std::fs::write(&path, "#!/bin/sh\n\nDEF_VER=v2.55.0-rc1\nLF='\n'\n").expect("written");
        assert_eq!(version(scratch.path()), Ok("2.55.0-rc1".to_owned()));
        for wrong in ["DEF_VER=v../../x\n", "DEF_VER=v\n", "echo 1\n"] {
            std::fs::write(&path, wrong).expect("written");
            assert!(version(scratch.path()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn arguments_are_checked() {
        assert_eq!(Options::parse(&[]), Ok(Options::default()));
        let given = Options::parse(&["--source", "tree", "--print"]).expect("well formed");
        assert_eq!(given.source, Some("tree".into()));
        assert!(given.print);
        assert!(Options::parse(&["--source"]).is_err() && Options::parse(&["x"]).is_err());
    }
}

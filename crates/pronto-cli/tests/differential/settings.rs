//! The generated class `settings`: malformed and well-formed values of every setting that commands
//! check when they start, for each native command and each configuration scope.
//!
//! Git 2.55 and pronto must agree whether the command ends because of the value, and if so, on the
//! exit code and the messages. A sample runs by default. `PRONTO_TEST_SETTINGS=all` runs every
//! combination, and a number in that variable selects another sample.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use libtest_mimic::{Failed, Trial};
use pronto_cli::settings::{ADVICE, COLORS, KEYS_OF_EACH, TYPED_KEYS, TypedKey, readers_of};
use test_support::{Random, git, may_skip, report_missing_reference};

/// The variable that selects the combinations.
const VARIABLE: &str = "PRONTO_TEST_SETTINGS";

/// The number of combinations of each call in the sample.
const SAMPLE: usize = 20;

/// The calls. Each can be repeated, and succeeds without a malformed setting.
const CALLS: &[&str] = &[
    "add a",
    "archive HEAD",
    "bundle list-heads ../b.bundle",
    "cat-file -p HEAD",
    "check-attr -a a",
    "check-ignore ignored",
    "checkout",
    "checkout -- d/b",
    "checkout-index -f d/b",
    "clean -n",
    "commit -q --allow-empty -m m",
    "commit-graph verify",
    "commit-graph write",
    "config get user.name",
    "diff-files",
    "diff-index HEAD",
    "diff-tree HEAD",
    "fetch",
    "fetch-pack ../o.git main",
    "hash-object a",
    "index-pack ../p.pack",
    "init -q",
    "ls-files",
    "ls-remote ../o.git",
    "ls-tree HEAD",
    "merge-file -p a d/b d/b",
    "multi-pack-index write",
    "pack-objects --stdout",
    "prune",
    "prune-packed",
    "push -q origin main",
    "read-tree HEAD",
    "receive-pack ../o.git",
    "reflog expire --all",
    "reflog list",
    "refs exists HEAD",
    "refs optimize",
    "remote",
    "remote get-url origin",
    "repack -q",
    "reset -q",
    "restore d/b",
    "rev-list HEAD",
    "rev-parse HEAD",
    "send-pack ../o.git main:main",
    "show-ref",
    "sparse-checkout list",
    "status",
    "switch -q main",
    "symbolic-ref HEAD",
    "unpack-objects -q",
    "update-index --refresh -q",
    "upload-pack ../o.git",
    "verify-pack ../p.pack",
    "worktree list",
    "worktree prune",
    "write-tree",
];

/// Settings that are not compared. git prints additional warnings about some, and filters are read
/// when a file is converted, which depends on timing.
const NOT_COMPARED: &[&str] = &["core.fsync", "filter."];

/// The values; `None` is a key without a value.
const VALUES: &[Option<&str>] = &[
    None,
    Some(""),
    Some("true"),
    Some("1"),
    Some("bogus"),
    Some("1q"),
    Some("99999999999999999999"),
];

/// The configuration scope of an entry.
#[derive(Clone, Copy, Debug)]
enum Level {
    Option,
    Local,
    Global,
    Included,
}

const LEVELS: &[Level] = &[Level::Option, Level::Local, Level::Global, Level::Included];

/// A setting, a value and a scope.
#[derive(Clone, Debug)]
struct Combination {
    key: String,
    value: Option<&'static str>,
    level: Level,
}

/// Returns a trial for each call.
pub(crate) fn trials() -> Vec<Trial> {
    let reference = git::reference();
    if reference.is_none() && may_skip() {
        report_missing_reference(&"the class 'settings'");
    }
    let trial = |call: &'static str| {
        let name = format!("settings: {call}");
        let run = move || compare(call).map_err(Failed::from);
        Trial::test(name, run).with_ignored_flag(reference.is_none() && may_skip())
    };
    CALLS.iter().copied().map(trial).collect()
}

/// Runs `call` with the selected combinations, and compares the results.
fn compare(call: &'static str) -> Result<(), String> {
    let reference = git::reference().ok_or("git 2.55 is missing, and CI may not skip a case")?;
    let base = tempfile::Builder::new()
        .prefix("pronto-settings-")
        .tempdir()
        .expect("a directory");
    let base = base.path().canonicalize().expect("it exists");
    let sides = [
        Side::new(&base, "git", reference),
        Side::new(&base, "pronto", Path::new(env!("CARGO_BIN_EXE_pronto"))),
    ];
    let usual = sides.each_ref().map(|side| side.run(call, None));
    let mut report = String::new();
    for combination in combinations(call) {
        let [expected, actual] = [0, 1].map(|at| {
            let outcome = sides[at].run(call, Some(&combination));
            outcome.verdict(&combination, &usual[at])
        });
        if expected != actual && !actual.contains("PRONTO_NO_FALLBACK") {
            report += &format!("{combination:?}\n- {expected}\n+ {actual}\n");
        }
    }
    match report.is_empty() {
        true => Ok(()),
        false => Err(report),
    }
}

/// Returns the combinations for `call`. Of two keys, the command reads one.
fn combinations(call: &str) -> Vec<Combination> {
    let mut words = call.split(' ');
    let command = words.next().unwrap_or_default();
    let arguments: Vec<_> = words.map(Into::into).collect();
    let readers = readers_of(command, &arguments);
    let (read, other): (Vec<_>, Vec<_>) = keys()
        .into_iter()
        .partition(|(_, row)| row.is_none_or(|row| row.readers.meet(readers)));
    let names = |keys: Vec<(String, Option<&TypedKey>)>| -> Vec<String> {
        keys.into_iter().map(|(name, _)| name).collect()
    };
    let (read, other) = (names(read), names(other));
    let choice = std::env::var(VARIABLE).unwrap_or_default();
    if choice == "all" {
        let keys = read.iter().chain(&other);
        return keys.flat_map(|key| all_of(key)).collect();
    }
    let seed: u64 = choice.parse().unwrap_or_default();
    let mut random = Random::new(u64::from(crc32fast::hash(call.as_bytes())) ^ (seed << 32));
    (0..SAMPLE)
        .map(|number| {
            let keys = if number % 2 == 0 || other.is_empty() {
                &read
            } else {
                &other
            };
            Combination {
                key: random.one_of(keys).clone(),
                value: *random.one_of(VALUES),
                level: *random.one_of(LEVELS),
            }
        })
        .collect()
}

fn all_of(key: &str) -> impl Iterator<Item = Combination> {
    let combinations = VALUES
        .iter()
        .flat_map(|&value| LEVELS.iter().map(move |&level| (value, level)));
    combinations.map(move |(value, level)| Combination {
        key: key.to_owned(),
        value,
        level,
    })
}

/// Returns all keys with their rows, if any.
fn keys() -> Vec<(String, Option<&'static TypedKey>)> {
    let plain = TYPED_KEYS
        .iter()
        .map(|row| (row.name.to_owned(), Some(row)));
    let each = KEYS_OF_EACH.iter().map(|row| {
        let (section, variable) = row.name.split_once('.').expect("a section");
        (format!("{section}.Zz.{variable}"), Some(row))
    });
    let advice = ADVICE.iter().map(|name| (format!("advice.{name}"), None));
    let colors = COLORS.iter().flat_map(|colors| {
        let (section, subsection) = colors.prefixes[0];
        let slots = colors.slots.iter();
        slots.map(move |slot| (format!("{section}.{subsection}.{slot}"), None))
    });
    let all = plain.chain(each).chain(advice).chain(colors);
    let is_compared = |name: &str| !NOT_COMPARED.iter().any(|start| name.starts_with(start));
    all.filter(|(name, _)| is_compared(name)).collect()
}

/// The result of a call that does not end because of the value.
const AS_USUAL: &str = "as usual";

/// One of the two programs, with its own repositories.
struct Side {
    top: PathBuf,
    program: PathBuf,
}

/// The result of a call.
struct Outcome {
    code: Option<i32>,
    stderr: String,
}

impl Outcome {
    /// Returns the result of the call if `combination` changed it. `usual` is the result without
    /// the setting.
    fn verdict(&self, combination: &Combination, usual: &Outcome) -> String {
        let key = combination.key.to_ascii_lowercase();
        let variable = key.rsplit('.').next().unwrap_or_default();
        let is_usual = self.code == usual.code && self.stderr == usual.stderr;
        let is_about = self.stderr.to_ascii_lowercase().contains(variable)
            || self.stderr.contains("zlib compression level")
            || self.stderr.contains("pack compression level");
        match self.code {
            _ if is_usual => AS_USUAL.into(),
            _ if self.stderr.contains("PRONTO_NO_FALLBACK") => self.stderr.clone(),
            Some(128) if is_about => format!("128: {}", up_to_the_end(&self.stderr)),
            _ => AS_USUAL.into(),
        }
    }
}

/// Returns the lines up to the first fatal one, because other processes of git may add lines.
fn up_to_the_end(stderr: &str) -> String {
    let mut is_over = false;
    let lines = stderr.lines().take_while(|line| {
        let was_over = is_over;
        is_over |= line.starts_with("fatal: ");
        !was_over
    });
    lines.collect::<Vec<_>>().join("\n")
}

impl Side {
    fn new(base: &Path, name: &str, program: &Path) -> Side {
        let top = base.join(name);
        let copy = Command::new("cp")
            .arg("-R")
            .args([stage(), &top])
            .status()
            .expect("cp runs");
        assert!(copy.success());
        Side {
            top,
            program: program.to_owned(),
        }
    }

    /// Runs `call` with the entry of `combination`.
    fn run(&self, call: &str, combination: Option<&Combination>) -> Outcome {
        let repository = self.top.join("r");
        let files = [
            self.top.join("home/.gitconfig"),
            repository.join(".git/config"),
            repository.join(".git/included"),
        ];
        let before = files.each_ref().map(|file| fs::read(file).expect("a file"));
        let mut command = bare_command(&self.program, &self.top, "r");
        command.env("PRONTO_NO_FALLBACK", "1");
        if let Some(combination) = combination {
            let at = match combination.level {
                Level::Option => {
                    command.args(["-c", &combination.option()]);
                    None
                }
                Level::Global => Some(0),
                Level::Local => Some(1),
                Level::Included => Some(2),
            };
            if let Some(at) = at {
                let mut text = before[at].clone();
                text.extend_from_slice(combination.entry().as_bytes());
                fs::write(&files[at], text).expect("a file can be written");
            }
        }
        let input = match call.split(' ').next() {
            Some("unpack-objects") => fs::read(self.top.join("p.pack")).expect("a pack"),
            Some("receive-pack" | "upload-pack") => b"0000".to_vec(),
            _ => Vec::new(),
        };
        let input_file = self.top.join("input");
        fs::write(&input_file, input).expect("a file can be written");
        let output = command
            .args(call.split(' '))
            .stdin(Stdio::from(
                fs::File::open(&input_file).expect("it was written"),
            ))
            .output()
            .expect("it runs");
        for (file, content) in files.iter().zip(&before) {
            fs::write(file, content).expect("a file can be written");
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        // In the messages of `init`, git prints absolute paths.
        let git_dir = format!("{}/.git/", repository.display());
        let stderr = stderr.replace(&git_dir, ".git/");
        Outcome {
            code: output.status.code(),
            stderr: stderr.replace(&*self.top.to_string_lossy(), "@"),
        }
    }
}

impl Combination {
    /// Returns the argument of `-c`.
    fn option(&self) -> String {
        match self.value {
            Some(value) => format!("{}={value}", self.key),
            None => self.key.clone(),
        }
    }

    /// Returns the lines of a configuration file.
    fn entry(&self) -> String {
        let parts: Vec<&str> = self.key.splitn(3, '.').collect();
        let (header, variable) = match parts[..] {
            [section, subsection, variable] => (format!("[{section} \"{subsection}\"]"), variable),
            [section, variable] => (format!("[{section}]"), variable),
            _ => panic!("no key: {}", self.key),
        };
        match self.value {
            Some(value) => format!("{header}\n\t{variable} = \"{value}\"\n"),
            None => format!("{header}\n\t{variable}\n"),
        }
    }
}

/// Returns a directory with repositories and a home, which is created once and copied for each
/// call.
fn stage() -> &'static Path {
    static STAGE: OnceLock<tempfile::TempDir> = OnceLock::new();
    const SCRIPT: &str = r#"
        git config --global user.name 'A U Thor'
        git config --global user.email author@example.com
        git config --global protocol.file.allow always
        git config --global gc.auto 0
        git config --global maintenance.auto false
        git init -q -b main r
        cd r
        echo a >a; mkdir d; echo b >d/b; echo ignored >.gitignore
        git add . && git commit -q -m 1
        git clone -q --bare . ../o.git
        git remote add origin ../o.git
        git fetch -q
        git branch -q -u origin/main
        git repack -adq
        git bundle create -q ../b.bundle main
        cp .git/objects/pack/*.pack ../p.pack
        git index-pack ../p.pack >../index-pack
        git config include.path included
        : >.git/included
        "#;
    let made = STAGE.get_or_init(|| {
        let directory = tempfile::tempdir().expect("a directory");
        let top = directory.path().join("stage");
        fs::create_dir_all(top.join("home")).expect("a directory can be made");
        let script = bare_command(Path::new("sh"), &top, ".")
            .args(["-ec", SCRIPT])
            .status()
            .expect("sh runs");
        assert!(script.success());
        directory
    });
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| made.path().join("stage"))
}

/// Returns a command in `top/directory`, with an environment that is the same on every machine.
fn bare_command(program: &Path, top: &Path, directory: &str) -> Command {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let reference = git::reference().and_then(Path::parent).map(Path::to_owned);
    let all = reference.into_iter().chain(std::env::split_paths(&path));
    let mut command = Command::new(program);
    command
        .current_dir(top.join(directory))
        .env_clear()
        .env(
            "PATH",
            std::env::join_paths(all).expect("directories of PATH"),
        )
        .env("HOME", top.join("home"))
        .env("LC_ALL", "C")
        .env("TZ", "UTC")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_DATE", "1112911993 -0700")
        .env("GIT_COMMITTER_DATE", "1112911993 -0700")
        .env("GIT_CEILING_DIRECTORIES", top);
    command
}

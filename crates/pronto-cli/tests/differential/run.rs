//! Running one case with stock git and with pronto, and saying what differs.

use std::ffi::{OsStr, OsString};
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use test_support::{
    INSTALL, Random, git, may_lack_reference, may_skip, report_missing_reference, report_skip,
    write_program,
};

use crate::case::{Case, Release, parse_release};
use crate::snapshot;

/// The result of one run.
struct Outcome {
    /// The output and the files of the run, in named parts that are compared one by one.
    parts: Vec<(&'static str, String)>,
    /// The numbers of the calls that went to git.
    handed_over: Vec<usize>,
}

const PRELUDE: &str = r#"
# Waits until the second is another one, if the first letter of PAUSES says so.
pause() {
    case $PAUSES in 1*) sleep 1.01 ;; esac
    PAUSES=${PAUSES#?}
}
git() {
    pause
    command git "$@"
}
tick=1112911993
test_tick() {
    tick=$((tick + 60))
    export GIT_AUTHOR_DATE="$tick -0700" GIT_COMMITTER_DATE="$tick -0700"
}
# The command under test. What it was asked and how it ended goes to a record of its own.
vcs() {
    pause
    VCS_CALL=$((VCS_CALL + 1))
    export VCS_CALL
    "$VCS" "$@"
    vcs_code=$?
    echo "vcs $* -> $vcs_code" >&9
    return $vcs_code
}
# Writes each argument's name into a file of that name and commits them all.
commit() {
    for name; do
        case $name in */*) mkdir -p "${name%/*}" ;; esac
        echo "$name" >"$name"
    done
    test_tick
    git add -- "$@" && git commit -q -m "$*"
}
test_tick
"#;

/// The variable that makes the runs of a case fall into different seconds.
const PAUSES: &str = "PRONTO_TEST_PAUSES";

/// No case makes more calls.
const CALLS: usize = 200;

const GLOBAL_CONFIG: &str = "[user]\n\tname = A U Thor\n\temail = author@example.com\n\
    [init]\n\tdefaultBranch = main\n[protocol \"file\"]\n\tallow = always\n\
    [gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[advice]\n\tdefaultBranchName = false\n";

/// Whether the oracle is there.
pub(crate) fn git_is_installed() -> bool {
    release_of(Path::new("git")).is_some()
}

fn release_of(git: &Path) -> Option<Release> {
    let output = Command::new(git).arg("version").output().ok()?;
    parse_release(&String::from_utf8(output.stdout).ok()?)
}

/// The git that `case` compares with: the installed one, or git 2.55 if the installed one is too
/// old. `None` if there is none that is new enough.
pub(crate) fn oracle(case: &Case) -> Option<PathBuf> {
    let Some(since) = case.since else {
        return Some("git".into());
    };
    let newest = git::reference().map(Path::to_owned);
    let knows = |git: &PathBuf| release_of(git).is_some_and(|release| release >= since);
    std::iter::once("git".into()).chain(newest).find(knows)
}

/// A requirement of a case that the machine lacks.
pub(crate) enum Missing {
    /// A program that can be installed.
    Program(String),
    /// A git of this release or a newer one.
    Git(Release),
}

impl Missing {
    /// Whether the case may be left out.
    pub(crate) fn is_excused(&self) -> bool {
        match self {
            Missing::Program(_) => may_skip(),
            Missing::Git(_) => may_lack_reference(),
        }
    }

    /// Prints that the case called `title` is left out.
    pub(crate) fn report(&self, title: &str) {
        let needs = format!("'{title}' needs {self}");
        match self {
            Missing::Program(_) => report_skip(&needs, &INSTALL),
            Missing::Git(_) => report_missing_reference(&needs),
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::Program(name) => write!(f, "'{name}'"),
            Missing::Git([major, minor]) => write!(f, "git {major}.{minor}"),
        }
    }
}

/// Returns what the machine lacks for `case`.
pub(crate) fn missing(case: &Case) -> Option<Missing> {
    if let Some(need) = case.missing_need() {
        return Some(Missing::Program(need.to_owned()));
    }
    match oracle(case) {
        Some(_) => None,
        None => Some(Missing::Git(case.since.unwrap_or(git::REFERENCE))),
    }
}

/// Runs `case` both ways.
///
/// # Errors
/// A description of every part that differs, the oracle's lines marked `-`, pronto's `+`.
pub(crate) fn compare(case: &Case) -> Result<(), String> {
    if let Some(missing) = missing(case) {
        return Err(format!("needs {missing}, and CI may not skip a case"));
    }
    let base = tempfile::Builder::new()
        .prefix("pronto-diff-")
        .tempdir()
        .expect("a directory");
    let base = base.path().canonicalize().expect("it exists");
    let git = oracle(case).expect("it was found a moment ago");
    let [theirs, ours] = pauses(case);
    let pronto = Path::new(env!("CARGO_BIN_EXE_pronto"));
    // Processes that git starts must be of the same release.
    let path = path_with(git.parent());
    let surroundings = |pauses| Surroundings {
        path: &path,
        pauses,
    };
    let oracle = run(case, &base, &git, &surroundings(&theirs));
    let ours = run(case, &base, pronto, &surroundings(&ours));
    let mut report = String::new();
    for ((part, expected), (_, actual)) in oracle.parts.iter().zip(&ours.parts) {
        if expected != actual && (*part != "stderr" || case.compares_stderr) {
            let _ = writeln!(report, "{part} differs (- git, + pronto):");
            differing_lines(expected, actual, &mut report);
        }
    }
    if ours.handed_over != case.handed_over {
        let (found, expected) = (&ours.handed_over, &case.handed_over);
        let _ = writeln!(report, "calls {found:?} went to git, not {expected:?}");
    }
    if report.is_empty() {
        return Ok(());
    }
    if let Some((_, stderr)) = ours.parts.iter().find(|(part, _)| *part == "stderr") {
        let _ = writeln!(report, "pronto's stderr in full:\n{stderr}");
    }
    Err(format!(
        "{}\nscript:\n{}\n{report}",
        case.title, case.script
    ))
}

/// For each of the two runs, at which calls of git and of the command under test it waits for the
/// next second: none, unless [`PAUSES`] holds a number. Different numbers give different pauses.
fn pauses(case: &Case) -> [String; 2] {
    let Some(seed) = std::env::var(PAUSES)
        .ok()
        .and_then(|seed| seed.parse::<u64>().ok())
    else {
        return [String::new(), String::new()];
    };
    let mut random = Random::new(u64::from(crc32fast::hash(case.title.as_bytes())) ^ (seed << 32));
    let mut next = || *random.one_of(&['0', '1']);
    [(); 2].map(|()| (0..CALLS).map(|_| next()).collect())
}

/// Runs the script in an empty `base/work`; the same place both times, so that paths agree.
/// The environment of a script.
struct Surroundings<'a> {
    path: &'a OsStr,
    pauses: &'a str,
}

fn run(case: &Case, base: &Path, vcs: &Path, around: &Surroundings<'_>) -> Outcome {
    let (work, home) = (base.join("work"), base.join("home"));
    for directory in [&work, &home] {
        let _ = std::fs::remove_dir_all(directory);
        std::fs::create_dir_all(directory).expect("a directory can be made");
    }
    std::fs::write(home.join(".gitconfig"), GLOBAL_CONFIG).expect("a file can be written");
    let calls = base.join("calls");
    let script = format!("exec 9>'{}'\n{PRELUDE}\n{}", calls.display(), case.script);
    let mut command = shell(&work, &home);
    let handed = base.join("handed");
    let _ = std::fs::remove_file(&handed);
    if case.handed_over.is_empty() {
        command.env("PRONTO_NO_FALLBACK", "1");
    } else {
        command.env("PRONTO_GIT", recorder(base, &handed));
    }
    let output = command
        .env("VCS", vcs)
        .env("PATH", around.path)
        .env("PAUSES", around.pauses)
        .arg("-c")
        .arg(script)
        .stdin(Stdio::null())
        .output()
        .expect("sh can be started");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let handed = std::fs::read_to_string(&handed).unwrap_or_default();
    let mut parts = vec![
        ("calls", std::fs::read_to_string(&calls).unwrap_or_default()),
        ("stdout", text(&output.stdout)),
        ("stderr", text(&output.stderr)),
        ("exit", output.status.to_string()),
    ];
    parts.extend(snapshot::of(&work, &|directory: &Path| {
        shell(directory, &home)
    }));
    let mut handed_over: Vec<usize> = handed
        .lines()
        .map(|number| number.parse().unwrap_or_default())
        .collect();
    handed_over.dedup();
    Outcome { parts, handed_over }
}

/// A program that adds the number of the call to the file `handed` and goes on as git.
fn recorder(base: &Path, handed: &Path) -> PathBuf {
    let path = base.join("recorder");
    let script = format!(
        "#!/bin/sh\necho \"$VCS_CALL\" >>'{}'\nexec git \"$@\"\n",
        handed.display()
    );
    write_program(&path, &script);
    path
}

/// `PATH` with `directory` in front, if it is one.
fn path_with(directory: Option<&Path>) -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    match directory {
        Some(directory) if !directory.as_os_str().is_empty() => {
            let rest = std::env::split_paths(&path);
            let all = std::iter::once(directory.to_owned()).chain(rest);
            std::env::join_paths(all).expect("the directory can be on PATH")
        }
        _ => path,
    }
}

/// `sh` in an environment that is the same on every machine.
fn shell(directory: &Path, home: &Path) -> Command {
    let mut command = Command::new("sh");
    let path = std::env::var_os("PATH").unwrap_or_default();
    command
        .current_dir(directory)
        .env_clear()
        .env("PATH", path)
        .env("HOME", home)
        .env("XDG_CONFIG_HOME", home.join("xdg"))
        .env("LC_ALL", "C")
        .env("TZ", "UTC")
        .env("TERM", "dumb")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env(
            "GIT_CEILING_DIRECTORIES",
            directory.parent().unwrap_or(directory),
        );
    command
}

/// Lines that only one side has, each block with where it begins.
fn differing_lines(expected: &str, actual: &str, report: &mut String) {
    let (expected, actual): (Vec<&str>, Vec<&str>) =
        (expected.lines().collect(), actual.lines().collect());
    let same_start = expected
        .iter()
        .zip(&actual)
        .take_while(|(a, b)| a == b)
        .count();
    let same_end = expected[same_start..]
        .iter()
        .rev()
        .zip(actual[same_start..].iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let _ = writeln!(report, "  from line {}", same_start + 1);
    let middles = [
        ('-', &expected[same_start..expected.len() - same_end]),
        ('+', &actual[same_start..actual.len() - same_end]),
    ];
    for (mark, lines) in middles {
        for line in lines.iter().take(40) {
            let _ = writeln!(report, "  {mark} {line}");
        }
    }
    if same_start == expected.len() && same_start == actual.len() {
        let _ = writeln!(report, "  (only the line ending at the very end)");
    }
}

/// A path relative to `base`, for reports that do not depend on the machine.
pub(crate) fn relative(base: &Path, path: &Path) -> PathBuf {
    path.strip_prefix(base).unwrap_or(path).to_owned()
}

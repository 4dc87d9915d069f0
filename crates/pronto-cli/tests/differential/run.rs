//! Runs one case with stock git and with pronto, and reports differences.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use test_support::{Random, write_program};

use crate::case::{Case, Stderr};
use crate::snapshot;

/// The result of one run.
struct Outcome {
    /// The output and the state of the directory, in named parts that are compared separately.
    parts: Vec<(&'static str, String)>,
    /// The numbers of the calls that were handed to git.
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

/// The variable that distributes the calls of a case over different seconds.
const PAUSES: &str = "PRONTO_TEST_PAUSES";

/// The largest number of calls in a case.
const CALLS: usize = 200;

/// Git 2.47 and newer advise about sparse indexes, which pronto does not (`docs/settings.tsv`).
const GLOBAL_CONFIG: &str = "[user]\n\tname = A U Thor\n\temail = author@example.com\n\
    [init]\n\tdefaultBranch = main\n[protocol \"file\"]\n\tallow = always\n\
    [gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[advice]\n\tdefaultBranchName = false\n\
    \tsparseIndexExpanded = false\n";

/// The files of the template of new repositories.
const TEMPLATE: [(&str, &str); 3] = [
    ("description", "A repository of the suite.\n"),
    ("hooks/update.sample", "#!/bin/sh\n"),
    ("info/exclude", "# Nothing is excluded.\n"),
];

/// Runs `case` with `git` and with pronto.
///
/// # Errors
/// Fails with a description of each part that differs. Lines of git are marked `-`, and those of
/// pronto `+`.
pub(crate) fn compare(case: &Case, git: &Path) -> Result<(), String> {
    if let Some(program) = case.missing_need() {
        return Err(format!("needs '{program}', and CI may not skip a case"));
    }
    let base = tempfile::Builder::new()
        .prefix("pronto-diff-")
        .tempdir()
        .expect("a directory");
    let base = base.path().canonicalize().expect("it exists");
    let [theirs, ours] = pauses(case);
    let pronto = Path::new(env!("CARGO_BIN_EXE_pronto"));
    // Processes that git starts must belong to the same release.
    let path = path_with(git.parent());
    let surroundings = |pauses| Surroundings {
        git,
        path: &path,
        pauses,
    };
    let oracle = run(case, &base, git, &surroundings(&theirs));
    let ours = run(case, &base, pronto, &surroundings(&ours));
    let mut report = String::new();
    for ((part, expected), (_, actual)) in oracle.parts.iter().zip(&ours.parts) {
        let [expected, actual] = [expected, actual].map(|text| match *part {
            "stderr" => compared_stderr(case, text),
            _ => Cow::from(text),
        });
        if expected != actual {
            let _ = writeln!(report, "{part} differs (- git, + pronto):");
            differing_lines(&expected, &actual, &mut report);
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

/// Returns the part of `stderr` that `case` compares.
fn compared_stderr<'a>(case: &Case, stderr: &'a str) -> Cow<'a, str> {
    match &case.stderr {
        Stderr::Compared => stderr.into(),
        Stderr::Ignored => Cow::default(),
        Stderr::Without(text) => {
            let lines = stderr.split_inclusive('\n');
            lines.filter(|line| !line.contains(text)).collect()
        }
    }
}

/// Selects, for each of the two runs, the calls of git and of the command under test that wait for
/// the next second. No call waits unless [`PAUSES`] contains a number. Different numbers select
/// different calls.
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

/// The environment of a script.
struct Surroundings<'a> {
    /// The git that reads the resulting state.
    git: &'a Path,
    path: &'a OsStr,
    pauses: &'a str,
}

/// Runs the script in an empty `base/work`. Both runs use the same directory, so that paths agree.
fn run(case: &Case, base: &Path, vcs: &Path, around: &Surroundings<'_>) -> Outcome {
    let (work, home) = (base.join("work"), base.join("home"));
    for directory in [&work, &home] {
        let _ = std::fs::remove_dir_all(directory);
        std::fs::create_dir_all(directory).expect("a directory can be made");
    }
    prepare_home(&home);
    let calls = base.join("calls");
    let script = format!("exec 9>'{}'\n{PRELUDE}\n{}", calls.display(), case.script);
    let mut shell = command("sh", &work, &home);
    let handed = base.join("handed");
    let _ = std::fs::remove_file(&handed);
    if case.handed_over.is_empty() {
        shell.env("PRONTO_NO_FALLBACK", "1");
    } else {
        shell.env("PRONTO_GIT", recorder(base, &handed));
    }
    let output = shell
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
        let mut git = command(around.git, directory, &home);
        git.env("PATH", around.path);
        git
    }));
    let mut handed_over: Vec<usize> = handed
        .lines()
        .map(|number| number.parse().unwrap_or_default())
        .collect();
    handed_over.dedup();
    Outcome { parts, handed_over }
}

/// Writes the configuration of the user and the template of new repositories. Without this
/// template, each git would use its own.
fn prepare_home(home: &Path) {
    let template = home.join("template");
    let template_dir = format!("[init]\n\ttemplateDir = {}\n", template.display());
    let config = format!("{GLOBAL_CONFIG}{template_dir}");
    std::fs::write(home.join(".gitconfig"), config).expect("a file can be written");
    for (name, content) in TEMPLATE {
        let path = template.join(name);
        let directory = path.parent().expect("it is below the template");
        std::fs::create_dir_all(directory).expect("a directory can be made");
        std::fs::write(path, content).expect("a file can be written");
    }
}

/// Creates a program that appends the number of the call to the file `handed` and then runs git.
fn recorder(base: &Path, handed: &Path) -> PathBuf {
    let path = base.join("recorder");
    let script = format!(
        "#!/bin/sh\necho \"$VCS_CALL\" >>'{}'\nexec git \"$@\"\n",
        handed.display()
    );
    write_program(&path, &script);
    path
}

/// Returns `PATH` with `directory` at its front, if a directory is given.
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

/// Creates a command with an environment that is the same on every machine.
fn command(program: impl AsRef<OsStr>, directory: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
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

/// Appends the lines that only one of the texts has.
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

/// Returns a path relative to `base`, so that reports do not depend on the machine.
pub(crate) fn relative(base: &Path, path: &Path) -> PathBuf {
    path.strip_prefix(base).unwrap_or(path).to_owned()
}

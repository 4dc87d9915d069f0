//! The generated class `pairs`: each native command runs with one and with two of its options, by
//! git and by pronto, in copies of one small repository. Exit codes and the first lines of the
//! output must agree.
//!
//! The options are those that git lists for its completion. A call that pronto leaves to git is not
//! a difference. By default, a sample of the pairs of each command runs. The variable [`COUNT`]
//! selects another number.

mod subjects;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use subjects::{EXTRA_OPTIONS, LEFT_OUT, VALUES};
pub(crate) use subjects::{SUBJECTS, Subject};

/// The program under test.
const PRONTO: &str = env!("CARGO_BIN_EXE_pronto");

/// The variable that selects the number of calls: a number, or `all`.
const COUNT: &str = "PRONTO_TEST_OPTION_PAIRS";

/// The default number of calls for each command with its arguments.
const SAMPLE: usize = 10;

/// The numbers of compared lines of standard output and of standard error.
const LINES: [usize; 2] = [6, 2];

/// The number of compared characters of a line.
const COLUMNS: usize = 160;

/// The text that marks a call which pronto would leave to git.
const LEFT_TO_GIT: &str = "PRONTO_NO_FALLBACK";

/// The commands that create the repository `work`, its remote `origin`, and files beside it.
const PREPARATION: &str = "
    git init -q -b main work && cd work
    echo a >a && echo b >b && mkdir d && echo c >d/c && echo a >list && git add . && git commit -q -m one
    git tag v1 && git branch side
    echo more >>a && git commit -q -a -m two && git tag -a -m two v2
    git checkout -q side && echo side >s && git add s && git commit -q -m side && git checkout -q main
    git clone -q --bare . ../origin && git remote add origin ../origin && git fetch -q origin
    git config gc.auto 0 && git config maintenance.auto false
    git branch -q -u origin/side side && git repack -q -a -d && git pack-refs --all
    cp .git/objects/pack/*.pack ../pack && cp .git/objects/pack/*.idx ../idx
    echo changed >>b && echo new >n && echo i >i && echo i >.gitignore
";

/// Compares `git` and pronto in calls of `subject`.
///
/// # Errors
/// Fails with the calls that differ, and the output of both programs.
pub(crate) fn compare(git: &Path, subject: &Subject) -> Result<(), String> {
    let base = tempfile::Builder::new().prefix("pronto-pairs-").tempdir();
    let base = base.expect("a directory can be made");
    let stage = Stage {
        git,
        base: base.path().canonicalize().expect("it exists"),
    };
    stage.prepare();
    let mut report = String::new();
    for options in sample(combinations(&stage.options(subject)), subject.name) {
        let call: Vec<&str> = (subject.name.split(' '))
            .chain(options.iter().map(String::as_str))
            .chain(subject.arguments.split(' ').filter(|it| !it.is_empty()))
            .collect();
        stage.compare_call(&call, subject, &mut report);
    }
    match report.is_empty() {
        true => Ok(()),
        false => Err(report),
    }
}

/// The git to compare with, and the directory in which both programs run.
struct Stage<'a> {
    git: &'a Path,
    base: PathBuf,
}

impl Stage<'_> {
    /// Creates the initial repositories.
    fn prepare(&self) {
        let start = self.base.join("start");
        fs::create_dir_all(&start).expect("a directory can be made");
        let mut shell = self.command(Path::new("sh"), &start);
        let output = shell.arg("-ec").arg(PREPARATION).output();
        let output = output.expect("sh can be started");
        assert!(output.status.success(), "{output:?}");
    }

    /// Returns the options of a command: those that git lists (with values), and the short ones.
    fn options(&self, subject: &Subject) -> Vec<String> {
        let mut git = self.command(self.git, &self.base);
        git.current_dir(self.base.join("start/work"));
        git.args(subject.name.split(' '))
            .arg("--git-completion-helper-all");
        let output = git.output().expect("git starts");
        let listed = String::from_utf8(output.stdout).expect("options are text");
        let listed = listed.split_whitespace().filter(|option| option.len() > 2);
        let extra = EXTRA_OPTIONS
            .iter()
            .filter(|(name, _)| *name == subject.name);
        let extra = extra.flat_map(|(_, options)| options.split(' '));
        let mut options = Vec::new();
        for option in listed.chain(extra) {
            let is_option = option.starts_with('-') && !option.contains("completion-helper");
            let is_left_out = LEFT_OUT.iter().any(|(command, left_out)| {
                subject.name.starts_with(command) && option.starts_with(left_out)
            });
            if !is_option || is_left_out {
                continue;
            }
            let value = match option.ends_with('=') {
                true => value_of(subject.name, option),
                false => "",
            };
            options.push(format!("{option}{value}"));
        }
        options.dedup();
        options
    }

    /// Runs one call with both programs, and reports a difference.
    fn compare_call(&self, call: &[&str], subject: &Subject, report: &mut String) {
        let run = |program| {
            self.renew();
            let work = self.base.join("run/work");
            let mut command = self.command(program, &work);
            let input = subject.input.map(|path| self.base.join("run").join(path));
            let input = input.map(|path| fs::File::open(path).expect("the input was prepared"));
            let output = command
                .args(call)
                .stdin(input.map_or_else(Stdio::null, Stdio::from))
                .output()
                .expect("the program starts");
            let code = output.status.to_string();
            let left = String::from_utf8_lossy(&output.stderr).contains(LEFT_TO_GIT);
            let usage = output.status.code() == Some(129);
            let shown = match usage {
                // Only the first line is compared, because each program prints its own usage.
                true => [0, 1],
                false => LINES,
            };
            let stdout = first_lines(&output.stdout, shown[0]);
            let stderr = first_lines(&output.stderr, shown[1]);
            // A call in which git crashes is not compared.
            let is_compared = !left && output.status.code().is_some();
            (is_compared, format!("{code}\n{stdout}{stderr}"))
        };
        let (is_native, ours) = run(Path::new(PRONTO));
        if !is_native {
            return;
        }
        let (has_answered, theirs) = run(self.git);
        if has_answered && ours != theirs {
            let call = call.join(" ");
            let _ = writeln!(report, "{call}\n- {theirs}\n+ {ours}");
        }
    }

    /// Restores the initial repositories.
    fn renew(&self) {
        let run = self.base.join("run");
        let _ = fs::remove_dir_all(&run);
        copy(&self.base.join("start"), &run);
    }

    /// Creates a command with an environment that is the same on every machine.
    fn command(&self, program: &Path, directory: &Path) -> Command {
        let home = self.base.join("home");
        let _ = fs::create_dir(&home);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let own = self.git.parent().expect("the path of a file").to_owned();
        let path = std::iter::once(own).chain(std::env::split_paths(&path));
        let path = std::env::join_paths(path).expect("the directory can be on PATH");
        let mut command = Command::new(program);
        command
            .current_dir(directory)
            .env_clear()
            .env("PATH", path)
            .env("HOME", home)
            .env("LC_ALL", "C")
            .env("TZ", "UTC")
            .env("GIT_EDITOR", ":")
            .env("GIT_CONFIG_SYSTEM", self.base.join("home/system"))
            .env("GIT_TEMPLATE_DIR", "")
            .env("GIT_CEILING_DIRECTORIES", &self.base)
            .env("GIT_AUTHOR_DATE", "1112911993 -0700")
            .env("GIT_COMMITTER_DATE", "1112911993 -0700")
            .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@x")])
            .envs([("GIT_COMMITTER_NAME", "c"), ("GIT_COMMITTER_EMAIL", "c@x")])
            .env("PRONTO_NO_FALLBACK", "1")
            .stdin(Stdio::null());
        command
    }
}

/// Returns the first lines of `output` without control characters and varying text.
fn first_lines(output: &[u8], count: usize) -> String {
    let text = String::from_utf8_lossy(output);
    let lines = text.lines().filter(|line| !is_progress(line));
    let lines = lines.take(count).map(|line| {
        let start = line.find(".merge_file_").or(line.find("ref_migration."));
        // Such a name has a random suffix.
        let line = start.map_or(line, |at| &line[..at]);
        let printed = line.chars().filter(|it| !it.is_control());
        printed.take(COLUMNS).collect::<String>() + "\n"
    });
    lines.collect()
}

/// Returns whether a line depends on timing, on the machine, or on the output of a concurrent
/// process. The pack that `keep` names depends on the threads of the server.
fn is_progress(line: &str) -> bool {
    let starts = [
        "remote: ",
        "fatal: the remote end hung up",
        "Delta compression",
        "keep\t",
    ];
    let meters = [" objects: ", " deltas: "];
    starts.iter().any(|start| line.starts_with(start))
        || meters.iter().any(|part| line.contains(part))
}

/// Returns the value for `option` of `command`.
fn value_of(command: &str, option: &str) -> &'static str {
    let own = format!("{command} {option}");
    let find = |name: &str| VALUES.iter().find(|(known, _)| *known == name);
    find(&own)
        .or_else(|| find(option))
        .map_or("1", |(_, value)| *value)
}

/// Returns each option alone, and each pair of options that are not negations of each other.
fn combinations(options: &[String]) -> Vec<Vec<String>> {
    let mut all: Vec<Vec<String>> = options.iter().map(|one| vec![one.clone()]).collect();
    for (at, first) in options.iter().enumerate() {
        for second in &options[at + 1..] {
            all.push(vec![first.clone(), second.clone()]);
        }
    }
    all
}

/// Selects the calls that run: the number in [`COUNT`], or else [`SAMPLE`]. The selection is always
/// the same.
fn sample(mut all: Vec<Vec<String>>, command: &str) -> Vec<Vec<String>> {
    let asked = std::env::var(COUNT).unwrap_or_default();
    if asked != "all" {
        all.sort_by_key(|options| hash(&format!("{command} {}", options.join(" "))));
        all.truncate(asked.parse().unwrap_or(SAMPLE));
    }
    all
}

/// Returns a number that depends on the text alone (FNV-1a).
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// Copies a directory with the times of its files, so that the stat data in the index stays valid.
fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a directory can be made");
    for entry in fs::read_dir(from).expect("a directory can be listed") {
        let entry = entry.expect("a directory can be listed");
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        let metadata = entry.metadata().expect("the file is there");
        if metadata.is_dir() {
            copy(&from, &to);
            continue;
        }
        fs::copy(&from, &to).expect("a file can be copied");
        let file = fs::File::options().write(true).open(&to);
        if let (Ok(file), Ok(time)) = (file, metadata.modified()) {
            file.set_modified(time).expect("a time can be set");
        }
    }
}

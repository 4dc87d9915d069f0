//! `cargo xtask git-suite [--native] [--program PATH] [SCRIPT...]`: runs Git's own tests against
//! pronto.
//!
//! The scripts are those of the reference git (`cargo xtask reference-git`). The program is
//! installed under the name `git` in a directory that precedes the reference git on `PATH`.
//! `target/git-suite/NAME.out` is the output of a script. Failures are compared with
//! `xtask/git-suite-allowed.txt`. `--native` selects the scripts about commands that pronto has.
//!
//! `--served` selects the scripts that start servers, and replaces these servers by `pronto serve`:
//! PROGRAM, or the program of `--server PATH`. `xtask/git-suite-served-allowed.txt` lists further
//! allowed failures for this mode.

mod allowed;
mod front;
mod result;
mod runner;
mod selection;
mod served;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use allowed::AllowedFailures;
use result::Script;
use runner::SuiteRun;

/// The list of allowed failures, relative to the top of the workspace.
const ALLOWED: &str = "xtask/git-suite-allowed.txt";

/// The list of further failures that are allowed with `--served`, relative to the top of the
/// workspace.
const SERVED_ALLOWED: &str = "xtask/git-suite-served-allowed.txt";

/// The time limit of a script, in seconds.
const LIMIT_SECONDS: u32 = 300;

/// The parsed arguments.
#[derive(Debug, Default)]
struct Options {
    /// Whether only the scripts about native commands run (`--native`).
    is_native: bool,
    /// The program to test as git (`--program`); `None` for a release build.
    program: Option<PathBuf>,
    /// Whether scripts start `pronto serve` instead of other servers (`--served`).
    is_served: bool,
    /// The program that serves (`--server`); `None` for `program`.
    server: Option<PathBuf>,
    /// The names of the scripts to run; empty for all scripts.
    scripts: Vec<String>,
}

/// Runs the scripts and returns the differences from the allowed failures.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Vec<String> {
    let result = Options::parse(arguments).and_then(|options| compare(root, &options));
    result.unwrap_or_else(|problem| vec![format!("git-suite: {problem}")])
}

/// Runs the front web server that scripts start with `--served`.
pub(crate) fn run_front(arguments: &[&str]) -> Vec<String> {
    let result = front::run(arguments);
    result.err().into_iter().collect()
}

impl Options {
    fn parse(arguments: &[&str]) -> Result<Self, String> {
        let mut options = Options::default();
        let mut arguments = arguments.iter();
        while let Some(&argument) = arguments.next() {
            if argument == "--program" {
                let path = arguments.next().ok_or("--program needs a path")?;
                options.program = Some(PathBuf::from(path));
            } else if argument == "--server" {
                let path = arguments.next().ok_or("--server needs a path")?;
                options.server = Some(PathBuf::from(path));
            } else if argument == "--served" {
                options.is_served = true;
            } else if argument == "--native" {
                options.is_native = true;
            } else if selection::is_seen_script(argument) {
                options.scripts.push(argument.to_owned());
            } else {
                return Err(format!(
                    "'{argument}' is no script that runs here (see CONTRIBUTING.md)"
                ));
            }
        }
        Ok(options)
    }

    fn program(&self, root: &Path) -> Result<PathBuf, String> {
        if let Some(program) = &self.program {
            return std::path::absolute(program).map_err(|error| error.to_string());
        }
        crate::build_release(root)?;
        Ok(crate::released_pronto(root))
    }

    /// Returns the directory of the scripts.
    fn tests(&self, reference: &Path, out: &Path, program: &Path) -> Result<PathBuf, String> {
        let source = reference.join("source");
        if !self.is_served {
            return Ok(source.join("t"));
        }
        let server = match &self.server {
            Some(server) => std::path::absolute(server).map_err(|error| error.to_string())?,
            None => program.to_owned(),
        };
        served::replace_libraries(&source, &out.join("source"), &server)
    }

    /// Returns the names of the scripts to run.
    fn scripts(&self, tests: &Path) -> Result<Vec<String>, String> {
        if !self.scripts.is_empty() {
            return Ok(self.scripts.clone());
        }
        let mut scripts = match self.is_served {
            true => served::scripts(tests)?,
            false => selection::scripts(tests)?,
        };
        scripts.retain(|name| !self.is_native || selection::is_native(name));
        Ok(scripts)
    }
}

fn compare(root: &Path, options: &Options) -> Result<Vec<String>, String> {
    let reference = crate::reference_git::directory()?;
    let allowed = match options.is_served {
        true => {
            AllowedFailures::read(root, SERVED_ALLOWED)?.or(AllowedFailures::read(root, ALLOWED)?)
        }
        false => AllowedFailures::read(root, ALLOWED)?,
    };
    let out = match options.is_served {
        true => crate::target(root).join("git-suite-served"),
        false => crate::target(root).join("git-suite"),
    };
    std::fs::create_dir_all(&out)
        .map_err(|error| format!("cannot create '{}': {error}", out.display()))?;
    let began = Instant::now();
    let program = options.program(root)?;
    let tests = options.tests(&reference, &out, &program)?;
    let runner = SuiteRun {
        reference: &reference,
        tests: &tests,
        program: &program,
        out: &out,
    };
    let scripts = runner.run(&options.scripts(&tests)?)?;
    if scripts.is_empty() {
        return Err("no script ran".to_owned());
    }
    print_table(&scripts, &allowed);
    println!("{} s", began.elapsed().as_secs());
    let scope = SuiteScope {
        is_all: options.scripts.is_empty() && !options.is_native,
        reports_passing: std::env::var_os("CI").is_some(),
    };
    Ok(judge(&scripts, &allowed, scope))
}

/// The part of the list of failures that a run can check.
#[derive(Clone, Copy, Debug, Default)]
struct SuiteScope {
    /// Whether all scripts were run.
    is_all: bool,
    /// Whether listed cases that pass are only printed and are not an error. This is so in CI,
    /// whose machine may have other programs that cases need than the machine on which the list was
    /// made.
    reports_passing: bool,
}

/// Returns the differences between the results and the allowed failures.
fn judge(scripts: &[Script], allowed: &AllowedFailures, scope: SuiteScope) -> Vec<String> {
    let mut problems = Vec::new();
    for script in scripts {
        if let Some(problem) = script.unfinished() {
            problems.push(format!("{}: {problem}", script.name));
        }
        for (number, title) in &script.failed {
            if !allowed.contains(&script.name, *number) {
                problems.push(format!("{}: case {number} fails: {title}", script.name));
            }
        }
        for number in &script.passed {
            if allowed.must_fail(&script.name, *number) {
                let line = format!("{} {number}", script.name);
                let problem = format!("{}: '{line}' passes: remove it", allowed.file());
                match scope.reports_passing {
                    true => println!("{problem}"),
                    false => problems.push(problem),
                }
            }
        }
    }
    if scope.is_all {
        for name in allowed.scripts() {
            if !scripts.iter().any(|script| script.name == name) {
                problems.push(format!("{}: there is no script '{name}'", allowed.file()));
            }
        }
    }
    problems
}

/// Prints a row for each group of scripts (`t0` to `t8`) and a total.
fn print_table(scripts: &[Script], allowed: &AllowedFailures) {
    let mut groups: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
    for script in scripts {
        let group = script.name.get(..2).unwrap_or_default();
        let failed = script.failed.iter();
        let excused = failed
            .filter(|(number, _)| allowed.contains(&script.name, *number))
            .count();
        let counts = [
            1,
            script.passed.len(),
            excused,
            script.failed.len() - excused,
        ];
        for key in [group, "total"] {
            let sums = groups.entry(key).or_default();
            sums.iter_mut()
                .zip(counts)
                .for_each(|(sum, count)| *sum += count);
        }
    }
    println!("group  scripts  passed  allowed  failed");
    for (group, [scripts, passed, excused, failed]) in groups {
        println!("{group:<5}  {scripts:>7}  {passed:>6}  {excused:>7}  {failed:>6}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: SuiteScope = SuiteScope {
        is_all: true,
        reports_passing: false,
    };

    fn script(text: &str, code: i32) -> Script {
        Script::parse("t0001-x", code, text)
    }

    #[test]
    fn only_what_is_listed_may_fail() {
        let allowed = AllowedFailures::parse("list", "t0001-x 2 it is so\n").expect("well formed");
        let scripts = [script("ok 1 - a\nnot ok 2 - b\nnot ok 3 - c\n1..3\n", 1)];
        let problems = judge(&scripts, &allowed, ALL);
        assert_eq!(problems, ["t0001-x: case 3 fails: c"]);
    }

    #[test]
    fn what_passes_must_not_be_listed() {
        let allowed = AllowedFailures::parse("list", "t0001-x 1 it is so\nt0002-y 1 too\n")
            .expect("well formed");
        let scripts = [script("ok 1 - a\n1..1\n", 0)];
        let problems = judge(&scripts, &allowed, ALL);
        assert_eq!(problems.len(), 2);
        assert!(problems[0].ends_with("'t0001-x 1' passes: remove it"));
        assert!(problems[1].ends_with("there is no script 't0002-y'"));
        assert_eq!(judge(&scripts, &allowed, SuiteScope::default()).len(), 1);
    }

    #[test]
    fn scripts_that_do_not_end_are_problems() {
        let nothing = AllowedFailures::parse("list", "").expect("well formed");
        let problems = judge(&[script("ok 1 - a\n", 124)], &nothing, ALL);
        assert_eq!(problems, ["t0001-x: takes more than 300 s"]);
        let problems = judge(&[script("ok 1 - a\n", 1)], &nothing, ALL);
        assert_eq!(
            problems,
            ["t0001-x: ends with exit code 1 and without its plan"]
        );
    }
}

//! Runs scripts of Git's own tests in parallel against a program that replaces git.

use std::fs::File;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::LIMIT_SECONDS;
use super::result::Script;

/// The names under which transports start git.
const NAMES: [&str; 4] = [
    "git-receive-pack",
    "git-shell",
    "git-upload-archive",
    "git-upload-pack",
];

/// A run of scripts.
pub(super) struct SuiteRun<'a> {
    /// The installed reference git.
    pub(super) reference: &'a Path,
    /// The directory of the scripts.
    pub(super) tests: &'a Path,
    /// The program that replaces git.
    pub(super) program: &'a Path,
    /// The directory for the results.
    pub(super) out: &'a Path,
}

impl SuiteRun<'_> {
    /// Runs `scripts`, one on each processor at a time. The output of each is written to
    /// `OUT/NAME.out`.
    ///
    /// # Errors
    /// Fails if a file cannot be written, or if a shell cannot be started.
    pub(super) fn run(&self, scripts: &[String]) -> Result<Vec<Script>, String> {
        let programs = self.install()?;
        let queue = self.by_size(scripts);
        let next = AtomicUsize::new(0);
        let results = Mutex::new(Vec::new());
        let work = || {
            while let Some(name) = queue.get(next.fetch_add(1, Ordering::Relaxed)) {
                let script = self.script(name, &programs)?;
                let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                results.push(script);
            }
            Ok::<_, String>(())
        };
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
            let ends = workers
                .into_iter()
                .map(|worker| worker.join().unwrap_or(Err("a worker panicked".to_owned())));
            ends.collect::<Result<(), String>>()
        })?;
        let mut scripts = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        scripts.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(scripts)
    }

    /// Creates the directory with the program under git's names.
    fn install(&self) -> Result<PathBuf, String> {
        let programs = self.out.join("bin");
        let made = || -> io::Result<()> {
            for directory in [&programs, &self.out.join("trash")] {
                if directory.exists() {
                    std::fs::remove_dir_all(directory)?;
                }
                std::fs::create_dir_all(directory)?;
            }
            let git = programs.join("git");
            // A symbolic link would lead to another program after the next build.
            if std::fs::hard_link(self.program, &git).is_err() {
                std::fs::copy(self.program, &git)?;
            }
            for name in NAMES {
                symlink("git", programs.join(name))?;
            }
            Ok(())
        };
        made().map_err(|error| format!("cannot make '{}': {error}", programs.display()))?;
        Ok(programs)
    }

    /// Sorts the names by decreasing size of their files, because large scripts take longest.
    fn by_size(&self, scripts: &[String]) -> Vec<String> {
        let size = |name: &String| {
            let file = self.tests.join(format!("{name}.sh"));
            file.metadata().map_or(0, |file| file.len())
        };
        let mut scripts = scripts.to_vec();
        scripts.sort_by_cached_key(|name| std::cmp::Reverse(size(name)));
        scripts
    }

    /// Runs one script to its end or to the time limit.
    fn script(&self, name: &str, programs: &Path) -> Result<Script, String> {
        let out = self.out.join(format!("{name}.out"));
        let trash = self.out.join("trash").join(name);
        let mut command = Command::new("timeout");
        let mut started = || -> io::Result<i32> {
            std::fs::create_dir_all(&trash)?;
            let output = File::create(&out)?;
            command
                .args(["--kill-after=5", &LIMIT_SECONDS.to_string(), "sh"])
                .arg(format!("{name}.sh"))
                .arg(format!("--root={}", trash.display()))
                .current_dir(self.tests)
                .stdin(Stdio::null())
                .stdout(output.try_clone()?)
                .stderr(output);
            self.set_environment(&mut command, programs, &trash);
            Ok(command.status()?.code().unwrap_or(-1))
        };
        let code = started().map_err(|error| format!("cannot run '{name}': {error}"))?;
        // Failed cases keep their files. Only the owner may remove some of them.
        let _ = std::fs::remove_dir_all(&trash);
        let text = std::fs::read(&out)
            .map_err(|error| format!("cannot read '{}': {error}", out.display()))?;
        Ok(Script::parse(name, code, &String::from_utf8_lossy(&text)))
    }

    /// Replaces the environment variables of the caller that affect git.
    fn set_environment(&self, command: &mut Command, programs: &Path, trash: &Path) {
        for (name, _) in std::env::vars_os() {
            let name_text = name.to_string_lossy();
            if ["GIT_", "PRONTO_", "CARGO_"]
                .iter()
                .any(|prefix| name_text.starts_with(prefix))
            {
                command.env_remove(&name);
            }
        }
        let bin = self.reference.join("bin");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let all = std::iter::once(bin.clone()).chain(std::env::split_paths(&path));
        let path = std::env::join_paths(all).unwrap_or(path);
        command
            .env("PATH", path)
            .env("PRONTO_GIT", bin.join("git"))
            .env("GIT_TEST_INSTALLED", programs)
            .env("TEST_OUTPUT_DIRECTORY", trash)
            .env("TEST_NO_MALLOC_CHECK", "1");
    }
}

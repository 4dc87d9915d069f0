//! Registers maintenance with the scheduler of the machine: cron, systemd, launchd, or the task
//! scheduler of Windows (`git maintenance start`). The files are those that Git writes, with
//! another program.

mod cron;
mod launchd;
mod program;
mod systemd;
mod windows;

use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::time::Duration;

use bstr::{BStr, ByteSlice};

use super::Frequency;
use super::conditions::failed;
use crate::lock::Lock;
use crate::{Error, ErrorKind, Repository, Result, path};
use pronto_repository::Notice;

/// The environment variable by which tests replace the programs of schedulers, as `NAME:COMMAND,…`.
/// A scheduler that the value does not name is unavailable.
const STAND_INS: &str = "GIT_TEST_MAINT_SCHEDULER";

/// The configuration that prevents maintained repositories from prompting in the background.
const CONFIGURATION: [&str; 2] = ["credential.interactive=false", "core.askPass=true"];

/// The arguments of the scheduled program, without the frequency.
const COMMAND: [&str; 6] = [
    "for-each-repo",
    "--keep-going",
    "--config=maintenance.repo",
    "maintenance",
    "run",
    "--schedule=",
];

/// A scheduler of the operating system (`--scheduler`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// `cron`, by `crontab`.
    Cron,
    /// systemd, by `systemctl`.
    Systemd,
    /// launchd of macOS, by `launchctl`.
    Launchd,
    /// The task scheduler of Windows, by `schtasks`.
    Windows,
}

impl Scheduler {
    /// All schedulers, in Git's order.
    pub const ALL: [Scheduler; 4] = [
        Scheduler::Cron,
        Scheduler::Systemd,
        Scheduler::Launchd,
        Scheduler::Windows,
    ];

    /// Returns the name of the program that controls the scheduler, as messages show it.
    pub fn program(self) -> &'static str {
        match self {
            Scheduler::Cron => "crontab",
            Scheduler::Systemd => "systemctl",
            Scheduler::Launchd => "launchctl",
            Scheduler::Windows => "schtasks",
        }
    }

    /// Returns the scheduler that `--scheduler=NAME` selects, ignoring case. `auto` is not a
    /// scheduler.
    pub fn named(name: &BStr) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_slice() {
            b"cron" | b"crontab" => Scheduler::Cron,
            b"systemd" | b"systemd-timer" => Scheduler::Systemd,
            b"launchctl" => Scheduler::Launchd,
            b"schtasks" => Scheduler::Windows,
            _ => return None,
        })
    }
}

/// The maintenance schedules of a user.
#[derive(Debug)]
pub struct Schedules<'a> {
    repository: &'a Repository,
    /// The path of the program that schedulers run.
    runs: &'a Path,
    minute: u64,
}

/// Returns the schedules of the user that run `program`. The minute within the hour is random, to
/// spread the load.
pub fn schedules<'a>(repository: &'a Repository, program: &'a Path) -> Schedules<'a> {
    let by_chance = || RandomState::new().hash_one(std::process::id()) % 60;
    let is_test = repository.environment().get(STAND_INS).is_some();
    Schedules {
        repository,
        runs: program,
        minute: if is_test { 13 } else { by_chance() },
    }
}

impl Schedules<'_> {
    /// Chooses the scheduler of this machine (`--scheduler=auto`).
    ///
    /// # Errors
    /// Fails with [`ErrorKind::InvalidInput`] if no scheduler is available.
    pub fn choose(&self) -> Result<Scheduler> {
        if cfg!(target_os = "macos") {
            return Ok(Scheduler::Launchd);
        }
        let known = [Scheduler::Systemd, Scheduler::Cron];
        let found = known.into_iter().find(|it| self.is_available(*it));
        found.ok_or_else(|| fatal("neither systemd timers nor crontab are available"))
    }

    /// Whether `scheduler` can be used. May start its program.
    pub fn is_available(&self, scheduler: Scheduler) -> bool {
        if self.repository.environment().get(STAND_INS).is_some() {
            return self.stand_in(scheduler).is_some();
        }
        match scheduler {
            // `crontab` exists on macOS, too, but calling it asks the user for a permission.
            Scheduler::Cron => cfg!(not(target_os = "macos")) && cron::is_available(self),
            Scheduler::Systemd => systemd::is_available(self),
            Scheduler::Launchd => cfg!(target_os = "macos"),
            Scheduler::Windows => cfg!(windows),
        }
    }

    /// Registers the schedules with `scheduler`, and removes them from all other schedulers.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::InvalidInput`] if the scheduler is unavailable, and with
    /// [`ErrorKind::Refused`] if another process changes the schedules. Fails with another kind if
    /// the scheduler refuses.
    pub fn start(&self, scheduler: Scheduler) -> Result<()> {
        if !self.is_available(scheduler) {
            let message = format!("{} scheduler is not available", scheduler.program());
            return Err(fatal(message));
        }
        let _lock = self.lock()?;
        self.end(Some(scheduler))?;
        match scheduler {
            Scheduler::Cron => cron::update(self, true),
            Scheduler::Systemd => systemd::start(self),
            Scheduler::Launchd => launchd::start(self),
            Scheduler::Windows => windows::start(self),
        }
    }

    /// Stops the scheduled maintenance of all repositories.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Refused`] if another process changes the schedules, and with another
    /// kind if a program cannot be started. A refusal by a scheduler is sent as a notice of the
    /// repository.
    pub fn stop(&self) -> Result<()> {
        let _lock = self.lock()?;
        self.end(None)
    }

    fn end(&self, but: Option<Scheduler>) -> Result<()> {
        for scheduler in Scheduler::ALL {
            if but == Some(scheduler) || !self.is_available(scheduler) {
                continue;
            }
            let ended = match scheduler {
                Scheduler::Cron => cron::update(self, false),
                Scheduler::Systemd => systemd::stop(self),
                Scheduler::Launchd => launchd::stop(self),
                Scheduler::Windows => windows::stop(self),
            };
            match ended {
                Err(error) if error.kind() == ErrorKind::Refused => {
                    self.repository.notify(Notice::Failure(error));
                }
                ended => ended?,
            }
        }
        Ok(())
    }

    fn lock(&self) -> Result<Lock> {
        let target = self.repository.objects_dir().join("schedule");
        let lock = Lock::acquire(&target, Duration::ZERO).map_err(|error| match error.kind() {
            ErrorKind::Locked => failed(format!(
                "unable to create '{}.lock': File exists.\n\n\
                 Another scheduled git-maintenance(1) process seems to be running in this\n\
                 repository. Please make sure no other maintenance processes are running and\n\
                 then try again. If it still fails, a git-maintenance(1) process may have\n\
                 crashed in this repository earlier: remove the file manually to continue.",
                target.display()
            )),
            _ => failed("cannot acquire lock for scheduled background maintenance").because(error),
        })?;
        Ok(lock.recorded(self.repository.config()))
    }

    /// Returns the program that replaces that of `scheduler` in tests.
    fn stand_in(&self, scheduler: Scheduler) -> Option<&str> {
        let all = self.repository.environment().text(STAND_INS)?;
        let mut pairs = all.split(',').filter_map(|pair| pair.split_once(':'));
        let (_, command) = pairs.find(|(name, _)| *name == scheduler.program())?;
        Some(command)
    }

    /// Returns the path of the program in double quotes. Git also passes `--exec-path`, which this
    /// program does not need.
    fn quoted_program(&self) -> Vec<u8> {
        [b"\"", path::as_bytes(self.runs).as_bytes(), b"\""].concat()
    }

    /// Returns the arguments for the program.
    fn arguments(&self, frequency: &str) -> String {
        let mut text = String::new();
        for setting in CONFIGURATION {
            text.push_str("-c ");
            text.push_str(setting);
            text.push(' ');
        }
        // Git writes two spaces here.
        text.push(' ');
        text.push_str(&COMMAND.join(" "));
        text.push_str(frequency);
        text
    }
}

/// Returns an error that ends the whole command.
fn fatal(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidInput, message)
}

/// The names of all frequencies.
fn frequencies() -> impl Iterator<Item = &'static str> {
    Frequency::ALL.into_iter().map(Frequency::name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedulers_have_the_names_that_users_know() {
        let named = |name: &str| Scheduler::named(name.into());
        assert_eq!(named("CRON"), Some(Scheduler::Cron));
        assert_eq!(named("systemd-timer"), Some(Scheduler::Systemd));
        assert_eq!(named("launchd"), None);
        assert_eq!(named("auto"), None);
        for scheduler in Scheduler::ALL {
            let by_program = Scheduler::named(scheduler.program().into());
            assert_eq!(by_program.is_some(), scheduler != Scheduler::Systemd);
        }
    }
}

//! `push --recurse-submodules`: checks or pushes the submodules that new commits refer to.

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use bstr::{BStr, BString, ByteSlice};
use pronto::config::{Config, value};
use pronto::environment::variables_of_repository;
use pronto::push::{self, Options, Outcome, PushRemote, PushSpec, PushStep};
use pronto::{ErrorKind, ObjectId, Repository, Watch, path, submodules};

use crate::maintenance::own_program;
use crate::{CliError, Context};

/// The value with which a submodule is pushed. Under this value, `push.recurseSubmodules=only`
/// means `on-demand`, because the submodule itself must be pushed.
const WITHIN: &str = "only-is-on-demand";

/// The recursion mode of a push (`--recurse-submodules`, `push.recurseSubmodules`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Recursion {
    /// Ignores submodules (`no`).
    #[default]
    Off,
    /// Fails if submodules have unpushed commits (`check`).
    Check,
    /// Pushes the submodules first (`on-demand`).
    OnDemand,
    /// Pushes only the submodules (`only`).
    Only,
}

/// Returns the mode from the configuration and the values of `--recurse-submodules`, of which the
/// last one counts.
///
/// # Errors
/// Fails if a value is unknown to Git.
pub(super) fn choose(
    given: &[String],
    config: &Config,
    context: &mut Context,
) -> Result<Recursion, CliError> {
    let mut recursion = Recursion::default();
    for entry in config.iter() {
        match entry.key.as_bytes() {
            b"push.recursesubmodules" => recursion = parse(entry.value, &entry.key.to_string())?,
            b"submodule.recurse" => {
                recursion = match value::parse_bool(entry.value) {
                    Some(true) => Recursion::OnDemand,
                    Some(false) => Recursion::Off,
                    None => {
                        config.bool("submodule.recurse")?;
                        recursion
                    }
                }
            }
            _ => {}
        }
    }
    for value in given {
        if value != WITHIN {
            recursion = parse(Some(value.as_str().into()), "recurse-submodules")?;
        } else if recursion == Recursion::Only {
            context.warn(
                "recursing into submodule with push.recurseSubmodules=only; using on-demand instead",
            );
            recursion = Recursion::OnDemand;
        }
    }
    Ok(recursion)
}

fn parse(text: Option<&BStr>, name: &str) -> Result<Recursion, CliError> {
    let known = match text.map(|text| text.as_bytes()) {
        Some(b"on-demand") => Some(Recursion::OnDemand),
        Some(b"check") => Some(Recursion::Check),
        Some(b"only") => Some(Recursion::Only),
        _ => None,
    };
    match value::parse_bool(text) {
        Some(false) => Ok(Recursion::Off),
        None if known.is_some() => Ok(known.unwrap_or_default()),
        _ => {
            let shown = text.unwrap_or("(null)".into());
            Err(CliError::fatal(format!("bad {name} argument: {shown}")))
        }
    }
}

/// A push together with its submodule mode.
pub(super) struct SubmodulePush<'a> {
    pub(super) repository: &'a Repository,
    pub(super) destination: &'a PushRemote,
    pub(super) options: &'a Options,
    pub(super) recursion: Recursion,
}

impl SubmodulePush<'_> {
    /// Pushes to `url`. Submodules are pushed before, if the mode requests that.
    pub(super) fn push(
        &self,
        url: &BStr,
        watch: &Watch<'_>,
        context: &mut Context,
    ) -> Result<Outcome, CliError> {
        let mut failure = None;
        // The call can be handed to git as long as nothing has been sent, for example if the URL is
        // a server of plain files.
        let mut may_hand_over = self
            .destination
            .urls
            .first()
            .is_some_and(|first| first == url);
        let mut prepare = |tips: &[ObjectId]| {
            may_hand_over = false;
            self.prepare(tips, watch, context).map_err(|error| {
                failure = Some(error);
                pronto::Error::new(ErrorKind::Refused, "the submodules were not pushed")
            })
        };
        let (destination, options) = (self.destination, self.options);
        let pushed = push::push_after(
            self.repository,
            destination,
            url,
            options,
            &mut prepare,
            watch,
        );
        match failure {
            Some(failure) => Err(failure),
            None if may_hand_over => pushed.map_err(CliError::of),
            None => Ok(pushed?),
        }
    }

    fn prepare(
        &self,
        tips: &[ObjectId],
        watch: &Watch<'_>,
        context: &mut Context,
    ) -> Result<PushStep, CliError> {
        let next = match self.recursion {
            Recursion::Off => return Ok(PushStep::Send),
            Recursion::Only => PushStep::Keep,
            Recursion::Check | Recursion::OnDemand => PushStep::Send,
        };
        if self.repository.is_bare() {
            return Ok(next);
        }
        let pushes = self.recursion != Recursion::Check;
        if pushes {
            let paths = self.unpushed(tips, watch, context)?;
            self.push_all(&paths, context)?;
        }
        if pushes && self.options.dry_run {
            return Ok(next);
        }
        let left = self.unpushed(tips, watch, context)?;
        match left.is_empty() {
            true => Ok(next),
            false => Err(refuse(&left, context)),
        }
    }

    fn unpushed(
        &self,
        tips: &[ObjectId],
        watch: &Watch<'_>,
        context: &mut Context,
    ) -> Result<Vec<BString>, CliError> {
        let remote = self.destination.name.as_bstr();
        let found = submodules::unpushed(self.repository, tips, remote, watch).map_err(fatal)?;
        for collision in &found.collisions {
            context.warn(&collision.to_string());
        }
        Ok(found.paths)
    }

    /// Pushes the submodules at `paths`, if the remote and the refspecs apply to all of them.
    fn push_all(&self, paths: &[BString], context: &mut Context) -> Result<(), CliError> {
        if self.destination.is_named() && !paths.is_empty() {
            let head = self.repository.refs().head()?;
            let (remote, specs) = (self.destination.name.as_bstr(), &self.options.specs);
            for path in paths {
                let module = self.open(path)?;
                if let Err(error) = submodules::check_push(&module, head.name(), remote, specs) {
                    context.out.flush()?;
                    context.remark(&format!("fatal: {error}"));
                    let message = format!("process for submodule '{path}' failed");
                    return Err(CliError::fatal(message));
                }
            }
        }
        let mut is_done = true;
        for path in paths {
            context.remark(&format!("Pushing submodule '{path}'"));
            if !self.push_one(path, context)? {
                context.remark(&format!("Unable to push submodule '{path}'"));
                is_done = false;
            }
        }
        match is_done {
            true => Ok(()),
            false => Err(CliError::fatal("failed to push all needed submodules")),
        }
    }

    fn open(&self, path: &BString) -> Result<Repository, CliError> {
        let module = submodules::open(self.repository, path.as_bstr()).map_err(fatal)?;
        module.ok_or_else(|| CliError::fatal(format!("no repository in submodule '{path}'")))
    }

    /// Pushes the submodule at `path` in a process of its own. Returns whether the push succeeded.
    fn push_one(&self, path: &BString, context: &mut Context) -> Result<bool, CliError> {
        self.open(path)?;
        let mut command = own_program(context)?;
        for variable in variables_of_repository() {
            command.env_remove(variable);
        }
        command.arg("push");
        command.arg(format!("--recurse-submodules={WITHIN}"));
        if self.options.dry_run {
            command.arg("--dry-run");
        }
        for option in &self.options.push_options {
            let argument = [&b"--push-option="[..], option].concat();
            command.arg(OsStr::from_bytes(&argument));
        }
        if self.destination.is_named() {
            command.arg(OsStr::from_bytes(&self.destination.name));
            for spec in &self.options.specs {
                command.arg(OsStr::from_bytes(&text_of(spec)));
            }
        }
        let top = self.repository.require_work_tree()?;
        command
            .env("GIT_DIR", ".git")
            .current_dir(top.join(path::borrow(path)))
            .stdin(Stdio::null())
            .stdout(context.stdout_of_children());
        context.out.flush()?;
        let traced = pronto_io::child::started_as("?", context.program(), &command);
        let cannot = |error: std::io::Error| {
            let reason = pronto_io::error::reason(&error);
            CliError::fatal(format!("cannot push submodule '{path}': {reason}"))
        };
        let mut child = command.spawn().map_err(cannot)?;
        let status = child.wait().map_err(cannot)?;
        traced.ended(child.id(), status);
        Ok(status.success())
    }
}

/// Converts the error of a submodule that is missing or cannot be examined. The call is not handed
/// to git, because submodules may have been pushed.
fn fatal(error: pronto::Error) -> CliError {
    match error.kind() {
        ErrorKind::Unsupported => CliError::fatal(error.to_string()),
        _ => CliError::of(error),
    }
}

/// Lists the submodules at `paths` that have unpushed commits, and returns the error that ends the
/// push.
fn refuse(paths: &[BString], context: &mut Context) -> CliError {
    let mut text = BString::from(
        "The following submodule paths contain changes that can\nnot be found on any remote:\n",
    );
    for path in paths {
        text.extend_from_slice(b"  ");
        text.extend_from_slice(path);
        text.push(b'\n');
    }
    text.extend_from_slice(
        b"\nPlease try\n\n\tgit push --recurse-submodules=on-demand\n\nor cd to the path and use\n\n\
          \tgit push\n\nto push them to a remote.\n",
    );
    context.remark(&text.to_string());
    CliError::fatal("Aborting.")
}

/// Formats a refspec.
fn text_of(spec: &PushSpec) -> Vec<u8> {
    let mut text = Vec::new();
    match (spec.force, spec.negative) {
        (true, _) => text.push(b'+'),
        (_, true) => text.push(b'^'),
        _ => {}
    }
    text.extend_from_slice(&spec.source);
    if let Some(destination) = &spec.destination {
        text.push(b':');
        text.extend_from_slice(destination);
    }
    text
}

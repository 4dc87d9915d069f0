//! The first message of the server.

use std::collections::HashSet;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_wire::advertisement::Version;
use pronto_wire::capabilities::AGENT;
use pronto_wire::receive::{Advertisement, Offer};

use super::settings::Settings;
use super::{Options, bands};
use crate::remote::connection::from_wire;
use crate::{Error, ErrorKind, Repository, Result, path};
use pronto_repository::{Notice, PushNotice};

/// The features that the settings let the client choose.
pub(super) fn offer(repository: &Repository, settings: &Settings) -> Offer {
    Offer {
        hash: repository.object_hash(),
        atomic: settings.advertise_atomic,
        push_options: settings.advertise_push_options,
    }
}

/// Sends refs and `features`.
pub(super) fn advertise(
    repository: &Repository,
    options: &Options,
    settings: &Settings,
    features: String,
    out: &mut (dyn Write + Send),
) -> Result<()> {
    if options.version == Version::V1 {
        let mut line = Vec::new();
        bands::packet(&mut line, b"version 1\n")?;
        bands::send(out, &line)?;
    }
    let hash = repository.object_hash();
    let mut message = Advertisement::new(hash, features);
    let mut seen = HashSet::new();
    let namespace = repository.refs().namespace();
    repository.refs().for_each("refs/", |reference| {
        let name = reference.name.strip_prefix(namespace.as_bytes());
        let name = name.map(BStr::new);
        if settings.hidden.hides_in(name, reference.name) {
            return Ok(ControlFlow::Continue(()));
        }
        let is_new = seen.insert(reference.id);
        match name {
            Some(name) => message.add(&reference.id, name).map_err(from_wire)?,
            // What the client need not send, though it may not see the name.
            None if is_new => message
                .add(&reference.id, ".have".into())
                .map_err(from_wire)?,
            None => {}
        }
        Ok(ControlFlow::Continue(()))
    })?;
    // What a view borrows is the repository itself: its refs are there, and those that are hidden must stay so.
    if options.landing.is_none() {
        for_each_alternate_tip(repository, &mut |id| {
            if seen.insert(id) {
                message.add(&id, ".have".into()).map_err(from_wire)?;
            }
            Ok(())
        })?;
    }
    let shallow = repository.shallow_commits()?;
    let message = message.finish(shallow).map_err(from_wire)?;
    bands::send(out, &message)
}

/// The features that are offered; `nonce` is to be signed by clients that sign their pushes.
pub(super) fn features(
    repository: &Repository,
    settings: &Settings,
    nonce: Option<&str>,
) -> String {
    let mut words = String::from("report-status report-status-v2 delete-refs side-band-64k quiet");
    if settings.advertise_atomic {
        words.push_str(" atomic");
    }
    if settings.offset_deltas {
        words.push_str(" ofs-delta");
    }
    if let Some(nonce) = nonce {
        words.push_str(&format!(" push-cert={nonce}"));
    }
    if settings.advertise_push_options {
        words.push_str(" push-options");
    }
    let format = repository.object_hash();
    words.push_str(&format!(" object-format={format} agent={AGENT}"));
    words
}

/// Calls `visit` for what the refs of the repositories lead to whose objects are borrowed.
///
/// # Errors
/// `visit` failed.
pub(super) fn for_each_alternate_tip(
    repository: &Repository,
    visit: &mut dyn FnMut(ObjectId) -> Result<()>,
) -> Result<()> {
    let alternates = repository.objects()?.alternates().to_vec();
    for objects in &alternates {
        if let Some(git_dir) = repository_of(objects) {
            for id in tips_of(repository, &git_dir)? {
                visit(id)?;
            }
        }
    }
    Ok(())
}

/// The repository that an object directory belongs to.
fn repository_of(objects: &Path) -> Option<PathBuf> {
    let real = std::fs::canonicalize(objects).ok()?;
    let git_dir = real.parent().filter(|_| real.ends_with("objects"))?;
    git_dir.join("refs").is_dir().then(|| git_dir.to_owned())
}

/// The objects that the refs of the repository at `git_dir` lead to, as far as the settings choose them.
fn tips_of(repository: &Repository, git_dir: &Path) -> Result<Vec<ObjectId>> {
    let config = repository.config();
    if let Some(command) = config.string("core.alternaterefscommand")? {
        return tips_by_command(repository, command, git_dir);
    }
    let prefixes = config.string("core.alternaterefsprefixes")?;
    let prefixes: Vec<&[u8]> = match prefixes {
        Some(prefixes) => prefixes.fields().collect(),
        None => vec![&b"refs/"[..]],
    };
    let mut environment = repository.environment().clone();
    for name in crate::environment::LOCAL_VARIABLES {
        environment.remove(name);
    }
    // What cannot be opened offers nothing.
    let Ok(other) = Repository::open(git_dir, &environment) else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    let listed = other.refs().for_each("refs/", |reference| {
        let fits = |prefix: &&[u8]| {
            let rest = reference
                .name
                .strip_prefix(prefix.trim_end_with(|c| c == '/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        };
        if prefixes.iter().any(fits) {
            found.push(reference.id);
        }
        Ok(ControlFlow::Continue(()))
    });
    // What was read before a broken file helps, too.
    let _ = listed;
    Ok(found)
}

/// The ids that `core.alternateRefsCommand` prints, one a line.
fn tips_by_command(
    repository: &Repository,
    command: &BStr,
    git_dir: &Path,
) -> Result<Vec<ObjectId>> {
    let mut script = command.to_vec();
    script.extend_from_slice(b" \"$@\"");
    let script = BString::from(script);
    let mut child = pronto_io::child::shell(path::borrow(script.as_bstr()), path::borrow(command));
    child.arg(git_dir).current_dir(repository.git_dir());
    for name in crate::environment::LOCAL_VARIABLES {
        child.env_remove(name);
    }
    let traced = pronto_io::child::started("?", &child);
    let output = child.stderr(std::process::Stdio::inherit()).output();
    let output = output.map_err(|error| {
        Error::new(ErrorKind::Io, format!("cannot run {command}")).because(error)
    })?;
    let _ = traced;
    let mut found = Vec::new();
    for line in output.stdout.lines() {
        match pronto_hash::parse_hex(line) {
            Ok(id) if id.kind() == repository.object_hash() => found.push(id),
            _ => {
                let notice = PushNotice::MalformedAlternateRef(line.into());
                repository.notify(Notice::Push(notice));
                break;
            }
        }
    }
    Ok(found)
}

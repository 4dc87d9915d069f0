//! Sends the advertisement of refs and capabilities.

use std::collections::HashSet;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_wire::advertisement::ProtocolVersion;
use pronto_wire::capabilities::AGENT;
use pronto_wire::receive::{Advertisement, ServerFeatures};

use super::settings::Settings;
use super::{Options, bands};
use crate::remote::connection::from_wire;
use crate::{Error, ErrorKind, Repository, Result, path};
use pronto_repository::{Notice, PushNotice};

/// Returns the capabilities that the settings offer to the client.
pub(super) fn offer(repository: &Repository, settings: &Settings) -> ServerFeatures {
    ServerFeatures {
        hash: repository.object_hash(),
        atomic: settings.advertise_atomic,
        push_options: settings.advertise_push_options,
    }
}

/// Sends the refs and the capabilities `features`.
pub(super) fn advertise(
    repository: &Repository,
    options: &Options,
    settings: &Settings,
    features: String,
    out: &mut (dyn Write + Send),
) -> Result<()> {
    if options.version == ProtocolVersion::V1 {
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
            // The object of a hidden ref, which the client need not send.
            None if is_new => message
                .add(&reference.id, ".have".into())
                .map_err(from_wire)?,
            None => {}
        }
        Ok(ControlFlow::Continue(()))
    })?;
    // The alternate of a view is the repository itself: its refs are advertised already, and hidden
    // refs must stay hidden.
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

/// Returns the advertised capabilities. Clients sign `nonce` in a signed push.
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

/// Calls `visit` for the tips of the refs of alternates.
///
/// # Errors
/// Fails with the error of `visit`.
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

/// Returns the repository that an object directory belongs to.
fn repository_of(objects: &Path) -> Option<PathBuf> {
    let real = std::fs::canonicalize(objects).ok()?;
    let git_dir = real.parent().filter(|_| real.ends_with("objects"))?;
    git_dir.join("refs").is_dir().then(|| git_dir.to_owned())
}

/// Returns the tips of the refs of the repository at `git_dir` that the settings select
/// (`core.alternateRefsPrefixes`).
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
    // A repository that cannot be opened has no usable tips.
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
    // The tips that were read before an error are still useful.
    let _ = listed;
    Ok(found)
}

/// Returns the ids that `core.alternateRefsCommand` prints, one on each line.
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

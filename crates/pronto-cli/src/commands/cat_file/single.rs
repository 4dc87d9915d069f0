//! A query about one object, named on the command line.

use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;

use bstr::{BStr, ByteSlice as _};
use gix_object::Kind as ObjectKind;
use pronto::Repository;
use pronto::revision::ExpectedType;
use pronto_hash::ObjectId;
use pronto_odb::{ObjectData, Store};

use super::Query;
use crate::{CliError, Context, ExitCode, fallback};

/// The largest number of tags and commits that are followed to an object of the wanted type.
const MAX_PEEL_DEPTH: usize = 1024;

/// Prints the answer to `query` about `object`.
pub(super) fn query(
    query: Query,
    object: &OsStr,
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    let store = repository.objects()?;
    let name = object.as_bytes().as_bstr();
    let id = resolve(&repository, name)?;
    if query == Query::Exists {
        let exists = store.contains(&id)?;
        if !exists {
            refuse_partial_clones(&repository)?;
        }
        return Ok(if exists {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        });
    }
    let Some(header) = store.header(&id).map_err(damaged)? else {
        refuse_partial_clones(&repository)?;
        return Err(CliError::fatal(match query {
            Query::Pretty => format!("Not a valid object name {name}"),
            _ => "git cat-file: could not get object info".to_owned(),
        }));
    };
    match query {
        Query::Kind => writeln!(context.out, "{}", header.kind)?,
        Query::Size => writeln!(context.out, "{}", header.size)?,
        Query::Pretty if header.kind == ObjectKind::Tree => {
            print_tree(&repository, store, &id, context)?;
        }
        Query::Pretty | Query::Exists => print(&repository, store, &id, name, context)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the content of `object`, peeled to an object of type `kind`.
pub(super) fn content(
    kind: &OsStr,
    object: &OsStr,
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    let store = repository.objects()?;
    let name = object.as_bytes().as_bstr();
    let id = resolve(&repository, name)?;
    let wanted = ObjectKind::from_bytes(kind.as_bytes()).map_err(|_| {
        CliError::fatal(format!(
            "invalid object type \"{}\"",
            crate::error::display(kind)
        ))
    })?;
    match peel(store, id, wanted)? {
        Some(id) => print(&repository, store, &id, name, context)?,
        None => {
            if store.header(&id)?.is_none() {
                refuse_partial_clones(&repository)?;
            }
            return Err(bad_file(name));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn resolve(repository: &Repository, name: &BStr) -> Result<ObjectId, CliError> {
    // In the arguments of `cat-file`, Git treats `:/TEXT` as a path and not as a search in commit
    // messages, and no index has that path.
    let is_search = name.starts_with(b":/") && name.len() > 2;
    if !is_search {
        if let Some(found) = repository.look_up(name, ExpectedType::Anything)? {
            return Ok(found.id);
        }
        repository.explain_missing(name)?;
    }
    Err(CliError::fatal(format!("Not a valid object name {name}")))
}

/// Hands calls in partial clones to git, which can fetch a missing object.
fn refuse_partial_clones(repository: &Repository) -> Result<(), CliError> {
    match repository.has_promisor()? {
        true => Err(CliError::unsupported("'cat-file' in a partial clone")),
        false => Ok(()),
    }
}

/// Returns the error for an object that cannot be read. git reports the damage in its own words.
fn damaged(error: pronto_odb::Error) -> CliError {
    match error.kind() {
        pronto_odb::ErrorKind::UnknownType => CliError::fatal(error.message()),
        pronto_odb::ErrorKind::Corrupt if fallback::is_possible() => CliError::lacking(error),
        _ => error.into(),
    }
}

fn bad_file(name: &BStr) -> CliError {
    CliError::fatal(format!("git cat-file {name}: bad file"))
}

/// Peels `id` through tags, and from commits to their trees, to an object of type `wanted`.
fn peel(store: &Store, id: ObjectId, wanted: ObjectKind) -> Result<Option<ObjectId>, CliError> {
    let mut id = id;
    let mut buffer = Vec::new();
    for _ in 0..MAX_PEEL_DEPTH {
        let Some(header) = store.header(&id).map_err(damaged)? else {
            return Ok(None);
        };
        let field: &[u8] = match header.kind {
            kind if kind == wanted => return Ok(Some(id)),
            ObjectKind::Tag => b"object ",
            ObjectKind::Commit => b"tree ",
            ObjectKind::Blob | ObjectKind::Tree => return Ok(None),
        };
        store.find(&id, &mut buffer).map_err(damaged)?;
        let next = buffer
            .strip_prefix(field)
            .and_then(|rest| rest.get(..id.kind().len_in_hex()))
            .and_then(|hex| pronto_hash::parse_hex(hex).ok());
        match next {
            Some(next) => id = next,
            None => return Ok(None),
        }
    }
    Ok(None)
}

fn print(
    repository: &Repository,
    store: &Store,
    id: &ObjectId,
    name: &BStr,
    context: &mut Context,
) -> Result<(), CliError> {
    let mut content = Vec::new();
    let threshold = big_file_threshold(repository)?;
    let found = store.find_or_stream(id, threshold, &mut content);
    match found.map_err(damaged)? {
        Some(ObjectData::Whole(_)) => context.out.write_all(&content)?,
        Some(ObjectData::Large(mut reader)) => {
            copy(&mut reader, id, context)?;
        }
        None => return Err(bad_file(name)),
    }
    Ok(())
}

/// Returns `core.bigFileThreshold`, the size from which on blobs are streamed and not held in
/// memory.
pub(super) fn big_file_threshold(repository: &Repository) -> Result<u64, CliError> {
    let configured = repository.config().u64("core.bigfilethreshold")?;
    Ok(configured.unwrap_or(512 << 20))
}

/// Prints the whole content of `reader`, block by block.
pub(super) fn copy(
    reader: &mut dyn std::io::Read,
    id: &ObjectId,
    context: &mut Context,
) -> Result<(), CliError> {
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(len) => context.out.write_all(&buffer[..len])?,
            Err(error) => {
                return Err(CliError::fatal(format!(
                    "unable to stream {id} to stdout: {error}"
                )));
            }
        }
    }
}

/// Prints a tree in the format of `ls-tree`.
fn print_tree(
    repository: &Repository,
    store: &Store,
    id: &ObjectId,
    context: &mut Context,
) -> Result<(), CliError> {
    let quote_all = repository.config().bool_or("core.quotepath", true)?;
    let mut content = Vec::new();
    store.find(id, &mut content).map_err(damaged)?;
    let mut line = Vec::new();
    for entry in gix_object::TreeRefIter::from_bytes(&content, store.kind()) {
        let entry = entry.map_err(|_| CliError::fatal(format!("bad tree object {id}")))?;
        let mode = entry.mode.value();
        let kind = match mode & 0o170_000 {
            0o040_000 => "tree",
            0o160_000 => "commit",
            _ => "blob",
        };
        line.clear();
        write!(line, "{mode:06o} {kind} {}\t", entry.oid)?;
        pronto::quote::c_quote_into(entry.filename, quote_all, &mut line);
        line.push(b'\n');
        context.out.write_all(&line)?;
    }
    Ok(())
}

//! Writes the lists of packs and refs for servers without Git support (`git update-server-info`).

use std::ops::ControlFlow;
use std::path::Path;

use bstr::{BString, ByteSlice};
use pronto_config::shared;
use pronto_hash::ObjectId;
use pronto_io::cleanup::Guard;
use pronto_io::error::IoContext as _;
use pronto_repository::{ErrorKind, Repository, Result};

use crate::pack_objects::known_packs;

/// Writes `info/refs` and `objects/info/packs`, unless their content is up to date.
///
/// # Errors
/// Fails with [`ErrorKind::Reference`] if refs cannot be read, or [`ErrorKind::Io`] if a file cannot be
/// written.
pub fn update_server_info(repository: &Repository) -> Result<()> {
    let mut refs: Vec<(BString, ObjectId)> = Vec::new();
    repository.refs().for_each("refs/", |reference| {
        refs.push((reference.name.into(), reference.id));
        Ok(ControlFlow::Continue(()))
    })?;
    let mut text = Vec::new();
    for (name, id) in refs {
        let name: &[u8] = name.as_ref();
        text.extend_from_slice(format!("{id}\t").as_bytes());
        text.extend_from_slice(name);
        text.push(b'\n');
        if let Some(peeled) = repository.peel_tag(id)?.filter(|peeled| *peeled != id) {
            text.extend_from_slice(format!("{peeled}\t").as_bytes());
            text.extend_from_slice(name);
            text.extend_from_slice(b"^{}\n");
        }
    }
    replace(
        repository,
        &repository.common_dir().join("info/refs"),
        &text,
    )?;
    let packs = known_packs(repository)?;
    let own = packs.iter().filter(|pack| pack.is_own);
    let mut names: Vec<BString> = own.map(|pack| pack.name()).collect();
    let objects = repository.objects_dir();
    let path = objects.join("info/packs");
    // Listed packs keep their order, unless one of them was removed.
    let before = std::fs::read(&path).unwrap_or_default();
    let known = before.lines().filter_map(|line| line.strip_prefix(b"P "));
    let known: Vec<&[u8]> = known.collect();
    let place = |name: &BString| known.iter().position(|known| *known == name.as_slice());
    if (known.iter()).all(|known| names.iter().any(|name| name == *known)) {
        names.sort_by_key(|name| place(name).unwrap_or(usize::MAX));
    }
    let mut text = Vec::new();
    for name in names {
        text.extend_from_slice(b"P ");
        text.extend_from_slice(&name);
        text.push(b'\n');
    }
    text.push(b'\n');
    replace(repository, &path, &text)
}

/// Replaces the content of the file by `text`, if it differs.
fn replace(repository: &Repository, path: &Path, text: &[u8]) -> Result<()> {
    if std::fs::read(path).is_ok_and(|before| before == text) {
        return Ok(());
    }
    let failed = "unable to update";
    let sharing = repository.objects()?.options().sharing;
    if let Some(directory) = path.parent().filter(|directory| !directory.is_dir()) {
        std::fs::create_dir_all(directory).context(ErrorKind::Io, failed, path)?;
        shared::adjust(sharing, directory)?;
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!("_{:x}", std::process::id()));
    let temporary = Path::new(&name);
    let guard = Guard::new(temporary);
    std::fs::write(temporary, text).context(ErrorKind::Io, failed, path)?;
    shared::adjust(sharing, temporary)?;
    std::fs::rename(temporary, path).context(ErrorKind::Io, failed, path)?;
    guard.keep();
    Ok(())
}

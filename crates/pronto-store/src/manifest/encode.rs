//! Encodes manifests.

use std::io::Write as _;

use bytes::Bytes;

use super::{Manifest, TableStorage, check};
use crate::digest::Digest;
use crate::generations::MOST_MANIFEST_BYTES;
use crate::{Error, ErrorKind, Result};

/// The first line.
pub(super) const FIRST_LINE: &str = "pronto generation 1\n";

impl Manifest {
    /// Returns the encoded manifest.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Unsupported`] if the repository has more packs, tables or
    /// configuration than a manifest can contain.
    pub fn encode(&self) -> Result<Bytes> {
        let mut out = Vec::with_capacity(1024 + 400 * self.packs.len() + self.inline_bytes());
        let written = self.write(&mut out);
        written.map_err(|error| Error::new(ErrorKind::Io, "cannot write").because(error))?;
        let digest = Digest::of(&out);
        out.extend_from_slice(format!("checksum {digest}\n").as_bytes());
        let refuse = |why: String| Err(Error::new(ErrorKind::Unsupported, why));
        if let Err(why) = check(self) {
            return refuse(format!("cannot write generation {}: {why}", self.number));
        }
        if out.len() as u64 > MOST_MANIFEST_BYTES
            || self.packs.len() > super::MOST_PACKS
            || self.tables.len() > super::MOST_TABLES
            || self.layers.len() > super::MOST_LAYERS
            || self.drops.len() > super::MOST_DROPS
            || self.config.len() > super::MOST_CONFIG_BYTES
        {
            let why = format!("generation {} has too many packs or tables", self.number);
            let hint = "run 'pronto store upkeep' for this repository";
            return Err(Error::new(ErrorKind::Unsupported, why).with_hint(hint));
        }
        Ok(out.into())
    }

    fn write(&self, out: &mut Vec<u8>) -> std::io::Result<()> {
        out.write_all(FIRST_LINE.as_bytes())?;
        writeln!(out, "repository {}", self.repository)?;
        writeln!(out, "number {}", self.number)?;
        if let Some(replaces) = self.replaces {
            writeln!(out, "replaces {replaces}")?;
        }
        writeln!(out, "writer {:016x} nonce {}", self.writer, self.nonce)?;
        writeln!(out, "time {}", self.time_ms)?;
        writeln!(out, "hash {}", self.hash)?;
        writeln!(out, "retention {}", self.policy.retention_seconds)?;
        writeln!(out, "grace {}", self.policy.grace_seconds)?;
        writeln!(out, "dropped {}", self.dropped)?;
        writeln!(out, "pruned {}", self.pruned)?;
        if self.is_removed {
            writeln!(out, "removed")?;
        }
        writeln!(out, "config {}", self.config.len())?;
        out.write_all(&self.config)?;
        out.write_all(b"\n")?;
        for pack in &self.packs {
            let flags = if pack.is_promisor { "promisor" } else { "-" };
            let (id, upload, objects) = (pack.id, pack.upload, pack.objects);
            writeln!(out, "pack {id} {upload} {objects} {flags}")?;
            for file in &pack.files {
                let kind = file.kind.extension();
                writeln!(out, "file {kind} {} {}", file.size_bytes, file.digest)?;
            }
        }
        for layer in &self.layers {
            let (kind, id, upload) = (layer.kind.word(), layer.id, layer.upload);
            let (size, digest) = (layer.size_bytes, layer.digest);
            writeln!(out, "layer {kind} {id} {upload} {size} {digest}")?;
        }
        for table in &self.tables {
            let (min, max, upload) = (table.min, table.max, table.upload);
            match &table.place {
                TableStorage::Object { size_bytes, digest } => {
                    writeln!(out, "table {min} {max} {upload} {size_bytes} {digest}")?;
                }
                TableStorage::Inline(bytes) => {
                    writeln!(out, "inline {min} {max} {upload} {}", bytes.len())?;
                    out.write_all(bytes)?;
                    out.write_all(b"\n")?;
                }
            }
        }
        for name in &self.drops {
            writeln!(out, "drop {name}")?;
        }
        Ok(())
    }
}

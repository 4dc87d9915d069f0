//! Receives the pack of a push into a quarantine.

use std::io::Read;

use pronto_io::cleanup::Guard;
use pronto_odb::Quarantine;
use pronto_pack::indexer::{self, ExistingObjects, IndexContext, Inspect, index_stream};
use pronto_storage::fsck::{FsckInspector, InspectionScope, Levels};
use pronto_wire::reader::PacketReader;

use super::ReceivedPush;
use super::bands::ProgramLine;
use crate::objects::from_odb;
use crate::packs;
use crate::{Error, ErrorKind, Result};
use pronto_repository::{Notice, PushNotice};

/// The length of a pack header: signature, version, and number of objects.
const HEADER_LEN: usize = 12;

/// The largest blob that is reconstructed from a delta, if the sizes of objects are limited.
const MOST_MADE_BYTES: u64 = 4 << 30;

/// The raw bytes that follow the commands.
struct RawInput<'a, 'r>(&'a mut PacketReader<&'r mut dyn Read>);

impl Read for RawInput<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let bytes = self.0.raw().map_err(|error| {
            let kind = std::io::ErrorKind::UnexpectedEof;
            std::io::Error::new(kind, error.to_string())
        })?;
        let count = bytes.len().min(buffer.len());
        let (Some(to), Some(from)) = (buffer.get_mut(..count), bytes.get(..count)) else {
            return Ok(0);
        };
        to.copy_from_slice(from);
        self.0.consume_raw(count);
        Ok(count)
    }
}

/// The reason why a pack is refused: the error of the Git program that would process it, and the
/// name of the program.
struct RejectedPack {
    error: Error,
    program: &'static str,
}

impl ReceivedPush<'_> {
    /// Receives the pack. Returns the message for the report if the pack is refused.
    pub(super) fn unpack(
        &mut self,
        packets: &mut PacketReader<&mut dyn Read>,
    ) -> Result<Option<String>> {
        let mut raw = RawInput(packets);
        let mut header = Vec::with_capacity(HEADER_LEN);
        let read = (&mut raw).take(HEADER_LEN as u64).read_to_end(&mut header);
        let count = match (read, parse_header(&header)) {
            (Ok(_), Ok(count)) => count,
            (_, Err(reason)) => return Ok(Some(reason.to_owned())),
            (Err(_), _) => return Ok(Some(EARLY_END.to_owned())),
        };
        let store = self.repository.objects()?;
        let quarantine = match Quarantine::begin(store) {
            Ok(quarantine) => quarantine,
            Err(error) => {
                self.bands.error(&error.to_string());
                let reason = "unable to create temporary object directory";
                return Ok(Some(reason.to_owned()));
            }
        };
        let mut input = header.chain(raw);
        let taken = self.take(&mut input, count, &quarantine);
        self.bands.show_progress(false);
        self.quarantine = Some(quarantine);
        match taken? {
            None => Ok(None),
            Some(refusal) => {
                self.bands
                    .program_line(ProgramLine::Fatal, refusal.error.message());
                Ok(Some(format!("{} abnormal exit", refusal.program)))
            }
        }
    }

    /// Indexes or unpacks the pack, and checks its objects if the settings request that
    /// (`receive.fsckObjects`).
    fn take(
        &mut self,
        input: &mut dyn Read,
        count: u32,
        quarantine: &Quarantine,
    ) -> Result<Option<RejectedPack>> {
        let unpacks = count < self.settings.unpack_limit;
        let program = match unpacks {
            true => "unpack-objects",
            false => "index-pack",
        };
        let levels = match self.levels() {
            Ok(levels) => levels,
            Err(error) => return Ok(Some(RejectedPack { error, program })),
        };
        let shallow = self.all_cuts()?;
        let inspector = levels.as_ref().map(|levels| {
            let scope = InspectionScope {
                objects: true,
                links: true,
                shallow: Some(&shallow),
                store: Some(quarantine.store()),
                ..InspectionScope::default()
            };
            FsckInspector::new(self.repository.object_hash(), levels, scope)
        });
        let inspect = inspector
            .as_ref()
            .map(|inspector| inspector as &dyn Inspect);
        let arrived = || self.bands.begin_waiting();
        let context = IndexContext {
            inspect,
            progress: self.bands,
            interrupt: Some(self.interrupt),
            arrived: Some(&arrived),
            ..IndexContext::default()
        };
        let taken = match unpacks {
            true => self.unpack_loose(input, quarantine, &context),
            false => self.index(input, quarantine, &context),
        };
        for report in inspector.iter().flat_map(FsckInspector::take_reports) {
            let kind = match report.is_error {
                true => ProgramLine::Error,
                false => ProgramLine::Warning,
            };
            self.bands.program_line(kind, &report.to_string());
        }
        match taken {
            Ok(keep) => {
                self.keep = keep;
                Ok(None)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Err(error),
            Err(error) => Ok(Some(RejectedPack {
                error: self.with_reason(error),
                program,
            })),
        }
    }

    /// Replaces the message of `error` by the server's reason if the pack exceeds the server's
    /// limit.
    fn with_reason(&self, error: Error) -> Error {
        match &self.options.pack_limit {
            Some(limit)
                if error.kind() == ErrorKind::PackTooLarge
                    && self.max_input_bytes() == Some(limit.bytes) =>
            {
                Error::new(ErrorKind::PackTooLarge, limit.reason.clone())
            }
            _ => error,
        }
    }

    /// Returns the size limit for the pack: the smaller one of the repository's
    /// (`receive.maxInputSize`) and the server's.
    fn max_input_bytes(&self) -> Option<u64> {
        let own = self.settings.max_input_bytes;
        let limit = self.options.pack_limit.as_ref().map(|limit| limit.bytes);
        own.into_iter().chain(limit).min()
    }

    fn unpack_loose(
        &self,
        input: &mut dyn Read,
        quarantine: &Quarantine,
        context: &IndexContext<'_>,
    ) -> Result<Option<Guard>> {
        let options = self.pack_options(quarantine)?;
        let unpacked = quarantine.store().unpack(input, &options, context);
        unpacked.map(|_| None).map_err(from_pack)
    }

    /// Indexes the pack. Returns the `.keep` file, which exists once the pack is published.
    fn index(
        &mut self,
        input: &mut dyn Read,
        quarantine: &Quarantine,
        context: &IndexContext<'_>,
    ) -> Result<Option<Guard>> {
        let mut options = self.pack_options(quarantine)?;
        options.fix_thin = !self.options.refuses_thin;
        options.forbid_duplicates = self.settings.checks_objects;
        // A view is never repacked.
        options.keep = self.options.landing.is_none().then(|| self.keep_text());
        let inventory = self.repository.objects()?.inventory().map_err(from_odb)?;
        let context = IndexContext {
            existing: Some(&inventory as &dyn ExistingObjects),
            ..*context
        };
        let directory = quarantine.pack_directory();
        let outcome = index_stream(input, &directory, &options, &context);
        let outcome = outcome.map_err(from_pack)?;
        let packs = self.repository.objects_dir().join("pack");
        self.pack = outcome.pack.file_name().map(|name| packs.join(name));
        let name = outcome.keep.as_deref().and_then(std::path::Path::file_name);
        let published = name.map(|name| packs.join(name));
        // An existing `.keep` file was created by the user.
        let own = published.filter(|file| file.symlink_metadata().is_err());
        Ok(own.map(Guard::new))
    }

    fn pack_options(&self, quarantine: &Quarantine) -> Result<indexer::Options> {
        let config = self.repository.config();
        let mut options = packs::indexer_options(config, self.repository.object_hash())?;
        options.max_input_size_bytes = self.max_input_bytes();
        if let Some(most) = self.options.most_object_bytes {
            options.max_object_size_bytes = Some(most);
            options.big_file_threshold_bytes = options.big_file_threshold_bytes.min(most);
            options.in_files = Some(indexer::InFiles {
                directory: quarantine.path().to_owned(),
                from_bytes: most,
                most_bytes: MOST_MADE_BYTES,
            });
        }
        Ok(options)
    }

    /// Returns the severities of fsck findings, if objects are checked.
    fn levels(&self) -> Result<Option<Levels>> {
        if !self.settings.checks_objects {
            return Ok(None);
        }
        let mut levels = Levels::strict();
        let home = self.repository.environment().home();
        // A wrong setting of the server is reported only in its own error output.
        let warn = &mut |check| {
            let notice = PushNotice::UnknownFsckCheck(check);
            self.repository.notify(Notice::Push(notice));
        };
        levels.configure(self.repository.config(), "receive.fsck.", home, warn)?;
        Ok(Some(levels))
    }

    /// Returns the content of the `.keep` file.
    fn keep_text(&self) -> Vec<u8> {
        let host = rustix::system::uname();
        let host = host.nodename().to_string_lossy();
        format!("receive-pack {} on {host}\n", std::process::id()).into_bytes()
    }
}

fn from_pack(error: pronto_pack::Error) -> Error {
    match error.kind() {
        // Git reports a bad blob like other bad objects, if the trees precede it in the pack.
        pronto_pack::ErrorKind::RejectedBlob { in_pack: true } => {
            Error::new(ErrorKind::Rejected, "fsck error in packed object")
        }
        _ => packs::from_pack(error),
    }
}

const EARLY_END: &str = "eof before pack header was fully read";

/// Parses the number of objects from a pack header.
fn parse_header(header: &[u8]) -> Result<u32, &'static str> {
    let (Some(signature), Some(version), Some(count)) =
        (header.get(..4), header.get(4..8), header.get(8..12))
    else {
        return Err(EARLY_END);
    };
    if signature != b"PACK" {
        return Err("protocol error (pack signature mismatch detected)");
    }
    if version != [0, 0, 0, 2] && version != [0, 0, 0, 3] {
        return Err("protocol error (pack version unsupported)");
    }
    let count = count.try_into().map(u32::from_be_bytes);
    count.map_err(|_| EARLY_END)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_judged() {
        assert_eq!(parse_header(b"PACK\0\0\0\x02\0\0\x01\0"), Ok(256));
        assert_eq!(parse_header(b"PACK\0\0\0\x02"), Err(EARLY_END));
        parse_header(b"JUNK\0\0\0\x02\0\0\0\0").expect_err("not a pack");
        parse_header(b"PACK\0\0\0\x04\0\0\0\0").expect_err("a future version");
    }
}

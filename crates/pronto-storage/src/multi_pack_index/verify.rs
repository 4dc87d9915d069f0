//! Compares a multi-pack-index with its packs.

use std::path::PathBuf;

use pronto_io::watch::Watch;
use pronto_pack::idx::{IndexPosition, PackIndex};
use pronto_pack::midx::MultiIndex;
use pronto_pack::pack::{PackOffset, PackReader};
use pronto_repository::packs::from_pack;
use pronto_repository::{Error, ErrorKind, Repository, Result};
use pronto_repository::{Notice, PackNotice};

use super::{MidxContext, MidxFault};

/// Options for verifying a multi-pack-index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyOptions {
    /// The object directory, if not the repository's own: one of its alternates (`--object-dir`).
    pub object_dir: Option<PathBuf>,
}

/// Compares the multi-pack-index of an object directory (by default the repository's own) with
/// the indexes of its packs. Calls `report` with each fault. Returns whether there are none, also
/// without a multi-pack-index.
///
/// # Errors
/// Fails with [`ErrorKind::Unsupported`] if `object_dir` is not an object directory of the repository,
/// or [`ErrorKind::Object`] if the file is not a multi-pack-index.
pub fn verify(
    repository: &Repository,
    options: &VerifyOptions,
    watch: &Watch<'_>,
    report: &mut dyn FnMut(MidxFault),
) -> Result<bool> {
    repository.objects()?.use_alternates();
    let work = MidxContext::new(repository, options.object_dir.as_ref(), watch)?;
    let Some(present) = work.open()? else {
        let exists = work.path().exists();
        if exists {
            repository.notify(Notice::Packs(PackNotice::MalformedMultiPackIndex));
        }
        return Ok(!exists);
    };
    let mut sound = true;
    for index in &present.layers {
        let mut check = MidxVerifier {
            work: &work,
            index,
            report,
            sound: true,
        };
        check.run()?;
        sound &= check.sound;
    }
    Ok(sound)
}

struct MidxVerifier<'a> {
    work: &'a MidxContext<'a>,
    index: &'a MultiIndex,
    report: &'a mut dyn FnMut(MidxFault),
    sound: bool,
}

impl MidxVerifier<'_> {
    fn wrong(&mut self, fault: MidxFault) {
        self.sound = false;
        (self.report)(fault);
    }

    fn run(&mut self) -> Result<()> {
        if !self.index.checksum_holds().map_err(from_pack)? {
            self.wrong(MidxFault::Checksum);
        }
        let packs = self.open_packs()?;
        self.pack_names();
        if self.index.is_empty() {
            self.wrong(MidxFault::Empty);
            return Ok(());
        }
        self.order()?;
        self.offsets(&packs)
    }

    fn open_packs(&mut self) -> Result<Vec<Option<PackIndex>>> {
        let names = self.index.pack_names();
        let title = "Looking for referenced packfiles";
        let meter = self
            .work
            .watch
            .progress()
            .begin(title, Some(names.len() as u64));
        let mut packs = Vec::with_capacity(names.len());
        for (number, name) in names.iter().enumerate() {
            let path = self.work.directory.join(name);
            let pack_path = path.with_extension("pack");
            if pack_path.is_file() {
                // A pack index is only used if its pack can be opened.
                let kind = self.work.repository.object_hash();
                let access = self.work.repository.objects()?.options().access;
                let index = self.work.index(&path)?.ok().filter(|index| {
                    PackReader::open(&pack_path, kind, access)
                        .and_then(|pack| pack.check_index(index))
                        .is_ok()
                });
                packs.push(index);
            } else {
                self.wrong(MidxFault::MissingPack(number));
                packs.push(None);
            }
            meter.add(1);
        }
        meter.finish();
        Ok(packs)
    }

    /// Checks that the names of packs ascend, which version 1 requires.
    fn pack_names(&mut self) {
        if self.index.version() != 1 {
            return;
        }
        let index = self.index;
        for pair in index.pack_names().windows(2) {
            if let [before, after] = pair
                && before >= after
            {
                let (before, after) = (before.clone(), after.clone());
                self.wrong(MidxFault::PackOrder { before, after });
            }
        }
    }

    fn order(&mut self) -> Result<()> {
        let title = "Verifying OID order in multi-pack-index";
        let count = self.index.len();
        let meter = self
            .work
            .watch
            .progress()
            .begin(title, Some((count - 1).into()));
        let mut previous = self.index.id_at(IndexPosition(0)).map_err(from_pack)?;
        for row in 1..count {
            let id = self.index.id_at(IndexPosition(row)).map_err(from_pack)?;
            if previous >= id {
                let before = previous;
                self.wrong(MidxFault::ObjectOrder { row, before, id });
            }
            previous = id;
            meter.add(1);
        }
        meter.finish();
        Ok(())
    }

    fn offsets(&mut self, packs: &[Option<PackIndex>]) -> Result<()> {
        let count = self.index.len();
        let title = "Sorting objects by packfile";
        let meter = self.work.watch.progress().begin(title, Some(count.into()));
        let mut rows = Vec::with_capacity(count as usize);
        for row in 0..count {
            let location = self.index.location_at(IndexPosition(row));
            let (pack, offset) =
                location.map_err(|error| error.without_context(ErrorKind::Object))?;
            rows.push((pack, row, offset));
            meter.add(1);
        }
        rows.sort_unstable_by_key(|(pack, row, _)| (*pack, *row));
        meter.finish();
        let title = "Verifying object offsets";
        let meter = self.work.watch.progress().begin(title, Some(count.into()));
        for (pack, row, offset) in rows {
            let interrupted = |reason: pronto_io::interrupt::Interrupted| {
                Error::new(ErrorKind::Interrupted, reason.to_string())
            };
            self.work.watch.interrupt().check().map_err(interrupted)?;
            let id = self.index.id_at(IndexPosition(row)).map_err(from_pack)?;
            let pack = packs.get(pack.0 as usize).and_then(Option::as_ref);
            let Some(index) = pack else {
                self.wrong(MidxFault::UnreadablePack { row, id });
                continue;
            };
            let expected = index.find_offset(&id).map_err(from_pack)?;
            let expected = expected.unwrap_or(PackOffset(0));
            if offset != expected {
                let (recorded, actual) = (offset.0, expected.0);
                self.wrong(MidxFault::Offset {
                    row,
                    id,
                    recorded,
                    actual,
                });
            }
            meter.add(1);
        }
        meter.finish();
        Ok(())
    }
}

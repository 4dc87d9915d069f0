//! Sets flags of entries.

use bstr::{BString, ByteSlice};
use pronto_index::Flags;

use super::Apply;
use crate::update_index::{EntryMark, Event, UpdateStop};

impl Apply<'_> {
    pub(super) fn mark(&mut self, path: &BString, mark: EntryMark, on: bool) -> Option<UpdateStop> {
        if self.is_bad(path.as_bstr(), 0) {
            return None;
        }
        let flag = match mark {
            EntryMark::AssumeUnchanged => Flags::ASSUME_VALID,
            EntryMark::SkipWorktree => Flags::SKIP_WORKTREE,
        };
        let Some(entry) = self.entry(path.as_bstr()) else {
            return Some(UpdateStop::NotMarked(path.clone()));
        };
        let mut entry = entry.to_owned();
        entry.flags = match on {
            true => entry.flags.with(flag),
            false => entry.flags.without(flag),
        };
        self.stage.edit_mut().set(entry);
        None
    }

    pub(super) fn chmod(&mut self, path: &BString, on: bool) -> Option<UpdateStop> {
        let is_there = self.entry(path.as_bstr()).is_some();
        let changed = is_there && self.stage.chmod(path.as_bstr(), on, false);
        if !changed {
            return Some(UpdateStop::ModeKept(path.clone(), on));
        }
        self.events.push(Event::Executable(path.clone(), on));
        None
    }
}

//! Sets flags of entries.

use bstr::{BString, ByteSlice};
use pronto_index::Flags;

use super::Apply;
use crate::update_index::{Event, Mark};

impl Apply<'_> {
    pub(super) fn mark(&mut self, path: &BString, mark: Mark, on: bool) -> Option<String> {
        if self.is_bad(path.as_bstr(), 0) {
            return None;
        }
        let flag = match mark {
            Mark::AssumeUnchanged => Flags::ASSUME_VALID,
            Mark::SkipWorktree => Flags::SKIP_WORKTREE,
        };
        let Some(entry) = self.entry(path.as_bstr()) else {
            return Some(format!("Unable to mark file {path}"));
        };
        let mut entry = entry.to_owned();
        entry.flags = match on {
            true => entry.flags.with(flag),
            false => entry.flags.without(flag),
        };
        self.stage.edit_mut().set(entry);
        None
    }

    pub(super) fn chmod(&mut self, path: &BString, on: bool) -> Option<String> {
        let is_there = self.entry(path.as_bstr()).is_some();
        let changed = is_there && self.stage.chmod(path.as_bstr(), on, false);
        if !changed {
            let sign = if on { '+' } else { '-' };
            return Some(format!("git update-index: cannot chmod {sign}x '{path}'"));
        }
        self.said.push(Event::Executable(path.clone(), on));
        None
    }
}

//! The states of untracked directories, which depend on those of their subdirectories. The directories
//! that the walk has entered are on an explicit stack, because nested directories could overflow the
//! stack of a thread.

use super::remembered::{CacheMatch, CachePosition};
use super::scan::Scanner;
use bstr::{BStr, BString, ByteSlice};
use pronto_index::UntrackedCache;
use pronto_io::dir::{Directory, DirectoryListing};

/// The depth below which directories are listed as untracked as a whole.
const DEEPEST: usize = 1000;

/// The state of a directory without tracked files, in ascending precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NestedState {
    /// The directory is not listed: it is empty, or has only content that is never listed.
    Nothing,
    /// The directory has only ignored files.
    Ignored,
    /// The directory has at least one untracked file.
    Untracked,
}

/// Options for examining an untracked directory.
#[derive(Clone, Copy)]
pub(super) struct ExamineOptions {
    /// Whether only the state is needed, and no names are listed.
    pub(super) check_only: bool,
    /// Whether the first file determines the state.
    pub(super) stop_at_first: bool,
    pub(super) depth: usize,
    /// The position of the directory in the untracked cache, if a cache is in use.
    pub(super) place: Option<CachePosition>,
}

/// A state, or the next step of determining it.
pub(super) enum NestedStep<T> {
    Known(NestedState),
    Enter(T),
}

/// A directory that must be examined before its name is listed.
pub(super) struct EnteredDirectory {
    /// The path of the directory, with a slash at its end.
    pub(super) full: BString,
    pub(super) name_start: usize,
    pub(super) inside: Inside,
}

/// The options for examining a directory, and the number of listed names before.
pub(super) struct Inside {
    pub(super) look: ExamineOptions,
    pub(super) ignored_before: usize,
    pub(super) untracked_before: usize,
}

/// A directory whose state is being determined.
pub(super) enum NestedDirectory {
    Read(ReadDirectory),
    Recall(Recalling),
}

/// A directory whose names are read.
pub(super) struct ReadDirectory {
    /// The path of the directory, with a slash at its end.
    path: BString,
    look: ExamineOptions,
    directory: Directory,
    listing: DirectoryListing,
    /// The position of the next name.
    next: usize,
    /// The state according to the names so far.
    state: NestedState,
    has_news: bool,
    /// The subdirectory that is being examined.
    entered: Option<EnteredDirectory>,
}

/// A directory that matches the cache, while its subdirectories are examined.
pub(super) struct Recalling {
    /// The path of the directory, with a slash at its end.
    pub(super) path: BString,
    /// The position of the directory in the cache.
    pub(super) node: usize,
    pub(super) look: ExamineOptions,
    pub(super) seen: Option<CacheMatch>,
    /// The position in the cache of the next subdirectory.
    pub(super) next: usize,
    pub(super) below: NestedDirectories,
    /// The path of the subdirectory that is being examined.
    pub(super) entered: BString,
}

/// The current state of the subdirectories of a directory in the cache.
#[derive(Default)]
pub(super) struct NestedDirectories {
    /// The names of subdirectories with untracked files, each with a slash at its end.
    pub(super) untracked: Vec<BString>,
    /// Whether the states differ from the cache.
    pub(super) differs: bool,
}

impl ReadDirectory {
    fn add(&mut self, state: NestedState) {
        self.state = self.state.max(state);
    }

    /// Returns whether further names cannot change the state.
    fn is_settled(&self) -> bool {
        let stops = self.look.stop_at_first && self.state >= NestedState::Ignored;
        self.look.check_only && (stops || self.state == NestedState::Untracked)
    }
}

impl Recalling {
    /// Records the state of the directory at `full`.
    pub(super) fn receive(&mut self, cache: &UntrackedCache<'_>, full: &BStr, state: NestedState) {
        let name = full[self.path.len()..].as_bstr();
        self.below.add(cache, self.node, name, state);
    }
}

impl NestedDirectories {
    /// Records the state of the subdirectory `name` of the directory at `node`.
    pub(super) fn add(
        &mut self,
        cache: &UntrackedCache<'_>,
        node: usize,
        name: &BStr,
        state: NestedState,
    ) {
        let mut known = cache.directory(node).untracked.iter();
        let was = known.any(|known| known == name);
        self.differs |= was != (state == NestedState::Untracked);
        if state == NestedState::Untracked {
            self.untracked.push(name.to_owned());
        }
    }

    /// Adds the nested repositories in the directory at `node`, which are not entered.
    pub(super) fn add_repositories(&mut self, cache: &UntrackedCache<'_>, node: usize) {
        for name in cache.directory(node).untracked.iter() {
            if let Some(bare) = name.strip_suffix(b"/")
                && cache.child(node, bare.as_bstr()).is_none()
            {
                self.untracked.push(name.to_owned());
            }
        }
    }
}

impl Scanner<'_> {
    /// Returns the state of the directory at `full`.
    pub(super) fn state(&mut self, full: &BString, look: ExamineOptions) -> NestedState {
        let step = self.begin(full, look);
        self.finish(step)
    }

    /// Determines the state, starting with `step`.
    pub(super) fn finish(&mut self, step: NestedStep<NestedDirectory>) -> NestedState {
        let mut level = match step {
            NestedStep::Known(state) => return state,
            NestedStep::Enter(level) => level,
        };
        let mut outer = Vec::new();
        loop {
            let below = match &mut level {
                NestedDirectory::Read(reading) => self.continue_read(reading),
                NestedDirectory::Recall(recalling) => self.continue_recall(recalling),
            };
            if let Some(below) = below {
                outer.push(std::mem::replace(&mut level, below));
                continue;
            }
            let ended = match level {
                NestedDirectory::Read(reading) => NestedStep::Known(self.end_read(reading)),
                NestedDirectory::Recall(recalling) => self.end_recall(recalling),
            };
            level = match ended {
                NestedStep::Enter(again) => again,
                NestedStep::Known(state) => match outer.pop() {
                    None => return state,
                    Some(above) => self.receive(above, state),
                },
            };
        }
    }

    /// Records the state of the subdirectory of `level` that was examined.
    fn receive(&mut self, mut level: NestedDirectory, state: NestedState) -> NestedDirectory {
        match &mut level {
            NestedDirectory::Read(reading) => {
                if let Some(entered) = reading.entered.take() {
                    let state = self.leave(entered, reading.look, state);
                    reading.add(state);
                }
            }
            NestedDirectory::Recall(recalling) => {
                if let Some(remembered) = self.job.remembered {
                    let full = std::mem::take(&mut recalling.entered);
                    recalling.receive(&remembered.cache, full.as_bstr(), state);
                }
            }
        }
        level
    }

    /// Starts to determine the state of the directory at `full`.
    pub(super) fn begin(
        &mut self,
        full: &BString,
        look: ExamineOptions,
    ) -> NestedStep<NestedDirectory> {
        if look.depth > DEEPEST {
            return NestedStep::Known(NestedState::Untracked);
        }
        let place = look.place;
        let seen = place.and_then(|place| self.see_untracked(place, full.as_bstr()).ok());
        match seen.as_ref().and_then(|seen| seen.valid) {
            Some(node) => self.begin_recall(full, node, look, seen),
            None => self.begin_read(full, look, seen.as_ref()),
        }
    }

    /// Starts to read the directory at `full`. If only the state is needed, names are read up to the
    /// first untracked file.
    pub(super) fn begin_read(
        &mut self,
        full: &BString,
        look: ExamineOptions,
        seen: Option<&CacheMatch>,
    ) -> NestedStep<NestedDirectory> {
        let path = full.as_bstr();
        let listed = self.open_to_list(path).and_then(|directory| {
            let listing = self.list(&directory)?;
            Ok((directory, listing))
        });
        let (directory, listing) = match listed {
            Ok(listed) => listed,
            Err(error) => {
                self.report_unreadable(path, error);
                return NestedStep::Known(NestedState::Nothing);
            }
        };
        if let Some(seen) = seen {
            self.start_news(path, seen, true);
        }
        let place = seen.map(|seen| seen.place);
        NestedStep::Enter(NestedDirectory::Read(ReadDirectory {
            path: full.clone(),
            look: ExamineOptions { place, ..look },
            directory,
            listing,
            next: 0,
            state: NestedState::Nothing,
            has_news: seen.is_some(),
            entered: None,
        }))
    }

    /// Processes the following names. Returns the next directory that must be entered.
    fn continue_read(&mut self, reading: &mut ReadDirectory) -> Option<NestedDirectory> {
        while !reading.is_settled() {
            let (name, kind) = reading.listing.get(reading.next)?;
            reading.next += 1;
            let (directory, look) = (&reading.directory, reading.look);
            let kind = self.kind(directory, name, kind);
            match self.judge(directory, reading.path.as_bstr(), name, kind, look, None) {
                NestedStep::Known(state) => reading.add(state),
                NestedStep::Enter(entered) => {
                    match self.begin(&entered.full, entered.inside.look) {
                        NestedStep::Known(state) => {
                            let state = self.leave(entered, look, state);
                            reading.add(state);
                        }
                        NestedStep::Enter(level) => {
                            reading.entered = Some(entered);
                            return Some(level);
                        }
                    }
                }
            }
        }
        None
    }

    fn end_read(&mut self, reading: ReadDirectory) -> NestedState {
        self.put_back(reading.listing);
        if reading.has_news {
            self.end_news(true);
        }
        match reading.look.check_only && reading.look.stop_at_first {
            true => reading.state.min(NestedState::Ignored),
            false => reading.state,
        }
    }
}

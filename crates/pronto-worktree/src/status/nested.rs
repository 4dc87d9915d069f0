//! The states of untracked directories, which depend on those of the directories below. The
//! directories that the walk is in are on a stack on the heap: they are nested deeper than the
//! stacks of threads permit.

use super::remembered::{Place, Seen};
use super::scan::Scanner;
use bstr::{BStr, BString, ByteSlice};
use pronto_index::UntrackedCache;
use pronto_io::dir::{Directory, Listing};

/// Directories nested deeper are taken to be untracked as a whole.
const DEEPEST: usize = 1000;

/// The state of a directory without tracked files, the strongest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    /// Nothing to name: empty, or only what does not count.
    Nothing,
    /// Nothing but ignored files.
    Ignored,
    /// At least one untracked file.
    Untracked,
}

/// Options for examining an untracked directory.
#[derive(Clone, Copy)]
pub(super) struct Look {
    /// Only its state is wanted, none of the names in it.
    pub(super) check_only: bool,
    /// Any file settles its state.
    pub(super) stop_at_first: bool,
    pub(super) depth: usize,
    /// The position of the directory in the untracked cache, if there is one.
    pub(super) place: Option<Place>,
}

/// A state, or the next step of determining it.
pub(super) enum Step<T> {
    Known(State),
    Enter(T),
}

/// A directory to be examined before its name can be judged.
pub(super) struct Entered {
    /// Its path, with a slash at the end.
    pub(super) full: BString,
    pub(super) name_start: usize,
    pub(super) inside: Inside,
}

/// The options for examining a directory, and the numbers of names in the result before.
pub(super) struct Inside {
    pub(super) look: Look,
    pub(super) ignored_before: usize,
    pub(super) untracked_before: usize,
}

/// A directory whose state is being determined.
pub(super) enum Level {
    Read(Reading),
    Recall(Recalling),
}

/// A directory whose names are read.
pub(super) struct Reading {
    /// Ends with a slash.
    path: BString,
    look: Look,
    directory: Directory,
    listing: Listing,
    /// The position of the next name.
    next: usize,
    /// The state by the names so far.
    state: State,
    has_news: bool,
    /// The directory in it that is being examined.
    entered: Option<Entered>,
}

/// A directory that is as the cache says, but for those below.
pub(super) struct Recalling {
    /// Ends with a slash.
    pub(super) path: BString,
    /// Its position in the cache.
    pub(super) node: usize,
    pub(super) look: Look,
    pub(super) seen: Option<Seen>,
    /// The position in the cache of the next directory in it.
    pub(super) next: usize,
    pub(super) below: Below,
    /// The path of the directory in it that is being examined.
    pub(super) entered: BString,
}

/// The present state of the directories directly in a directory of the cache.
#[derive(Default)]
pub(super) struct Below {
    /// Names of those with untracked files, each with a slash.
    pub(super) untracked: Vec<BString>,
    /// The cache says otherwise.
    pub(super) differs: bool,
}

impl Reading {
    fn add(&mut self, state: State) {
        self.state = self.state.max(state);
    }

    /// Whether further names do not change the state.
    fn is_settled(&self) -> bool {
        let stops = self.look.stop_at_first && self.state >= State::Ignored;
        self.look.check_only && (stops || self.state == State::Untracked)
    }
}

impl Recalling {
    /// Records the state of the directory at `full`.
    pub(super) fn receive(&mut self, cache: &UntrackedCache<'_>, full: &BStr, state: State) {
        let name = full[self.path.len()..].as_bstr();
        self.below.add(cache, self.node, name, state);
    }
}

impl Below {
    /// Records the state of the directory `name` in the one at `node`.
    pub(super) fn add(
        &mut self,
        cache: &UntrackedCache<'_>,
        node: usize,
        name: &BStr,
        state: State,
    ) {
        let mut known = cache.directory(node).untracked.iter();
        let was = known.any(|known| known == name);
        self.differs |= was != (state == State::Untracked);
        if state == State::Untracked {
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
    pub(super) fn state(&mut self, full: &BString, look: Look) -> State {
        let step = self.begin(full, look);
        self.finish(step)
    }

    /// Determines the state that `step` begins with.
    pub(super) fn finish(&mut self, step: Step<Level>) -> State {
        let mut level = match step {
            Step::Known(state) => return state,
            Step::Enter(level) => level,
        };
        let mut outer = Vec::new();
        loop {
            let below = match &mut level {
                Level::Read(reading) => self.continue_read(reading),
                Level::Recall(recalling) => self.continue_recall(recalling),
            };
            if let Some(below) = below {
                outer.push(std::mem::replace(&mut level, below));
                continue;
            }
            let ended = match level {
                Level::Read(reading) => Step::Known(self.end_read(reading)),
                Level::Recall(recalling) => self.end_recall(recalling),
            };
            level = match ended {
                Step::Enter(again) => again,
                Step::Known(state) => match outer.pop() {
                    None => return state,
                    Some(above) => self.receive(above, state),
                },
            };
        }
    }

    /// Records the state of the directory in `level` that was examined.
    fn receive(&mut self, mut level: Level, state: State) -> Level {
        match &mut level {
            Level::Read(reading) => {
                if let Some(entered) = reading.entered.take() {
                    let state = self.leave(entered, reading.look, state);
                    reading.add(state);
                }
            }
            Level::Recall(recalling) => {
                if let Some(remembered) = self.job.remembered {
                    let full = std::mem::take(&mut recalling.entered);
                    recalling.receive(&remembered.cache, full.as_bstr(), state);
                }
            }
        }
        level
    }

    /// Starts to determine the state of the directory at `full`.
    pub(super) fn begin(&mut self, full: &BString, look: Look) -> Step<Level> {
        if look.depth > DEEPEST {
            return Step::Known(State::Untracked);
        }
        let place = look.place;
        let seen = place.and_then(|place| self.see_untracked(place, full.as_bstr()).ok());
        match seen.as_ref().and_then(|seen| seen.valid) {
            Some(node) => self.begin_recall(full, node, look, seen),
            None => self.begin_read(full, look, seen.as_ref()),
        }
    }

    /// Starts to read the directory at `full`. Names are read up to the first untracked file if
    /// only the state is needed.
    pub(super) fn begin_read(
        &mut self,
        full: &BString,
        look: Look,
        seen: Option<&Seen>,
    ) -> Step<Level> {
        let path = full.as_bstr();
        let listed = self.open_to_list(path).and_then(|directory| {
            let listing = self.list(&directory)?;
            Ok((directory, listing))
        });
        let (directory, listing) = match listed {
            Ok(listed) => listed,
            Err(error) => {
                self.report_unreadable(path, error);
                return Step::Known(State::Nothing);
            }
        };
        if let Some(seen) = seen {
            self.start_news(path, seen, true);
        }
        let place = seen.map(|seen| seen.place);
        Step::Enter(Level::Read(Reading {
            path: full.clone(),
            look: Look { place, ..look },
            directory,
            listing,
            next: 0,
            state: State::Nothing,
            has_news: seen.is_some(),
            entered: None,
        }))
    }

    /// Judges the names that follow. Returns the next directory that must be entered.
    fn continue_read(&mut self, reading: &mut Reading) -> Option<Level> {
        while !reading.is_settled() {
            let (name, kind) = reading.listing.get(reading.next)?;
            reading.next += 1;
            let (directory, look) = (&reading.directory, reading.look);
            let kind = self.kind(directory, name, kind);
            match self.judge(directory, reading.path.as_bstr(), name, kind, look, None) {
                Step::Known(state) => reading.add(state),
                Step::Enter(entered) => match self.begin(&entered.full, entered.inside.look) {
                    Step::Known(state) => {
                        let state = self.leave(entered, look, state);
                        reading.add(state);
                    }
                    Step::Enter(level) => {
                        reading.entered = Some(entered);
                        return Some(level);
                    }
                },
            }
        }
        None
    }

    fn end_read(&mut self, reading: Reading) -> State {
        self.put_back(reading.listing);
        if reading.has_news {
            self.end_news(true);
        }
        match reading.look.check_only && reading.look.stop_at_first {
            true => reading.state.min(State::Ignored),
            false => reading.state,
        }
    }
}

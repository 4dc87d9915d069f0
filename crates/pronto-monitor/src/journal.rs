//! The journal of changed paths.

use crate::protocol::MonitorResponse;
use bstr::{BStr, BString};
use std::collections::{BTreeMap, HashMap};

/// The number of paths at which the journal is reset.
const MOST_PATHS: usize = 1_000_000;

/// The changed paths, with the position of the last change of each path. A token of another
/// journal, or from before a reset, is answered with [`MonitorResponse::Everything`]. Needs memory for each
/// path twice, and some hundred bytes more. `Send + Sync`; has no lock of its own.
#[derive(Debug)]
pub struct Journal {
    name: BString,
    /// The number of resets of the journal.
    generation: u64,
    now: u64,
    last: HashMap<BString, u64>,
    paths: BTreeMap<u64, BString>,
}

impl Journal {
    /// Creates an empty journal. `name` must be unique among all journals, also later ones.
    pub fn new(name: impl Into<BString>) -> Journal {
        Journal {
            name: name.into(),
            generation: 0,
            now: 0,
            last: HashMap::new(),
            paths: BTreeMap::new(),
        }
    }

    /// Records a change of `path`. Costs logarithmic time in the number of paths.
    pub fn add(&mut self, path: BString) {
        self.now += 1;
        if let Some(before) = self.last.insert(path.clone(), self.now) {
            self.paths.remove(&before);
        }
        self.paths.insert(self.now, path);
        if self.paths.len() > MOST_PATHS {
            self.restart();
        }
    }

    /// Resets the journal. Later queries with an earlier token are answered with
    /// [`MonitorResponse::Everything`].
    pub fn restart(&mut self) {
        self.generation += 1;
        self.last.clear();
        self.paths.clear();
    }

    fn session(&self) -> String {
        format!("builtin:{}.{}:", self.name, self.generation)
    }

    /// Returns the number of resets of the journal.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the current token.
    pub fn token(&self) -> BString {
        format!("{}{}", self.session(), self.now).into()
    }

    /// Returns the paths that changed since `token`, the oldest change first. Costs linear time in
    /// the returned paths, which are copied, and logarithmic time in the paths of the journal.
    pub fn since(&self, token: &BStr) -> MonitorResponse {
        let since = token
            .strip_prefix(self.session().as_bytes())
            .and_then(|number| std::str::from_utf8(number).ok())
            .filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|number| number.parse::<u64>().ok())
            .filter(|since| *since <= self.now);
        match since {
            None => self.everything(),
            Some(since) => MonitorResponse::Paths {
                token: self.token(),
                paths: self
                    .paths
                    .range(since.saturating_add(1)..)
                    .map(|(_, path)| path.clone())
                    .collect(),
            },
        }
    }

    /// Returns the answer that every path may have changed.
    pub fn everything(&self) -> MonitorResponse {
        MonitorResponse::Everything {
            token: self.token(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_others_are_not_believed() {
        let mut journal = Journal::new("one");
        journal.add("a".into());
        let token = journal.token();
        journal.add("b".into());
        journal.add("a".into());
        let paths = |answer| match answer {
            MonitorResponse::Paths { paths, .. } => Some(paths),
            MonitorResponse::Everything { .. } => None,
        };
        let expected: Vec<BString> = vec!["b".into(), "a".into()];
        assert_eq!(paths(journal.since(token.as_ref())), Some(expected));
        assert_eq!(paths(journal.since(journal.token().as_ref())), Some(vec![]));
        for foreign in [
            "",
            "builtin:fake",
            "builtin:two.0:1",
            "builtin:one.0:4",
            "builtin:one.0:+1",
            "builtin:one.0:99999999999999999999",
            "c:1:2",
            "17000000000000",
        ] {
            assert_eq!(paths(journal.since(foreign.into())), None, "{foreign}");
        }
        journal.restart();
        assert_eq!(paths(journal.since(token.as_ref())), None);
        let token = journal.token();
        assert_eq!(paths(journal.since(token.as_ref())), Some(vec![]));
    }
}

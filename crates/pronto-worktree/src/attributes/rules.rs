//! Lines of attributes files, and how they apply to a path.

use std::sync::Arc;

use crate::glob::matches_path;
use bstr::{BStr, BString, ByteSlice};
use gix_attributes::{StateRef, parse::Kind};
use gix_glob::Pattern;

use super::State;

pub(super) const BUILT_IN: &str = "[attr]binary -diff -merge -text";

/// Longer lines are passed over (the limit is Git's).
const LONGEST_LINE: usize = 2048;

/// One line of a file, as it was written.
pub(super) struct Definition {
    target: Kind,
    assignments: Vec<(BString, State)>,
}

impl Definition {
    /// The attributes it names, in the order in which it does: a macro before what it stands for.
    pub(super) fn names(&self) -> impl Iterator<Item = &BStr> {
        let macro_name = match &self.target {
            Kind::Macro(name) => Some(name.as_str().into()),
            Kind::Pattern(_) => None,
        };
        let assigned = self.assignments.iter().map(|(name, _)| name.as_bstr());
        macro_name.into_iter().chain(assigned)
    }
}

/// The lines of a file that can be understood; the others are passed over.
pub(super) fn parse(bytes: &[u8], macros: bool) -> Vec<Definition> {
    gix_attributes::parse(bytes)
        .filter_map(Result::ok)
        .filter_map(|(target, assignments, _)| {
            if matches!(target, Kind::Macro(_)) && !macros {
                return None;
            }
            let assignments = assignments
                .map(|assignment| {
                    let assignment = assignment.ok()?;
                    let state = match assignment.state {
                        StateRef::Set => State::Set,
                        StateRef::Unset => State::Unset,
                        StateRef::Unspecified => State::Unspecified,
                        StateRef::Value(value) => {
                            State::Value(Arc::new(value.as_bstr().to_owned()))
                        }
                    };
                    Some((BString::from(assignment.name.as_str()), state))
                })
                .collect::<Option<Vec<_>>>()?;
            let length: usize = assignments.iter().map(|(name, _)| name.len()).sum();
            (length <= LONGEST_LINE).then_some(Definition {
                target,
                assignments,
            })
        })
        .collect()
}

/// The lines of a text of ours.
pub(super) fn parse_definition(text: &str) -> Vec<Definition> {
    parse(text.as_bytes(), true)
}

/// Attributes as numbers: the selected ones first, then the macros that touch them.
pub(super) struct Names {
    names: Vec<BString>,
    selected: usize,
    /// What each macro stands for, by number less `selected`; the strongest assignment first.
    macros: Vec<Assignments>,
}

/// Numbered attributes and what is said of them, the strongest first.
type Assignments = Vec<(usize, State)>;

impl Names {
    /// `lines` come from all files that may define macros, the weakest first.
    pub(super) fn new<'a>(
        selection: &[&str],
        lines: impl Iterator<Item = &'a Definition> + Clone,
    ) -> Self {
        let mut names: Vec<BString> = selection.iter().map(|name| (*name).into()).collect();
        let selected = names.len();
        let macros = lines.filter_map(|line| match &line.target {
            Kind::Macro(name) => Some((BString::from(name.as_str()), &line.assignments)),
            Kind::Pattern(_) => None,
        });
        // A macro may stand for another, so repeat until nothing is added.
        loop {
            let before = names.len();
            for (name, assignments) in macros.clone() {
                let touches = assignments.iter().any(|(name, _)| names.contains(name));
                if touches && !names[selected..].contains(&name) {
                    names.push(name);
                }
            }
            if names.len() == before {
                break;
            }
        }
        let mut all = Names {
            macros: vec![Vec::new(); names.len() - selected],
            names,
            selected,
        };
        for (name, assignments) in macros {
            let number = all.names[selected..]
                .iter()
                .position(|known| *known == name);
            if let Some(number) = number {
                // A later definition replaces an earlier one.
                all.macros[number] = all.numbered(assignments);
            }
        }
        all
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    pub(super) fn selected(&self) -> usize {
        self.selected
    }

    fn numbered(&self, assignments: &[(BString, State)]) -> Assignments {
        let mut numbered = Vec::new();
        for (name, state) in assignments.iter().rev() {
            // A macro may bear the name of a selected attribute: then both are meant.
            for (number, known) in self.names.iter().enumerate() {
                if known == name {
                    numbered.push((number, state.clone()));
                }
            }
        }
        numbered
    }
}

/// The rules of one file that concern the selection.
pub(super) struct List {
    /// The directory of the file, without a slash at its end.
    base: BString,
    /// The weakest first.
    rules: Vec<Rule>,
}

struct Rule {
    pattern: Pattern,
    assignments: Assignments,
}

impl List {
    pub(super) fn new(base: BString, lines: Vec<Definition>, names: &Names) -> Self {
        let rules = lines.into_iter().filter_map(|line| {
            let Kind::Pattern(pattern) = line.target else {
                return None;
            };
            let assignments = names.numbered(&line.assignments);
            (!assignments.is_empty()).then_some(Rule {
                pattern,
                assignments,
            })
        });
        List {
            base,
            rules: rules.collect(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Fills in what no stronger rule has said of `path`. `basename` is where its last component
    /// starts.
    pub(super) fn apply(
        &self,
        (path, is_directory): (&BStr, bool),
        basename: usize,
        ignore_case: bool,
        names: &Names,
        states: &mut [Slot],
    ) {
        let cut = if self.base.is_empty() {
            0
        } else {
            self.base.len() + 1
        };
        let Some(path) = path.get(cut..).map(ByteSlice::as_bstr) else {
            return;
        };
        let basename = basename.saturating_sub(cut);
        let basename = (basename > 0).then_some(basename);
        for rule in self.rules.iter().rev() {
            let news = rule
                .assignments
                .iter()
                .any(|(number, _)| states[*number].is_none());
            if news && matches_path(&rule.pattern, path, (basename, is_directory), ignore_case) {
                assign(&rule.assignments, names, states, 0);
            }
        }
    }
}

/// What is known of an attribute so far: `None` until a rule has spoken.
pub(super) type Slot = Option<State>;

fn assign(assignments: &Assignments, names: &Names, states: &mut [Slot], depth: usize) {
    // Macros that stand for each other in a circle end here, because each is assigned once; the
    // depth is bounded by their number.
    if depth > names.macros.len() {
        return;
    }
    for (number, state) in assignments {
        if states[*number].is_some() {
            continue;
        }
        states[*number] = Some(state.clone());
        if *number >= names.selected && *state == State::Set {
            assign(
                &names.macros[*number - names.selected],
                names,
                states,
                depth + 1,
            );
        }
    }
}

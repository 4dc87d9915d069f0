//! The lines of attributes files, and their application to a path.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::glob::matches_path;
use bstr::{BStr, BString, ByteSlice};
use gix_attributes::{NameRef, StateRef, parse::Kind};
use gix_glob::Pattern;
use pronto_io::short::Short as _;

use super::AttributeState;

/// The length from which lines are ignored, in bytes. Git has the same limit.
const LONGEST_LINE: usize = 2048;

/// The reason for which a line of an attributes file, or the whole file, is ignored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Flaw {
    /// The file is a symbolic link.
    Link,
    /// The pattern begins with an exclamation mark.
    Negative,
    /// The line exceeds the length limit.
    LongLine {
        /// The line number, from one.
        line: usize,
    },
    /// The line defines a macro in a file below the top directory.
    Macro {
        /// The line.
        text: BString,
        /// The line number, from one.
        line: usize,
    },
    /// The line assigns an attribute with an invalid or reserved name.
    InvalidName {
        /// The name.
        name: BString,
        /// The line number, from one.
        line: usize,
    },
}

/// One line of a file, before the expansion of macros.
pub(super) struct AttributeLine {
    target: Kind,
    assignments: Vec<(BString, AttributeState)>,
}

impl AttributeLine {
    /// Returns the attributes that the line names, in order. A macro precedes its expansion.
    pub(super) fn names(&self) -> impl Iterator<Item = &BStr> {
        let macro_name = match &self.target {
            Kind::Macro(name) => Some(name.as_str().into()),
            Kind::Pattern(_) => None,
        };
        let assigned = self.assignments.iter().map(|(name, _)| name.as_bstr());
        macro_name.into_iter().chain(assigned)
    }
}

/// Parses the valid lines of a file. The reasons for ignoring other lines are added to `flaws`.
pub(super) fn parse(bytes: &[u8], macros: bool, flaws: &mut Vec<Flaw>) -> Vec<AttributeLine> {
    let bytes = without_long_lines(bytes, flaws);
    let mut definitions = Vec::new();
    let mut numbered = bytes.each_line().zip(1..);
    for parsed in gix_attributes::parse(&bytes) {
        let Ok((target, assignments, number)) = parsed else {
            // The line has an exclamation mark or an invalid macro name: find the next such line for
            // the report.
            flaws.extend(numbered.find_map(|(line, number)| flaw_at_start(line, number)));
            continue;
        };
        let line = numbered.find(|(_, at)| *at == number);
        if matches!(target, Kind::Macro(_)) && !macros {
            flaws.extend(line.map(|(line, number)| Flaw::Macro {
                text: line.trim_start().into(),
                line: number,
            }));
            continue;
        }
        match read_assignments(assignments) {
            Some(assignments) => definitions.push(AttributeLine {
                target,
                assignments,
            }),
            None => flaws.extend(line.map(|(line, number)| Flaw::InvalidName {
                name: invalid_name(line),
                line: number,
            })),
        }
    }
    definitions
}

/// Returns the defect at the start of a line that has no pattern.
fn flaw_at_start(line: &[u8], number: usize) -> Option<Flaw> {
    let line = line.trim_start();
    let line = line.strip_prefix(b"\"").unwrap_or(line);
    if line.starts_with(b"!") {
        return Some(Flaw::Negative);
    }
    let rest = line.strip_prefix(b"[attr]")?;
    let name = rest.fields().next().unwrap_or_default();
    (!is_assignable(name)).then(|| Flaw::InvalidName {
        name: name.into(),
        line: number,
    })
}

/// Returns the first invalid attribute name in a line.
fn invalid_name(line: &[u8]) -> BString {
    let pattern_end = match line.trim_start().starts_with(b"\"") {
        true => line.last_position_of(b'"').map_or(0, |quote| quote + 1),
        false => 0,
    };
    let words = line[pattern_end..].fields();
    let names = words.skip(usize::from(pattern_end == 0)).map(|word| {
        let word = word.split(|byte| *byte == b'=').next().unwrap_or_default();
        let prefix = usize::from(matches!(word.first(), Some(b'-' | b'!')));
        &word[prefix..]
    });
    let mut invalid = names.filter(|name| !is_assignable(name));
    invalid.next().unwrap_or_default().into()
}

/// Returns whether a file may assign an attribute of this name.
fn is_assignable(name: &[u8]) -> bool {
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._".contains(byte);
    name.first().is_some_and(|first| *first != b'-')
        && name.iter().all(fits)
        && !name.starts_with(b"builtin_")
}

/// Returns `bytes` with empty lines instead of lines that are too long.
fn without_long_lines<'a>(bytes: &'a [u8], flaws: &mut Vec<Flaw>) -> Cow<'a, [u8]> {
    let is_long = |line: &[u8]| line.len() >= LONGEST_LINE;
    if !bytes.each_line().any(is_long) {
        return Cow::Borrowed(bytes);
    }
    let mut kept = Vec::with_capacity(bytes.len());
    for (at, line) in bytes.each_line().enumerate() {
        match is_long(line) {
            true => flaws.push(Flaw::LongLine { line: at + 1 }),
            false => kept.extend_from_slice(line),
        }
        kept.push(b'\n');
    }
    Cow::Owned(kept)
}

/// Reads the assignments of a line; `None` if it assigns an invalid name.
fn read_assignments(
    assignments: gix_attributes::parse::Iter<'_>,
) -> Option<Vec<(BString, AttributeState)>> {
    assignments
        .map(|assignment| {
            let assignment = assignment.ok()?;
            let state = match assignment.state {
                StateRef::Set => AttributeState::Set,
                StateRef::Unset => AttributeState::Unset,
                StateRef::Unspecified => AttributeState::Unspecified,
                StateRef::Value(value) => {
                    AttributeState::Value(Arc::new(value.as_bstr().to_owned()))
                }
            };
            Some((BString::from(assignment.name.as_str()), state))
        })
        .collect()
}

/// Returns the built-in definition `[attr]binary -diff -merge -text`. The definition is not parsed,
/// because most worktrees have no attributes and need no parser.
pub(super) fn built_in() -> Vec<AttributeLine> {
    let unset = |name: &str| (BString::from(name), AttributeState::Unset);
    let name = NameRef::try_from(BStr::new("binary"));
    let macros = name.into_iter().map(|name| AttributeLine {
        target: Kind::Macro(name.to_owned()),
        assignments: ["diff", "merge", "text"].map(unset).into(),
    });
    macros.collect()
}

/// The numbers of attributes: the selected attributes first, then the macros that affect them.
pub(super) struct AttributeNumbers {
    /// The numbers of each name. A macro may have the name of a selected attribute: then both have a
    /// number.
    numbers: HashMap<BString, Vec<usize>>,
    count: usize,
    selected: usize,
    /// The assignments of each macro, indexed by its number less `selected`, highest precedence first.
    macros: Vec<Assignments>,
}

/// Numbered attributes with their states, highest precedence first.
type Assignments = Vec<(usize, AttributeState)>;

impl AttributeNumbers {
    /// Numbers the attributes. `lines` are those of all files that may define macros, lowest precedence
    /// first. The cost is proportional to the number of assignments.
    pub(super) fn new<'a>(
        selection: &[&str],
        lines: impl Iterator<Item = &'a AttributeLine> + Clone,
    ) -> Self {
        let mut names: Vec<&BStr> = selection.iter().map(|name| BStr::new(*name)).collect();
        let selected = names.len();
        let macros = lines.filter_map(|line| match &line.target {
            Kind::Macro(name) => Some((BStr::new(name.as_str()), &line.assignments)),
            Kind::Pattern(_) => None,
        });
        let mut users: HashMap<&BStr, Vec<&BStr>> = HashMap::new();
        for (name, assignments) in macros.clone() {
            for (assigned, _) in assignments {
                users.entry(assigned.as_bstr()).or_default().push(name);
            }
        }
        // A macro may contain another macro.
        let mut known = HashSet::new();
        let mut at = 0;
        while let Some(name) = names.get(at).copied() {
            let found = users.get(&name).into_iter().flatten();
            names.extend(found.filter(|user| known.insert(**user)).copied());
            at += 1;
        }
        let mut all = AttributeNumbers {
            numbers: HashMap::new(),
            count: names.len(),
            selected,
            macros: vec![Vec::new(); names.len() - selected],
        };
        for (number, name) in names.iter().enumerate() {
            let numbers = all.numbers.entry((*name).to_owned()).or_default();
            numbers.push(number);
        }
        for (name, assignments) in macros {
            let numbers = all.numbers.get(name).into_iter().flatten();
            let number = numbers.copied().find(|number| *number >= selected);
            if let Some(number) = number {
                // A later definition replaces an earlier one.
                all.macros[number - selected] = all.numbered(assignments);
            }
        }
        all
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn selected(&self) -> usize {
        self.selected
    }

    fn numbered(&self, assignments: &[(BString, AttributeState)]) -> Assignments {
        let strongest_first = assignments.iter().rev();
        let numbered = strongest_first.filter_map(|(name, state)| {
            let numbers = self.numbers.get(name.as_bstr())?.iter();
            Some(numbers.map(move |number| (*number, state.clone())))
        });
        numbered.flatten().collect()
    }
}

/// The rules of one file that affect the selected attributes.
pub(super) struct AttributeRules {
    /// The directory of the file, without a slash at its end.
    base: BString,
    /// The rules, lowest precedence first.
    rules: Vec<AttributeRule>,
}

struct AttributeRule {
    pattern: Pattern,
    assignments: Assignments,
}

impl AttributeRules {
    pub(super) fn new(base: BString, lines: Vec<AttributeLine>, names: &AttributeNumbers) -> Self {
        let rules = lines.into_iter().filter_map(|line| {
            let Kind::Pattern(pattern) = line.target else {
                return None;
            };
            let assignments = names.numbered(&line.assignments);
            (!assignments.is_empty()).then_some(AttributeRule {
                pattern,
                assignments,
            })
        });
        AttributeRules {
            base,
            rules: rules.collect(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Sets the states for `path` that no rule of higher precedence has set. `basename` is the start of
    /// the last component of the path.
    pub(super) fn apply(
        &self,
        path: &BStr,
        is_directory: bool,
        basename: usize,
        ignore_case: bool,
        names: &AttributeNumbers,
        states: &mut [AttributeSlot],
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
            if news && matches_path(&rule.pattern, path, basename, is_directory, ignore_case) {
                assign(&rule.assignments, names, states);
            }
        }
    }
}

/// The state of an attribute; `None` until a rule sets it.
pub(super) type AttributeSlot = Option<AttributeState>;

fn assign(assignments: &Assignments, names: &AttributeNumbers, states: &mut [AttributeSlot]) {
    for (number, state) in assignments {
        if let Some(meaning) = set(*number, state, names, states) {
            expand(meaning, names, states);
        }
    }
}

/// Assigns the attributes of a macro, and of macros in it. Each attribute is assigned at most once, so
/// that the expansion of cyclic macros ends.
fn expand(meaning: &Assignments, names: &AttributeNumbers, states: &mut [AttributeSlot]) {
    let mut open = vec![meaning.iter()];
    while let Some(last) = open.last_mut() {
        let Some((number, state)) = last.next() else {
            open.pop();
            continue;
        };
        if let Some(meaning) = set(*number, state, names, states) {
            open.push(meaning.iter());
        }
    }
}

/// Sets the state of attribute `number` to `state`, unless a rule has set it before. Returns the
/// expansion if the attribute is a macro.
fn set<'n>(
    number: usize,
    state: &AttributeState,
    names: &'n AttributeNumbers,
    states: &mut [AttributeSlot],
) -> Option<&'n Assignments> {
    if states[number].is_some() {
        return None;
    }
    states[number] = Some(state.clone());
    let place = number.checked_sub(names.selected)?;
    (*state == AttributeState::Set).then(|| &names.macros[place])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn macros_that_stand_for_macros_have_no_limit() {
        let count = 200_000;
        let lines = (0..count).map(|at| format!("[attr]a{at} a{}\n", at + 1));
        let text = lines.collect::<String>() + &format!("[attr]a{count} -text\nf a0\n");
        let lines = parse(text.as_bytes(), true, &mut Vec::new());
        let names = AttributeNumbers::new(&["text"], lines.iter());
        assert_eq!(names.len(), count + 2);
        let mut states = vec![None; names.len()];
        let list = AttributeRules::new(BString::default(), lines, &names);
        list.apply("f".into(), false, 0, false, &names, &mut states);
        assert_eq!(states[0], Some(AttributeState::Unset));
    }
}

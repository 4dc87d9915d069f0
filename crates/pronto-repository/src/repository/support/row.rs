//! A row of the tables: the name of a setting, the values with which it is in effect, and the operations that lack it.

use bstr::BStr;

use super::operation::{Operation, Operations};
use crate::config::{ConfigKey, value};

/// A setting or an environment variable that some operations do not implement.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Row {
    /// The environment variable, or `section.variable` in lower case.
    pub name: &'static str,
    /// The form of a configured variable.
    pub place: Place,
    /// The values with which it is in effect.
    pub when: When,
    /// The operations that do not implement it, and which others imply.
    pub operations: Operations,
    /// The consequence that it has in Git.
    pub reason: &'static str,
}

/// Whether a configured variable has a subsection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// `section.variable`.
    Section,
    /// `section.NAME.variable`.
    Subsection,
    /// Both, as for settings of one URL.
    Either,
}

/// The values with which a setting is in effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Any value.
    Set,
    /// Any value that is not empty.
    NotEmpty,
    /// Any value but a false boolean.
    True,
    /// A boolean that is false.
    False,
    /// Any value but these.
    Not(&'static [&'static str]),
}

impl Place {
    /// Returns whether `key` has this form.
    pub(super) fn admits(self, key: &ConfigKey<'_>) -> bool {
        match self {
            Place::Section => key.subsection.is_none(),
            Place::Subsection => key.subsection.is_some(),
            Place::Either => true,
        }
    }
}

impl When {
    /// Returns whether `value` puts the setting in effect; `None` is a key without a value.
    pub fn holds(self, value: Option<&BStr>) -> bool {
        let is_false = || value::parse_bool(value) == Some(false);
        match self {
            When::Set => true,
            When::NotEmpty => value.is_none_or(|value| !value.is_empty()),
            When::True => !is_false(),
            When::False => is_false(),
            When::Not(harmless) => {
                let value = value.unwrap_or_default();
                !harmless
                    .iter()
                    .any(|known| value.eq_ignore_ascii_case(known.as_bytes()))
            }
        }
    }
}

/// A row for a setting without a subsection, or for an environment variable.
pub(super) const fn row(
    name: &'static str,
    when: When,
    operations: &[Operation],
    reason: &'static str,
) -> Row {
    Row {
        name,
        place: Place::Section,
        when,
        operations: Operations::of(operations),
        reason,
    }
}

impl Row {
    /// Returns the row for the same setting in other places.
    pub(super) const fn in_place(mut self, place: Place) -> Self {
        self.place = place;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_put_settings_in_effect() {
        let holds = |when: When, value: &str| when.holds(Some(value.into()));
        assert!(When::True.holds(None) && holds(When::True, "nonsense"));
        assert!(!holds(When::True, "off") && holds(When::False, "no"));
        assert!(!holds(When::False, "nonsense") && !When::False.holds(None));
        assert!(!holds(When::NotEmpty, "") && holds(When::Set, ""));
        assert!(!holds(When::Not(&["a"]), "A") && holds(When::Not(&["a"]), "b"));
    }
}

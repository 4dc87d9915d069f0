//! A row of the tables: the name of a setting, the values that put it into effect, and the operations that lack it.

use bstr::BStr;

use super::operation::{Operation, Operations};
use crate::config::{ConfigKey, value};

/// A setting or an environment variable that some operations do not implement.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LackingRow {
    /// The name of the environment variable, or `section.variable` in lower case.
    pub name: &'static str,
    /// The form of the key of a configured variable.
    pub place: KeyForm,
    /// The values that put the setting into effect.
    pub when: ValueCondition,
    /// The operations that do not implement the setting. Operations that imply one of them lack the setting, too.
    pub operations: Operations,
    /// The effect of the setting in Git.
    pub reason: &'static str,
}

/// The form of a key: whether it has a subsection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyForm {
    /// A key without a subsection: `section.variable`.
    Section,
    /// A key with a subsection: `section.NAME.variable`.
    Subsection,
    /// A key with or without a subsection, such as a setting that may be limited to a URL.
    Either,
}

/// The values that put a setting into effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueCondition {
    /// Any value.
    Set,
    /// Any value that is not empty.
    NotEmpty,
    /// Any value except a false boolean.
    True,
    /// A false boolean.
    False,
    /// Any value except these.
    Not(&'static [&'static str]),
}

impl KeyForm {
    /// Returns whether `key` has this form.
    pub(super) fn admits(self, key: &ConfigKey<'_>) -> bool {
        match self {
            KeyForm::Section => key.subsection.is_none(),
            KeyForm::Subsection => key.subsection.is_some(),
            KeyForm::Either => true,
        }
    }
}

impl ValueCondition {
    /// Returns whether `value` puts the setting into effect. `None` is a key without a value.
    pub fn holds(self, value: Option<&BStr>) -> bool {
        let is_false = || value::parse_bool(value) == Some(false);
        match self {
            ValueCondition::Set => true,
            ValueCondition::NotEmpty => value.is_none_or(|value| !value.is_empty()),
            ValueCondition::True => !is_false(),
            ValueCondition::False => is_false(),
            ValueCondition::Not(harmless) => {
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
    when: ValueCondition,
    operations: &[Operation],
    reason: &'static str,
) -> LackingRow {
    LackingRow {
        name,
        place: KeyForm::Section,
        when,
        operations: Operations::of(operations),
        reason,
    }
}

impl LackingRow {
    /// Returns the row for keys of another form.
    pub(super) const fn in_place(mut self, place: KeyForm) -> Self {
        self.place = place;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_put_settings_in_effect() {
        let holds = |when: ValueCondition, value: &str| when.holds(Some(value.into()));
        assert!(ValueCondition::True.holds(None) && holds(ValueCondition::True, "nonsense"));
        assert!(!holds(ValueCondition::True, "off") && holds(ValueCondition::False, "no"));
        assert!(!holds(ValueCondition::False, "nonsense") && !ValueCondition::False.holds(None));
        assert!(!holds(ValueCondition::NotEmpty, "") && holds(ValueCondition::Set, ""));
        assert!(
            !holds(ValueCondition::Not(&["a"]), "A") && holds(ValueCondition::Not(&["a"]), "b")
        );
    }
}

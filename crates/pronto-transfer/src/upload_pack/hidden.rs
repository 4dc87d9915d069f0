//! Hidden refs: `transfer.hideRefs` and `uploadpack.hideRefs`.

use bstr::{BStr, BString, ByteSlice};

use crate::config::Config;

/// The patterns of hidden refs, in the order of the configuration. The last matching pattern
/// decides.
#[derive(Clone, Debug, Default)]
pub struct Hidden(Vec<BString>);

impl Hidden {
    /// Returns the patterns of refs that are hidden from fetches (`transfer.hideRefs`,
    /// `uploadpack.hideRefs`).
    pub fn configured(config: &Config) -> Hidden {
        Hidden::of(config, &[b"transfer.hiderefs", b"uploadpack.hiderefs"])
    }

    /// Returns the patterns of refs that are hidden from fetches or pushes.
    pub fn from_peers(config: &Config) -> Hidden {
        let keys: [&[u8]; 3] = [
            b"transfer.hiderefs",
            b"uploadpack.hiderefs",
            b"receive.hiderefs",
        ];
        Hidden::of(config, &keys)
    }

    /// Returns the patterns of refs that are hidden from pushes (`transfer.hideRefs`,
    /// `receive.hideRefs`).
    pub fn from_pushers(config: &Config) -> Hidden {
        Hidden::of(config, &[b"transfer.hiderefs", b"receive.hiderefs"])
    }

    fn of(config: &Config, keys: &[&[u8]]) -> Hidden {
        let entries = config
            .iter()
            .filter(|entry| keys.contains(&entry.key.as_bytes()));
        let patterns = entries.filter_map(|entry| entry.value);
        Hidden(
            patterns
                .map(|value| value.trim_end_with(|byte| byte == '/').into())
                .collect(),
        )
    }

    /// Whether the ref `name` is hidden.
    pub fn hides(&self, name: &BStr) -> bool {
        self.hides_in(Some(name), name)
    }

    /// Whether a ref with the full name `full` and the name `name` in its namespace is hidden.
    /// `name` is `None` if the ref is outside of the namespace. Patterns with `^` are compared with
    /// the full name.
    pub fn hides_in(&self, name: Option<&BStr>, full: &BStr) -> bool {
        for pattern in self.0.iter().rev() {
            let (pattern, hides) = match pattern.strip_prefix(b"!") {
                Some(pattern) => (pattern, false),
                None => (&pattern[..], true),
            };
            let (pattern, subject) = match pattern.strip_prefix(b"^") {
                Some(pattern) => (pattern, Some(full)),
                None => (pattern, name),
            };
            let rest = subject.and_then(|subject| subject.strip_prefix(pattern));
            if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/")) {
                return hides;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_pattern_decides() {
        let patterns = ["refs/a", "!refs/a/b", "^refs/a/b/c"];
        let hidden = Hidden(patterns.map(BString::from).to_vec());
        let hides = |name: &str| hidden.hides(name.into());
        assert!(hides("refs/a") && hides("refs/a/x") && hides("refs/a/b/c/d"));
        assert!(!hides("refs/a/b") && !hides("refs/ab") && !hides("refs/a/b/d") && !hides("HEAD"));
    }

    #[test]
    fn a_caret_is_for_the_full_name() {
        let patterns = ["refs/a", "^refs/namespaces/n/refs/b"];
        let hidden = Hidden(patterns.map(BString::from).to_vec());
        let hides = |name: &str, full: &str| hidden.hides_in(Some(name.into()), full.into());
        assert!(hides("refs/a/x", "refs/namespaces/n/refs/a/x"));
        assert!(hides("refs/b", "refs/namespaces/n/refs/b"));
        assert!(!hides("refs/b", "refs/namespaces/m/refs/b"));
    }
}

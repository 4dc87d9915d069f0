//! Hidden refs: `transfer.hideRefs` and `uploadpack.hideRefs`.

use bstr::{BStr, BString, ByteSlice};

use crate::config::Config;

/// Patterns in the order of the configuration: the last one that fits decides.
#[derive(Clone, Debug, Default)]
pub struct Hidden(Vec<BString>);

impl Hidden {
    /// Those that are hidden from who fetches.
    pub fn configured(config: &Config) -> Hidden {
        Hidden::of(config, &[b"transfer.hiderefs", b"uploadpack.hiderefs"])
    }

    /// Those that are hidden from who fetches or pushes.
    pub fn from_peers(config: &Config) -> Hidden {
        let keys: [&[u8]; 3] = [
            b"transfer.hiderefs",
            b"uploadpack.hiderefs",
            b"receive.hiderefs",
        ];
        Hidden::of(config, &keys)
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

    /// Whether the reference `name` is hidden.
    pub fn hides(&self, name: &BStr) -> bool {
        for pattern in self.0.iter().rev() {
            let (pattern, hides) = match pattern.strip_prefix(b"!") {
                Some(pattern) => (pattern, false),
                None => (&pattern[..], true),
            };
            // Without namespaces the full name is the name.
            let pattern = pattern.strip_prefix(b"^").unwrap_or(pattern);
            let rest = name.strip_prefix(pattern);
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
}

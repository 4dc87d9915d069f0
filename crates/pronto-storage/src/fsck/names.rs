//! File names that a file system treats as equal to a special file name of Git.

/// A special dot file, and its short name on NTFS.
pub(super) struct Special {
    /// The name without the dot.
    name: &'static [u8],
    /// The fallback short name on NTFS, if the regular short names are in use.
    short: &'static [u8; 6],
}

pub(super) const MODULES: Special = Special {
    name: b"gitmodules",
    short: b"gi7eba",
};
pub(super) const ATTRIBUTES: Special = Special {
    name: b"gitattributes",
    short: b"gi7d29",
};
pub(super) const IGNORE: Special = Special {
    name: b"gitignore",
    short: b"gi250a",
};
pub(super) const MAILMAP: Special = Special {
    name: b"mailmap",
    short: b"maba30",
};

impl Special {
    /// Returns whether `name` is equal to this file name on any file system.
    pub(super) fn is(&self, name: &[u8]) -> bool {
        is_on_hfs(name, self.name) || self.is_on_ntfs(name)
    }

    /// Returns whether `name` is equal to this file name on NTFS: with any case, as a short name, or
    /// followed by blanks, dots or the name of a stream.
    pub(super) fn is_on_ntfs(&self, name: &[u8]) -> bool {
        if let Some(rest) = name
            .strip_prefix(b".")
            .and_then(|rest| without_prefix(rest, self.name))
        {
            return is_nothing_on_ntfs(rest, b"");
        }
        let plain = without_prefix(name, &self.name[..6]);
        if let Some([b'~', b'1'..=b'4', rest @ ..]) = plain {
            return is_nothing_on_ntfs(rest, b"");
        }
        let Some((start, rest)) = name.split_at_checked(8) else {
            return false;
        };
        let Some(tilde) = start.iter().position(|byte| *byte == b'~') else {
            return false;
        };
        // The number does not start with zero, and the short name has at most eight characters.
        tilde < 7
            && start[..tilde].eq_ignore_ascii_case(&self.short[..tilde.min(6)])
            && matches!(start[tilde + 1], b'1'..=b'9')
            && start[tilde + 1..].iter().all(u8::is_ascii_digit)
            && is_nothing_on_ntfs(rest, b"")
    }
}

/// Returns whether `name` may be a special file name. This is a fast check that can return true for
/// other names.
pub(super) fn may_be_special(name: &[u8]) -> bool {
    matches!(
        name.first(),
        Some(b'.' | b'g' | b'G' | b'm' | b'M' | b'~' | 0x80..)
    ) || name.contains(&b'\\')
}

/// Returns whether `name` is equal to `.git` on any file system.
pub(super) fn is_dot_git(name: &[u8]) -> bool {
    is_on_hfs(name, b"git") || is_dot_git_on_ntfs(name)
}

/// Returns whether `name`, or its part before a separator, is equal to `.git` on NTFS.
pub(super) fn is_dot_git_on_ntfs(name: &[u8]) -> bool {
    let rest = without_prefix(name, b".git").or_else(|| without_prefix(name, b"git~1"));
    rest.is_some_and(|rest| is_nothing_on_ntfs(rest, b"\\/"))
}

/// Removes `prefix`, in any case, from `name`.
fn without_prefix<'a>(name: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = name.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// Returns whether NTFS ignores `rest`, the end of a name: blanks and dots up to the end, the name of a
/// stream, or one of `separators`.
fn is_nothing_on_ntfs(rest: &[u8], separators: &[u8]) -> bool {
    let first = rest.iter().find(|byte| !matches!(byte, b' ' | b'.'));
    first.is_none_or(|byte| *byte == b':' || separators.contains(byte))
}

/// Returns whether `name` is equal to a dot and `wanted` on HFS+, which ignores case and invisible
/// characters.
fn is_on_hfs(name: &[u8], wanted: &[u8]) -> bool {
    if name
        .first()
        .is_some_and(|byte| *byte != b'.' && *byte < 0x80)
    {
        return false;
    }
    let mut seen = bstr::ByteSlice::char_indices(name)
        .filter(|(start, end, character)| {
            // Invalid UTF-8 ends the name.
            let broken = *character == '\u{fffd}' && end - start != 3;
            broken || !is_ignored(*character)
        })
        .map(|(_, _, character)| character);
    let same = |character: char, byte: u8| {
        character.is_ascii() && character.to_ascii_lowercase() == char::from(byte)
    };
    if seen.next() != Some('.') {
        return false;
    }
    for byte in wanted {
        if !seen.next().is_some_and(|character| same(character, *byte)) {
            return false;
        }
    }
    matches!(seen.next(), None | Some('/' | '\u{fffd}'))
}

/// Returns whether HFS+ ignores the character in names.
fn is_ignored(character: char) -> bool {
    matches!(
        character,
        '\u{200c}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{206a}'..='\u{206f}'
            | '\u{feff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dot_git_is_seen_in_its_disguises() {
        for name in [
            ".git",
            ".GIT",
            ".g\u{200c}it",
            ".git ",
            ".git...",
            "git~1",
            "GIT~1. ",
            ".git:x",
            ".git\\x",
        ] {
            assert!(is_dot_git(name.as_bytes()), "{name}");
            assert!(may_be_special(name.as_bytes()), "{name}");
        }
        for name in ["git", ".gitx", "git~2", ".gi", "xgit~1", ".git x", "..git"] {
            assert!(!is_dot_git(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn special_names_are_seen_in_their_disguises() {
        for name in [
            ".gitmodules",
            ".GitModules",
            ".gitmodules .",
            "gitmod~1",
            "GITMOD~4",
            "gi7eba~1",
            "gi7eb~10",
            "GI7E~123",
            ".git\u{200d}modules",
            ".gitmodules:$DATA",
            "~1000000",
        ] {
            assert!(MODULES.is(name.as_bytes()), "{name}");
            assert!(may_be_special(name.as_bytes()), "{name}");
        }
        for name in [
            "gitmodules",
            "gitmod~5",
            "gi7eba~0",
            "gi7ebax1",
            ".gitmodulesx",
            "gi7eba~",
            "gi7d29~1",
        ] {
            assert!(!MODULES.is(name.as_bytes()), "{name}");
        }
        assert!(ATTRIBUTES.is(b"gi7d29~1") && MAILMAP.is(b"maba30~1") && IGNORE.is(b"gi250a~9"));
    }
}

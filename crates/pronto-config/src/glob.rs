//! Matches names against wildcard patterns, by the rules of `gitignore(5)`.
//!
//! The matcher backtracks at most to the last `*` and the last `**`. The text before such a
//! wildcard is matched as early as possible, which leaves all choices to the later wildcards. So
//! for every pattern the run time is bounded by the length of the pattern times the length of the
//! text. The matcher does not allocate.

use bstr::{BStr, ByteSlice};
use gix_glob::Pattern;
use gix_glob::pattern::Mode;

/// The options of a match (`WM_PATHNAME`, `WM_CASEFOLD`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatchOptions {
    /// Match a slash only by a slash or by `**` as a whole component. Otherwise every `*` matches
    /// slashes (`WM_PATHNAME`).
    pub in_components: bool,
    /// Match ASCII letters in either case (`core.ignoreCase`).
    pub fold_case: bool,
}

/// Returns whether `pattern` matches all of `text`. A pattern with an unclosed bracket, or with an
/// unknown character class, matches nothing.
pub fn matches(pattern: &[u8], text: &[u8], how: MatchOptions) -> bool {
    let mut matcher = GlobMatcher {
        pattern,
        text,
        how,
        at: 0,
        read: 0,
        star: None,
        wide: None,
    };
    loop {
        match matcher.step() {
            MatchStep::Match => return true,
            MatchStep::Never => return false,
            MatchStep::Next => {}
            MatchStep::Back => {
                if !matcher.back() {
                    return false;
                }
            }
        }
    }
}

/// Returns whether a pattern of an ignore file, an attributes file or a sparse-checkout file
/// matches `path`, whose last component starts at `basename`. A pattern without a slash is matched
/// against the last component.
pub fn matches_path(
    pattern: &Pattern,
    path: &BStr,
    basename: Option<usize>,
    is_directory: bool,
    fold_case: bool,
) -> bool {
    let has = |mode| pattern.mode.contains(mode);
    if has(Mode::MUST_BE_DIR) && !is_directory {
        return false;
    }
    let text = match has(Mode::NO_SUB_DIR) && !has(Mode::ABSOLUTE) {
        true => &path[basename.unwrap_or_default()..],
        false => path,
    };
    let same = |one: &[u8], two: &[u8]| match fold_case {
        true => one.eq_ignore_ascii_case(two),
        false => one == two,
    };
    let Some(literal) = pattern.first_wildcard_pos else {
        return same(&pattern.text, text);
    };
    // The pattern is a star and a literal suffix.
    if has(Mode::ENDS_WITH) && !text.contains(&b'/') {
        let end = &pattern.text[literal + 1..];
        let start = text.len().checked_sub(end.len());
        return start.is_some_and(|start| same(end, &text[start..]));
    }
    let how = MatchOptions {
        in_components: true,
        fold_case,
    };
    let starts = text.get(..literal);
    // Keep the byte before the first wildcard, which determines whether a `**` starts a component.
    let rest = literal.saturating_sub(1);
    starts.is_some_and(|start| same(start, &pattern.text[..literal]))
        && matches(&pattern.text[rest..], &text[rest..], how)
}

/// A running match: both positions, and the positions for backtracking.
struct GlobMatcher<'a> {
    pattern: &'a [u8],
    text: &'a [u8],
    how: MatchOptions,
    /// The current position in the pattern.
    at: usize,
    /// The current position in the text.
    read: usize,
    /// The positions in the pattern and the text after the last `*` that matches no slash.
    star: Option<(usize, usize)>,
    /// The positions after the last `*` or `**` that matches slashes.
    wide: Option<Wide>,
}

/// The positions after a wildcard that matches slashes.
#[derive(Clone, Copy)]
struct Wide {
    at: usize,
    read: usize,
    /// Whether the wildcard matches only whole components, each with its slash.
    in_components: bool,
}

enum MatchStep {
    Match,
    /// No other choice can match.
    Never,
    Next,
    /// Backtrack: another choice can match.
    Back,
}

impl GlobMatcher<'_> {
    fn step(&mut self) -> MatchStep {
        let Some(&sign) = self.pattern.get(self.at) else {
            return match self.read == self.text.len() {
                true => MatchStep::Match,
                false => MatchStep::Back,
            };
        };
        if sign == b'*' {
            return self.stars();
        }
        // Every other choice would leave even less of the text.
        let Some(&byte) = self.text.get(self.read) else {
            return MatchStep::Never;
        };
        let byte = match self.how.fold_case {
            true => byte.to_ascii_lowercase(),
            false => byte,
        };
        let is_slash = self.how.in_components && byte == b'/';
        let (len, is_match) = match sign {
            b'?' => (1, !is_slash),
            b'[' => match bracket(&self.pattern[self.at..], byte, self.how.fold_case) {
                Some((len, is_match)) => (len, is_match && !is_slash),
                None => return MatchStep::Never,
            },
            b'\\' => match self.pattern.get(self.at + 1) {
                Some(&literal) => (2, literal == byte),
                None => return MatchStep::Never,
            },
            literal if self.how.fold_case => (1, literal.to_ascii_lowercase() == byte),
            literal => (1, literal == byte),
        };
        if !is_match {
            return MatchStep::Back;
        }
        self.at += len;
        self.read += 1;
        MatchStep::Next
    }

    /// Matches a sequence of stars.
    fn stars(&mut self) -> MatchStep {
        let rest = &self.pattern[self.at..];
        let count = rest.iter().take_while(|&&sign| sign == b'*').count();
        let starts = self.at == 0 || self.pattern[self.at - 1] == b'/';
        let rest = &rest[count..];
        let ends = rest.is_empty() || rest[0] == b'/' || rest.starts_with(b"\\/");
        let is_wide = !self.how.in_components || (count > 1 && starts && ends);
        self.at += count;
        if rest.is_empty() {
            return match is_wide || !self.text[self.read..].contains(&b'/') {
                true => MatchStep::Match,
                // The earlier star cannot match this slash, either.
                false => {
                    self.star = None;
                    MatchStep::Back
                }
            };
        }
        if !is_wide {
            self.star = Some((self.at, self.read));
            return MatchStep::Next;
        }
        let in_components = self.how.in_components && rest[0] == b'/';
        self.at += usize::from(in_components);
        self.star = None;
        self.wide = Some(Wide {
            at: self.at,
            read: self.read,
            in_components,
        });
        MatchStep::Next
    }

    /// Extends the match of the last star. Returns whether that is possible.
    fn back(&mut self) -> bool {
        if let Some((at, read)) = self.star
            && self.text.get(read).is_some_and(|&byte| byte != b'/')
        {
            self.star = Some((at, read + 1));
            (self.at, self.read) = (at, read + 1);
            return true;
        }
        self.star = None;
        let Some(wide) = &mut self.wide else {
            return false;
        };
        let rest = self.text.get(wide.read..).unwrap_or_default();
        let more = match wide.in_components {
            true => rest.iter().position(|&byte| byte == b'/'),
            false => (!rest.is_empty()).then_some(0),
        };
        let Some(more) = more else { return false };
        wide.read += more + 1;
        (self.at, self.read) = (wide.at, wide.read);
        true
    }
}

/// Returns the length of the bracket expression at the start of `pattern`, and whether the
/// expression contains `byte` (in lower case if case is folded). Returns `None` if the expression
/// is malformed.
fn bracket(pattern: &[u8], byte: u8, fold_case: bool) -> Option<(usize, bool)> {
    let is_negative = matches!(pattern.get(1), Some(b'!' | b'^'));
    let first = 1 + usize::from(is_negative);
    let mut at = first;
    let mut is_in = false;
    // The character before, if it can start a range.
    let mut from: Option<u8> = None;
    loop {
        let sign = *pattern.get(at)?;
        let next = pattern.get(at + 1).copied();
        at += 1;
        match (sign, from, next) {
            (b']', ..) if at - 1 > first => return Some((at, is_in != is_negative)),
            (b'\\', _, literal) => {
                let literal = literal?;
                at += 1;
                is_in |= literal == byte;
                from = Some(literal);
            }
            (b'-', Some(low), Some(mut high)) if high != b']' => {
                at += 1;
                if high == b'\\' {
                    high = *pattern.get(at)?;
                    at += 1;
                }
                let range = low..=high;
                is_in |= range.contains(&byte)
                    || (fold_case && range.contains(&byte.to_ascii_uppercase()));
                from = None;
            }
            (b'[', _, Some(b':')) => {
                let name = &pattern[at + 1..];
                let end = name.find_byte(b']')?;
                match name[..end].strip_suffix(b":") {
                    Some(name) => {
                        is_in |= class(name, byte, fold_case)?;
                        at += 1 + end + 1;
                        from = None;
                    }
                    // Not a character class: these characters are literals.
                    None => {
                        is_in |= byte == b'[';
                        from = Some(b'[');
                    }
                }
            }
            (literal, ..) => {
                is_in |= literal == byte;
                from = Some(literal);
            }
        }
    }
}

/// Returns whether the character class `name` contains `byte`, or `None` if there is no such class.
fn class(name: &[u8], byte: u8, fold_case: bool) -> Option<bool> {
    Some(match name {
        b"alnum" => byte.is_ascii_alphanumeric(),
        b"alpha" => byte.is_ascii_alphabetic(),
        b"blank" => matches!(byte, b' ' | b'\t'),
        b"cntrl" => byte.is_ascii_control(),
        b"digit" => byte.is_ascii_digit(),
        b"graph" => byte.is_ascii_graphic(),
        b"lower" => byte.is_ascii_lowercase(),
        b"print" => matches!(byte, b' '..=b'~'),
        b"punct" => byte.is_ascii_punctuation(),
        b"space" => matches!(byte, b' ' | b'\t' | b'\n' | b'\r'),
        b"upper" => byte.is_ascii_uppercase() || (fold_case && byte.is_ascii_lowercase()),
        b"xdigit" => byte.is_ascii_hexdigit(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATHS: MatchOptions = MatchOptions {
        in_components: true,
        fold_case: false,
    };

    fn path(pattern: &str, text: &str) -> bool {
        matches(pattern.as_bytes(), text.as_bytes(), PATHS)
    }

    #[test]
    fn stars_stay_in_their_component() {
        assert!(path("*.c", "a.c") && !path("*.c", "a/b.c") && path("*/b.c", "a/b.c"));
        assert!(path("a*b*c", "a1b2bc") && !path("a*b*c", "a1b2/bc"));
        assert!(path("a**c", "abc") && !path("a**c", "a/c"));
        assert!(path("", "") && path("*", "") && !path("?", "") && !path("a?c", "a/c"));
    }

    #[test]
    fn two_stars_stand_for_components() {
        for pattern in ["a/**/b", "**/b", "a/**", "**", "a/**/**/b", "a/***/b"] {
            assert!(path(pattern, "a/b") && path(pattern, "a/x/b"), "{pattern}");
        }
        assert!(!path("a/**/b", "a/xb") && !path("**/b", "ab") && !path("a/**/b", "ab"));
        assert!(path("a/**\\/b", "a/x/b") && !path("a/**\\/b", "a/b"));
        assert!(path("**/a*c/**/d", "x/abc/c/ac/y/d") && !path("**/a*c/**/d", "x/ab/c/d"));
    }

    #[test]
    fn brackets() {
        for (pattern, text, expected) in [
            ("[]-]", "]", true),
            ("[]-]", "-", true),
            ("[!]]", "]", false),
            ("[a-c]", "b", true),
            ("[^a-c]", "b", false),
            ("[a-", "a", false),
            ("[[:digit:]x]", "7", true),
            ("[[:digits:]7]", "7", false),
            ("[[:d]", "[", true),
            ("[[:d]", "d", true),
            ("[\\]]", "]", true),
            ("[!a]", "/", false),
            ("a\\", "a", false),
            ("a\\*", "a*", true),
            ("[a-\\]]x", "]x", false),
        ] {
            assert_eq!(path(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn case_is_folded_as_in_git() {
        let fold = |pattern: &str, text: &str| {
            let how = MatchOptions {
                fold_case: true,
                ..PATHS
            };
            matches(pattern.as_bytes(), text.as_bytes(), how)
        };
        assert!(fold("Ab*C", "aBxc") && fold("[A-C]", "b") && fold("[[:upper:]]", "x"));
        // Git does not fold a single letter in a bracket, or an escaped letter.
        assert!(!fold("[A]", "A") && fold("[a]", "A") && !fold("\\A", "A"));
    }

    /// The reference matcher: tries all choices.
    fn every_way(pattern: &[u8], text: &[u8], starts: bool) -> bool {
        let Some((&sign, rest)) = pattern.split_first() else {
            return text.is_empty();
        };
        if sign != b'*' {
            let fits = |byte: &u8| *byte == sign || (sign == b'?' && *byte != b'/');
            return text
                .split_first()
                .is_some_and(|(byte, others)| fits(byte) && every_way(rest, others, sign == b'/'));
        }
        let after = pattern.trim_start_with(|sign| sign == '*');
        let is_wide =
            pattern.len() - after.len() > 1 && starts && matches!(after.first(), None | Some(b'/'));
        let end = match is_wide {
            true => text.len(),
            false => text.find_byte(b'/').unwrap_or(text.len()),
        };
        (is_wide && after.first() == Some(&b'/') && every_way(&after[1..], text, true))
            || (0..=end).any(|taken| every_way(after, &text[taken..], false))
    }

    #[test]
    fn no_way_is_missed() {
        let mut state = 7u64;
        let mut next = |below: u64| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            ((state >> 33) % below) as usize
        };
        let mut found = 0;
        for _ in 0..200_000 {
            let pattern: Vec<u8> = (0..next(10)).map(|_| b"ab*/*?*/"[next(8)]).collect();
            let text: Vec<u8> = (0..next(9)).map(|_| b"abab/"[next(5)]).collect();
            let expected = every_way(&pattern, &text, true);
            found += usize::from(expected);
            let (shown, of) = (pattern.as_bstr(), text.as_bstr());
            assert_eq!(
                matches(&pattern, &text, PATHS),
                expected,
                "{shown:?} {of:?}"
            );
        }
        assert!(found > 5_000, "{found}");
    }

    #[test]
    fn many_stars_take_no_longer() {
        let text = "a/".repeat(2000);
        for part in ["**/", "**/a/", "*a*/**/", "a*"] {
            assert!(!path(&(part.repeat(500) + "b"), &text), "{part}");
        }
        let how = MatchOptions::default();
        assert!(!matches(
            "*a".repeat(500).as_bytes(),
            "b".repeat(5000).as_bytes(),
            how
        ));
    }
}

//! Values that a report may contain: truth values, numbers, and words that git or pronto define.

/// Words that are values of settings and variables.
const WORDS: &[&str] = &[
    "all",
    "always",
    "auto",
    "batch",
    "cascade",
    "compact",
    "consecutive",
    "copies",
    "copy",
    "crlf",
    "current",
    "default",
    "diff3",
    "false",
    "files",
    "full",
    "geometric",
    "gc",
    "histogram",
    "ignore",
    "incremental",
    "input",
    "interactive",
    "keep",
    "lf",
    "matching",
    "merge",
    "merges",
    "minimal",
    "myers",
    "native",
    "never",
    "no",
    "none",
    "noop",
    "normal",
    "nothing",
    "off",
    "on",
    "on-demand",
    "only",
    "ort",
    "patience",
    "refuse",
    "reftable",
    "sha1",
    "sha256",
    "simple",
    "skipping",
    "strict",
    "true",
    "updateInstead",
    "upstream",
    "v1",
    "v2",
    "warn",
    "yes",
    "zdiff3",
];

/// The largest number of digits of a harmless number.
const DIGITS: usize = 12;

/// Returns whether a report may contain `value`.
pub(super) fn is_harmless(value: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(value) else {
        return false;
    };
    let is_word = WORDS.iter().any(|word| word.eq_ignore_ascii_case(text));
    text.is_empty() || is_word || is_number(text)
}

/// Returns whether `text` is a number, with a sign and a unit if it has them.
fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let digits = unsigned.strip_suffix(['k', 'K', 'm', 'M', 'g', 'G']);
    let digits = digits.unwrap_or(unsigned);
    (1..=DIGITS).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_and_numbers_are_harmless() {
        for value in ["", "true", "UPDATEINSTEAD", "0", "-1", "512m", "zdiff3"] {
            assert!(is_harmless(value.as_bytes()), "{value}");
        }
        for value in ["hunter2", "1234567890123", "true ", "m", "-", "/home/x"] {
            assert!(!is_harmless(value.as_bytes()), "{value}");
        }
    }
}

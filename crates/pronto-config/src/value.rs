//! Parses typed values with Git's rules.

/// The reason for which a number could not be parsed, in Git's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadNumber {
    /// The value is not a number with at most one unit `k`, `m` or `g`.
    InvalidUnit,
    /// The number is out of range.
    OutOfRange,
}

impl std::fmt::Display for BadNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            BadNumber::InvalidUnit => "invalid unit",
            BadNumber::OutOfRange => "out of range",
        })
    }
}

/// Parses a boolean: `true`, `yes`, `on` or no value; `false`, `no`, `off` or an empty value; or
/// any integer. Returns `None` for other values.
pub fn parse_bool(value: Option<&bstr::BStr>) -> Option<bool> {
    match parse_bool_word(value) {
        Some(word) => Some(word),
        None => parse_i32(value?).ok().map(|number| number != 0),
    }
}

/// Parses a boolean word. Integers are not accepted.
pub fn parse_bool_word(value: Option<&bstr::BStr>) -> Option<bool> {
    let Some(value) = value else {
        return Some(true);
    };
    let is = |word: &str| value.eq_ignore_ascii_case(word.as_bytes());
    if is("true") || is("yes") || is("on") {
        Some(true)
    } else if value.is_empty() || is("false") || is("no") || is("off") {
        Some(false)
    } else {
        None
    }
}

/// Parses an integer in C notation (decimal, `0x…`, `0…`) with an optional unit `k`, `m` or `g`.
///
/// # Errors
/// Fails with [`BadNumber`] if the value is not a number or is out of range.
pub fn parse_i64(value: &bstr::BStr) -> Result<i64, BadNumber> {
    let text = value.trim_ascii_start();
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let magnitude = i128::from(parse_magnitude(digits)?);
    let number = if negative { -magnitude } else { magnitude };
    i64::try_from(number).map_err(|_| BadNumber::OutOfRange)
}

/// Parses an integer like [`parse_i64`] that must not be negative.
///
/// # Errors
/// Fails with [`BadNumber`] if the value is not a number or is out of range.
pub fn parse_u64(value: &bstr::BStr) -> Result<u64, BadNumber> {
    let text = value.trim_ascii_start();
    if text.contains(&b'-') {
        return Err(BadNumber::InvalidUnit);
    }
    parse_magnitude(text.strip_prefix(b"+").unwrap_or(text))
}

/// Parses an integer like [`parse_i64`] in the range of C's `int`.
///
/// # Errors
/// Fails with [`BadNumber`] if the value is not a number or is out of range.
pub fn parse_i32(value: &bstr::BStr) -> Result<i32, BadNumber> {
    i32::try_from(parse_i64(value)?).map_err(|_| BadNumber::OutOfRange)
}

fn parse_magnitude(text: &[u8]) -> Result<u64, BadNumber> {
    let (radix, text) = match text {
        [b'0', b'x' | b'X', rest @ ..] if rest.first().is_some_and(u8::is_ascii_hexdigit) => {
            (16, rest)
        }
        [b'0', ..] => (8, text),
        _ => (10, text),
    };
    let is_digit = |&byte: &u8| char::from(byte).is_digit(radix);
    let end = text
        .iter()
        .position(|byte| !is_digit(byte))
        .unwrap_or(text.len());
    if end == 0 {
        return Err(BadNumber::InvalidUnit);
    }
    let (digits, unit) = text.split_at(end);
    let factor: u64 = match unit {
        b"" => 1,
        b"k" | b"K" => 1 << 10,
        b"m" | b"M" => 1 << 20,
        b"g" | b"G" => 1 << 30,
        _ => return Err(BadNumber::InvalidUnit),
    };
    digits
        .iter()
        .try_fold(0u64, |number, &byte| {
            let digit = char::from(byte).to_digit(radix)?;
            number.checked_mul(radix.into())?.checked_add(digit.into())
        })
        .and_then(|number| number.checked_mul(factor))
        .ok_or(BadNumber::OutOfRange)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units_and_bases() {
        let read = |text: &str| parse_i64(text.into());
        assert_eq!(read("1k"), Ok(1024));
        assert_eq!(read("-2G"), Ok(-(2 << 30)));
        assert_eq!(read("0x10"), Ok(16));
        assert_eq!(read("010"), Ok(8));
        assert_eq!(read(" 7"), Ok(7));
        assert_eq!(read("08"), Err(BadNumber::InvalidUnit));
        assert_eq!(read(""), Err(BadNumber::InvalidUnit));
        assert_eq!(read("1kb"), Err(BadNumber::InvalidUnit));
        assert_eq!(read("9223372036854775807g"), Err(BadNumber::OutOfRange));
        assert_eq!(parse_i32("3g".into()), Err(BadNumber::OutOfRange));
        assert_eq!(parse_u64("-1".into()), Err(BadNumber::InvalidUnit));
    }

    #[test]
    fn booleans_are_words_or_numbers() {
        let read = |text: &str| parse_bool(Some(text.into()));
        assert_eq!(read("Yes"), Some(true));
        assert_eq!(read(""), Some(false));
        assert_eq!(read("-1"), Some(true));
        assert_eq!(read("0"), Some(false));
        assert_eq!(read("maybe"), None);
        assert_eq!(parse_bool(None), Some(true));
    }
}

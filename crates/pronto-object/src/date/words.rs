//! The names in dates: months, days of the week, time zones.

/// The names of the months, from January.
pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The names of the days of the week, from Sunday.
pub(super) const WEEKDAYS: [&str; 7] = [
    "Sundays",
    "Mondays",
    "Tuesdays",
    "Wednesdays",
    "Thursdays",
    "Fridays",
    "Saturdays",
];

/// The names of time zones with their offsets from UTC in hours, in the order in which Git compares
/// them.
const ZONES: [(&str, i32); 44] = [
    ("IDLW", -12),
    ("NT", -11),
    ("CAT", -10),
    ("HST", -10),
    ("HDT", -9),
    ("YST", -9),
    ("YDT", -8),
    ("PST", -8),
    ("PDT", -7),
    ("MST", -7),
    ("MDT", -6),
    ("CST", -6),
    ("CDT", -5),
    ("EST", -5),
    ("EDT", -4),
    ("AST", -3),
    ("ADT", -2),
    ("WAT", -1),
    ("GMT", 0),
    ("UTC", 0),
    ("Z", 0),
    ("WET", 0),
    ("BST", 1),
    ("CET", 1),
    ("MET", 1),
    ("MEWT", 1),
    ("MEST", 2),
    ("CEST", 2),
    ("MESZ", 2),
    ("FWT", 1),
    ("FST", 2),
    ("EET", 2),
    ("EEST", 3),
    ("WAST", 7),
    ("WADT", 8),
    ("CCT", 8),
    ("JST", 9),
    ("EAST", 10),
    ("EADT", 11),
    ("GST", 10),
    ("NZT", 12),
    ("NZST", 12),
    ("NZDT", 13),
    ("IDLE", 12),
];

/// Returns the length of the word at the start of `text` if the word is `name` or an abbreviation
/// of `name`, without regard to case; otherwise 0. A word consists of letters and digits.
pub(super) fn common(text: &[u8], name: &str) -> usize {
    let word = text.iter().take_while(|byte| byte.is_ascii_alphanumeric());
    let length = word.count();
    let is_start =
        name.len() >= length && text[..length].eq_ignore_ascii_case(&name.as_bytes()[..length]);
    if is_start { length } else { 0 }
}

/// Returns the index of the name in `names` with which `text` starts, abbreviated to at least three
/// letters.
pub(super) fn find(text: &[u8], names: &[&str]) -> Option<DateWord> {
    let mut lengths = names.iter().map(|name| common(text, name)).enumerate();
    let (index, length) = lengths.find(|(_, length)| *length >= 3)?;
    Some(DateWord {
        value: index as i64,
        length,
    })
}

/// Returns the offset in minutes of the time zone whose name is at the start of `text`.
pub(super) fn zone(text: &[u8]) -> Option<DateWord> {
    ZONES.iter().find_map(|(name, hours)| {
        let length = common(text, name);
        let found = DateWord {
            value: i64::from(*hours) * 60,
            length,
        };
        (length >= 3 || length == name.len()).then_some(found)
    })
}

/// A recognised word.
pub(super) struct DateWord {
    /// The index or the value of the word.
    pub(super) value: i64,
    /// The length of the word in bytes.
    pub(super) length: usize,
}

/// Parses the number at the start of `text`, which saturates at the largest value. Without digits,
/// the length is 0.
pub(super) fn number(text: &[u8]) -> DateWord {
    let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let value = text[..length].iter().fold(0i64, |value, digit| {
        value
            .saturating_mul(10)
            .saturating_add(i64::from(digit - b'0'))
    });
    DateWord { value, length }
}

/// Returns whether `text` has a digit at `at`.
pub(super) fn digit_at(text: &[u8], at: usize) -> bool {
    text.get(at).is_some_and(u8::is_ascii_digit)
}

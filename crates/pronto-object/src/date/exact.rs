//! Parses dates that name one point in time, in all formats that Git's `parse_date` accepts.

use super::calendar::{self, DAY, DateFields};
use super::words::{self, MONTHS, WEEKDAYS, digit_at, number};
use gix_date::Time;

/// The last second of 2099.
const LAST: i64 = 4_102_444_799;

/// The smallest number that is parsed as seconds since the epoch.
const SECONDS: i64 = 100_000_000;

/// The last second that `gmtime` of the C library converts: its year is the largest 32-bit number.
const LAST_SECOND: i64 = 67_768_036_191_676_799;

/// Parses a date with its time zone. Returns `None` if `text` is not a time between 1970 and 2099.
/// `now` is in seconds since the epoch: a date without a year, such as `4/7`, must not be much
/// later.
pub(super) fn parse(text: &[u8], now: i64) -> Option<Time> {
    let line = text.split(|byte| matches!(byte, b'\n' | 0)).next()?;
    if let Some(time) = line.strip_prefix(b"@").and_then(header) {
        return Some(time);
    }
    let mut reader = Reader {
        fields: DateFields::default(),
        offset: None,
        is_utc: false,
        now,
    };
    let mut at = 0;
    while let Some(&byte) = line.get(at) {
        let rest = &line[at..];
        let length = match byte {
            _ if byte.is_ascii_alphabetic() => reader.word(rest),
            _ if byte.is_ascii_digit() => reader.digits(rest),
            b'+' | b'-' if digit_at(rest, 1) => reader.zone(rest),
            _ => 1,
        };
        at += length.max(1);
    }
    reader.finish()
}

/// Parses the format of commits: `1112911993 -0700`.
fn header(text: &[u8]) -> Option<Time> {
    let seconds = number(text);
    let zone = text.get(seconds.length..)?.strip_prefix(b" ")?;
    let (&sign, digits) = zone.split_first()?;
    let hours = number(digits);
    let is_zone = matches!(sign, b'+' | b'-') && hours.length == 4 && digits.len() == 4;
    if seconds.length == 0 || !is_zone || seconds.value == i64::MAX {
        return None;
    }
    let minutes = hours.value / 100 * 60 + hours.value % 100;
    let minutes = if sign == b'-' { -minutes } else { minutes };
    Some(Time {
        seconds: seconds.value,
        offset: (minutes * 60) as i32,
    })
}

/// The state of the parser.
struct Reader {
    fields: DateFields,
    /// The offset from UTC in minutes, positive to the east.
    offset: Option<i64>,
    /// Whether the date is in seconds since the epoch.
    is_utc: bool,
    now: i64,
}

impl Reader {
    /// Parses the word at the start of `rest`. Returns its length in bytes.
    fn word(&mut self, rest: &[u8]) -> usize {
        if let Some(month) = words::find(rest, &MONTHS) {
            self.fields.month = Some(month.value);
            return month.length;
        }
        if let Some(day) = words::find(rest, &WEEKDAYS) {
            return day.length;
        }
        if let Some(zone) = words::zone(rest) {
            self.offset.get_or_insert(zone.value);
            return zone.length;
        }
        for (name, first) in [("PM", 12), ("AM", 0)] {
            if words::common(rest, name) == 2 {
                let hour = self.fields.hour.unwrap_or(-1) % 12 + first;
                self.fields.hour = (hour >= 0).then_some(hour);
                return 2;
            }
        }
        if rest[0] == b'T' && digit_at(rest, 1) && self.fields.hour.is_none() {
            self.fields.minute = Some(0);
            self.fields.second = Some(0);
            return 1;
        }
        rest.iter()
            .take_while(|byte| byte.is_ascii_alphabetic())
            .count()
    }

    /// Parses the number at the start of `rest`, together with following numbers of the same date
    /// or time.
    fn digits(&mut self, rest: &[u8]) -> usize {
        let first = number(rest);
        let (value, length) = (first.value, first.length);
        // Git overflows for the largest number, to the second before 1970.
        if (SECONDS..=LAST_SECOND).contains(&value) && self.fields.is_empty() {
            self.fields = DateFields::utc(value);
            self.is_utc = true;
            return length;
        }
        if let Some(taken) = signed_numbers(rest, &mut self.fields, self.now) {
            return taken;
        }
        let parts = [value / 10_000, value / 100 % 100, value % 100];
        if length == 8 {
            set_date(&mut self.fields, parts, None);
            return length;
        }
        if length == 6 {
            let has_fraction = rest.get(length) == Some(&b'.') && digit_at(rest, length + 1);
            return match set_time(&mut self.fields, parts) && has_fraction {
                true => length + 1 + number(&rest[length + 1..]).length,
                false => length,
            };
        }
        if !self.reduced_time(value, length) {
            self.lone(value, length);
        }
        length
    }

    /// Parses `hh` or `hhmm` after the `T` of a date. Returns whether the digits are a valid time.
    fn reduced_time(&mut self, value: i64, length: usize) -> bool {
        let fields = &mut self.fields;
        if fields.hour.is_some() || fields.minute != Some(0) || fields.second != Some(0) {
            return false;
        }
        let parts = match length {
            4 => [value / 100, value % 100, 0],
            _ => [value, 0, 0],
        };
        if matches!(length, 2 | 4) && set_time(fields, parts) {
            return true;
        }
        fields.minute = None;
        fields.second = None;
        false
    }

    /// Parses a separate number: a year, a time zone, a day or a month.
    fn lone(&mut self, value: i64, length: usize) {
        let fields = &mut self.fields;
        if length == 4 {
            if value <= 1400 && self.offset.is_none() {
                self.offset = Some(value / 100 * 60 + value % 100);
            } else if (1901..2100).contains(&value) {
                fields.year = Some(value - 1900);
            }
            return;
        }
        if length > 2 {
            return;
        }
        if (1..32).contains(&value) && fields.day.is_none() {
            fields.day = Some(value);
            return;
        }
        if length == 2 && fields.year.is_none() {
            if value < 10 && fields.day.is_some() {
                fields.year = Some(value + 100);
                return;
            }
            if value >= 70 {
                fields.year = Some(value);
                return;
            }
        }
        if (1..13).contains(&value) && fields.month.is_none() {
            fields.month = Some(value - 1);
        }
    }

    /// Parses a time zone: a sign and digits (`+hhmm`). An invalid zone is skipped.
    fn zone(&mut self, rest: &[u8]) -> usize {
        let first = number(&rest[1..]);
        let mut length = 1 + first.length;
        let (mut hours, mut minutes) = (first.value, 0);
        let mut is_zone = true;
        if first.length == 4 {
            (hours, minutes) = (hours / 100, hours % 100);
        } else if first.length != 2 {
            is_zone = false;
        } else if rest.get(length) == Some(&b':') {
            let (value, count) = signed(&rest[length + 1..]);
            length += 1 + count;
            minutes = value;
            is_zone = count == 2;
        }
        if is_zone && minutes < 60 && hours < 24 {
            let offset = hours * 60 + minutes;
            let offset = if rest[0] == b'-' { -offset } else { offset };
            // Git uses this value for an unknown time zone.
            self.offset = (offset != -1).then_some(offset);
        }
        length
    }

    fn finish(self) -> Option<Time> {
        let seconds = self.fields.seconds()?;
        let offset = match self.offset {
            Some(minutes) => minutes,
            None => {
                let fields = DateFields {
                    summer: None,
                    ..self.fields
                };
                (seconds - fields.moment()) / 60
            }
        };
        let shift = match self.is_utc {
            true => 0,
            false => offset * 60,
        };
        // Git compares times before 1970 as large unsigned numbers.
        let is_outside = match seconds {
            ..0 => false,
            _ => shift > seconds || -shift > LAST - seconds,
        };
        if is_outside {
            return None;
        }
        Some(match self.is_utc && self.offset.is_none() {
            true => calendar::at(seconds),
            false => Time {
                seconds: seconds - shift,
                offset: (offset * 60) as i32,
            },
        })
    }
}

/// Parses a number with an optional sign and spaces before it, as the C library does. Returns the number and
/// its length in bytes, which is 0 if there are no digits.
fn signed(rest: &[u8]) -> (i64, usize) {
    let spaces = rest
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace())
        .count();
    let sign = rest.get(spaces).filter(|byte| b"+-".contains(byte));
    let start = spaces + usize::from(sign.is_some());
    let found = number(&rest[start..]);
    match found.length {
        0 => (0, 0),
        length if sign == Some(&b'-') => (-found.value, start + length),
        length => (found.value, start + length),
    }
}

/// Parses two or three numbers with the same separator: `10:20:30`, `2005-04-07`, `4/7/2005`,
/// `7.4.2005`. Returns the length in bytes, or `None` if the numbers are neither a time nor a date.
pub(super) fn signed_numbers(rest: &[u8], fields: &mut DateFields, now: i64) -> Option<usize> {
    let first = number(rest);
    let sign = *rest.get(first.length)?;
    if !matches!(sign, b':' | b'.' | b'/' | b'-') || !digit_at(rest, first.length + 1) {
        return None;
    }
    let second = number(&rest[first.length + 1..]);
    let mut end = first.length + 1 + second.length;
    let mut third = None;
    if rest.get(end) == Some(&sign) && digit_at(rest, end + 1) {
        let found = number(&rest[end + 1..]);
        end += 1 + found.length;
        third = Some(found.value);
    }
    let (one, two) = (first.value, second.value);
    if sign == b':' {
        if !set_time(fields, [one, two, third.unwrap_or(0)]) {
            return None;
        }
        if rest.get(end) == Some(&b'.') && digit_at(rest, end + 1) && fields.has_day() {
            end += 1 + number(&rest[end + 1..]).length;
        }
        return Some(end);
    }
    let three = third.unwrap_or(-1);
    let year_first = [[one, two, three], [one, three, two]];
    let month_first = [three, one, two];
    let day_first = [three, two, one];
    let year_last = match sign {
        b'.' => [day_first, month_first],
        _ => [month_first, day_first],
    };
    let is_date = (one > 70 && year_first.iter().any(|&date| set_date(fields, date, None)))
        || year_last
            .iter()
            .any(|&date| set_date(fields, date, Some(now)));
    is_date.then_some(end)
}

/// Sets year, month and day, in this order. With `now`, the year may be missing (-1), and the date
/// must not be more than ten days in the future. Without `now`, month and day are set even if the
/// year is invalid, as in Git.
fn set_date(fields: &mut DateFields, date: [i64; 3], now: Option<i64>) -> bool {
    // Git passes the numbers as 32 bits.
    let [year, month, day] = date.map(|part| i64::from(part as i32));
    if !(1..13).contains(&month) || !(1..32).contains(&day) {
        return false;
    }
    let mut set = fields.clone();
    set.month = Some(month - 1);
    set.day = Some(day);
    let is_year = match year {
        -1 => {
            set.year = now.map_or(set.year, |now| DateFields::utc(now).year);
            now.is_some()
        }
        1970..2100 => {
            set.year = Some(year - 1900);
            true
        }
        71..100 => {
            set.year = Some(year);
            true
        }
        ..38 => {
            set.year = Some(year + 100);
            true
        }
        _ => false,
    };
    if let Some(now) = now {
        let is_late = set.seconds().is_some_and(|moment| now + 10 * DAY < moment);
        if !is_year || is_late {
            return false;
        }
        if year == -1 {
            set.year = fields.year;
        }
    }
    *fields = set;
    is_year
}

/// Sets hour, minute and second, in this order. The second 60 is a leap second.
fn set_time(fields: &mut DateFields, time: [i64; 3]) -> bool {
    let [hour, minute, second] = time;
    let is_time = hour <= 24 && minute < 60 && second <= 60;
    if is_time {
        fields.hour = Some(hour);
        fields.minute = Some(minute);
        fields.second = Some(second);
    }
    is_time
}

//! Parses informal dates, such as `yesterday`, `2.weeks.ago` or `last friday noon`, as Git's
//! `approxidate` does.

use super::calendar::{DAY, DateFields};
use super::exact::signed_numbers;
use super::words::{MONTHS, WEEKDAYS, common, find, number};

/// The number words, from one.
const NUMBERS: [&str; 10] = [
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
];

/// The units of time, with their lengths in seconds.
const UNITS: [(&str, i64); 5] = [
    ("seconds", 1),
    ("minutes", 60),
    ("hours", 60 * 60),
    ("days", DAY),
    ("weeks", 7 * DAY),
];

/// A parsed date, and whether any part of the text was recognised.
pub(super) struct Approximate {
    /// The time in seconds since 1970-01-01 UTC.
    pub(super) moment: i64,
    pub(super) is_understood: bool,
}

/// Parses a date relative to `now`. Unknown words are skipped. A text without known words means the
/// present.
pub(super) fn parse(text: &[u8], now: i64) -> Approximate {
    let here = DateFields::local(now);
    let mut reader = Reader {
        fields: DateFields {
            year: None,
            month: None,
            day: None,
            ..here.clone()
        },
        here,
        now,
        number: 0,
        is_understood: false,
    };
    let mut at = 0;
    while let Some(&byte) = text.get(at).filter(|&&byte| byte != 0) {
        let rest = &text[at..];
        at += match byte {
            _ if byte.is_ascii_digit() => {
                reader.settle_number();
                reader.is_understood = true;
                reader.digits(rest)
            }
            _ if byte.is_ascii_alphabetic() => {
                reader.word(rest);
                let letters = rest.iter().take_while(|byte| byte.is_ascii_alphabetic());
                letters.count()
            }
            _ => 1,
        };
    }
    reader.settle_number();
    Approximate {
        moment: reader.settle(0),
        is_understood: reader.is_understood,
    }
}

/// Returns whether a part of a date is unknown: years before 1900, and numbers beyond 32 bits, are negative,
/// which Git takes for unknown.
fn is_unknown(part: Option<i64>) -> bool {
    part.is_none_or(|part| part < 0)
}

/// Returns a product as Git computes it, in 32 bits.
fn product(left: i64, right: i64) -> i64 {
    i64::from((left as i32).wrapping_mul(right as i32))
}

/// The state of the parser.
struct Reader {
    fields: DateFields,
    /// The parts of the present time.
    here: DateFields,
    now: i64,
    /// The last number if no word has used it yet, otherwise 0.
    number: i64,
    is_understood: bool,
}

impl Reader {
    fn digits(&mut self, rest: &[u8]) -> usize {
        if let Some(length) = signed_numbers(rest, &mut self.fields, self.now) {
            return length;
        }
        let found = number(rest);
        // Leading zeros are permitted only in numbers of one or two digits: `Dec 02`.
        if rest[0] != b'0' || found.length <= 2 {
            self.number = i64::from(found.value as i32);
        }
        found.length
    }

    /// Parses the word at the start of `rest`.
    fn word(&mut self, rest: &[u8]) {
        let is_known = if let Some(month) = find(rest, &MONTHS) {
            self.fields.month = Some(month.value);
            true
        } else if self.special(rest) {
            true
        } else if self.number == 0 {
            self.counted(rest)
        } else {
            self.unit(rest)
        };
        self.is_understood |= is_known;
    }

    /// Parses a word that is a time by itself.
    fn special(&mut self, rest: &[u8]) -> bool {
        let is = |name: &str| common(rest, name) == name.len();
        if is("yesterday") {
            self.number = 0;
            self.forget_day();
            self.settle(DAY);
        } else if is("noon") {
            self.settle_number();
            self.at_hour(12);
        } else if is("midnight") {
            self.settle_number();
            self.at_hour(0);
        } else if is("tea") {
            self.settle_number();
            self.at_hour(17);
        } else if is("PM") {
            self.half_of_day(12);
        } else if is("AM") {
            self.half_of_day(0);
        } else if is("never") {
            self.number = 0;
            self.fields = DateFields::local(0);
        } else if is("now") {
            self.number = 0;
            self.settle(0);
        } else if is("today") {
            let time = |fields: &DateFields| (fields.hour, fields.minute, fields.second);
            if time(&self.fields) == time(&self.here) {
                self.at_hour(0);
            }
            self.number = 0;
            self.forget_day();
            self.settle(0);
        } else {
            return false;
        }
        true
    }

    /// Parses a number word, or `last`.
    fn counted(&mut self, rest: &[u8]) -> bool {
        let named = NUMBERS
            .iter()
            .position(|name| common(rest, name) == name.len());
        self.number = match named {
            Some(index) => index as i64 + 1,
            None if common(rest, "last") == 4 => 1,
            None => return false,
        };
        true
    }

    /// Parses a unit of time or a day of the week, with the last number as its count.
    fn unit(&mut self, rest: &[u8]) -> bool {
        let count = self.number;
        let unit = UNITS
            .iter()
            .find(|(name, _)| common(rest, name) >= name.len() - 1);
        if let Some((_, seconds)) = unit {
            self.settle(product(*seconds, count));
        } else if let Some(day) = find(rest, &WEEKDAYS) {
            let back = self.fields.weekday - day.value;
            let weeks = if back <= 0 { count } else { count - 1 };
            self.settle(product(back + product(7, weeks), DAY));
        } else if common(rest, "months") >= 5 {
            self.settle(0);
            let month = self.fields.month.unwrap_or(0) - count;
            let year = self.fields.year.unwrap_or(0);
            self.fields.year = Some(year + month.div_euclid(12).min(0));
            self.fields.month = Some(if month < 0 {
                month.rem_euclid(12)
            } else {
                month
            });
        } else if common(rest, "years") >= 4 {
            self.settle(0);
            self.fields.year = self.fields.year.map(|year| year - count);
        } else {
            return false;
        }
        self.number = 0;
        true
    }

    /// Assigns a number without a unit to the first unknown part: the day, the month or the year.
    fn settle_number(&mut self) {
        let number = std::mem::take(&mut self.number);
        let fields = &mut self.fields;
        if number == 0 {
        } else if is_unknown(fields.day) && number < 32 {
            fields.day = Some(number);
        } else if is_unknown(fields.month) && number < 13 {
            fields.month = Some(number - 1);
        } else if is_unknown(fields.year) {
            match number {
                1970..2100 => fields.year = Some(number - 1900),
                70..100 => fields.year = Some(number),
                ..38 => fields.year = Some(100 + number),
                _ => {}
            }
        }
    }

    fn forget_day(&mut self) {
        self.fields.day = None;
        self.fields.days_back = 0;
    }

    /// Sets the hour. If the day is unknown and the hour is still to come today, yesterday is
    /// meant.
    fn at_hour(&mut self, hour: i64) {
        let fields = &mut self.fields;
        if fields.day.is_none() && fields.hour.unwrap_or(-1) < hour {
            fields.days_back = 1;
        }
        fields.hour = Some(hour);
        fields.minute = Some(0);
        fields.second = Some(0);
    }

    /// Converts the last number, or the hour, to the first or second half of the day.
    fn half_of_day(&mut self, first: i64) {
        let number = std::mem::take(&mut self.number);
        let fields = &mut self.fields;
        let mut hour = fields.hour.unwrap_or(-1);
        if number != 0 {
            hour = number;
            fields.minute = Some(0);
            fields.second = Some(0);
        }
        fields.hour = Some(hour % 12 + first);
    }

    /// Replaces unknown parts by those of the present, and subtracts `back` seconds. Returns the
    /// time.
    fn settle(&mut self, back: i64) -> i64 {
        let (fields, here) = (&mut self.fields, &self.here);
        let mut back = back;
        if is_unknown(fields.day) {
            if back == 0 {
                // Git stores the days to go back in the day, as a negative number.
                let days = fields.day.map_or(fields.days_back, |day| -1 - day);
                back = product(days, DAY);
            }
            fields.day = here.day;
        }
        if is_unknown(fields.month) {
            fields.month = here.month;
        }
        if is_unknown(fields.year) {
            let is_later = fields.month > here.month;
            fields.year = here.year.map(|year| year - i64::from(is_later));
        }
        let moment = fields.moment().saturating_sub(back);
        self.fields = DateFields::local(moment);
        moment
    }
}

//! Code that several commands share.

pub(crate) mod bad_pack;
pub(crate) mod checkout_failures;
pub(crate) mod diffing;
pub(crate) mod staging_failures;
pub(crate) mod submodules;

use std::fmt::Display;

use pronto::refs::HeadValue;

use crate::json::Json;

/// Returns a count with its noun, which is in the plural unless the count is 1.
pub(crate) fn counted<N: Copy + Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let ending = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

/// Returns the value of `HEAD` in JSON documents.
pub(crate) fn head_document(head: &HeadValue) -> Json {
    let state = match head {
        HeadValue::Branch { .. } => "branch",
        HeadValue::Unborn { .. } => "unborn",
        HeadValue::Detached { .. } => "detached",
    };
    Json::Object(vec![
        ("state", state.into()),
        ("branch", head.name().into()),
        ("id", head.id().into()),
    ])
}

/// A time in the Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Calendar {
    pub(crate) year: u64,
    pub(crate) month: u64,
    pub(crate) day: u64,
    pub(crate) hour: u64,
    pub(crate) minute: u64,
    pub(crate) second: u64,
}

impl Calendar {
    /// Returns the time `seconds` after the start of 1970.
    pub(crate) fn of(seconds: u64) -> Self {
        let (days, rest) = (seconds / 86400, seconds % 86400);
        // Here, years begin in March, so that the leap day is the last day of a year. A cycle of 400
        // years has 146097 days, and day 0 is the 1st of March of the year 0.
        let day = days + 719_468;
        let (cycle, of_cycle) = (day / 146_097, day % 146_097);
        let year_of_cycle =
            (of_cycle - of_cycle / 1460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
        let of_year = of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let (month, carry) = if month < 10 {
            (month + 3, 0)
        } else {
            (month - 9, 1)
        };
        Calendar {
            year: cycle * 400 + year_of_cycle + carry,
            month,
            day,
            hour: rest / 3600,
            minute: rest / 60 % 60,
            second: rest % 60,
        }
    }

    /// Returns the number of the day in the year; the first day has the number 1.
    pub(crate) fn day_of_year(&self) -> u64 {
        const BEFORE: [u64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
        let is_leap = self.year.is_multiple_of(4)
            && (!self.year.is_multiple_of(100) || self.year.is_multiple_of(400));
        let before = BEFORE.get(self.month as usize - 1).copied();
        before.unwrap_or_default() + self.day + u64::from(is_leap && self.month > 2)
    }
}

/// Formats a time in UTC as ISO 8601.
#[cfg(feature = "serve")]
pub(crate) fn utc(seconds: u64) -> String {
    let Calendar {
        year,
        month,
        day,
        hour,
        minute,
        second,
    } = Calendar::of(seconds);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(all(test, feature = "serve"))]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(utc(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(utc(951_868_800), "2000-03-01T00:00:00Z");
        assert_eq!(utc(1_795_671_017), "2026-11-26T05:30:17Z");
    }
}

//! Dates with parts that may be unknown, and their conversion to and from seconds.

use gix_date::Time;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::zone::time_zone;

/// The number of seconds in a day.
pub(super) const DAY: i64 = 24 * 60 * 60;

/// The parts of a date. A part that is not yet known is `None`.
#[derive(Clone, Debug, Default)]
pub(super) struct DateFields {
    /// The year, less 1900.
    pub(super) year: Option<i64>,
    /// The month, counted from 0.
    pub(super) month: Option<i64>,
    /// The day of the month, counted from 1.
    pub(super) day: Option<i64>,
    /// The number of days before today, if the day is unknown.
    pub(super) days_back: i64,
    /// The day of the week, counted from Sunday.
    pub(super) weekday: i64,
    pub(super) hour: Option<i64>,
    pub(super) minute: Option<i64>,
    pub(super) second: Option<i64>,
    /// The state of daylight saving time, if known.
    pub(super) summer: Option<Summer>,
}

/// The state of daylight saving time at a point in time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Summer {
    applies: bool,
    /// The offset from UTC in seconds, positive to the east.
    offset: i64,
}

impl DateFields {
    /// Returns the parts of `moment`, in seconds since 1970-01-01 UTC, in UTC.
    pub(super) fn utc(moment: i64) -> Self {
        let (days, rest) = (moment.div_euclid(DAY), moment.rem_euclid(DAY));
        let date = Date::of(days);
        DateFields {
            year: Some(date.year - 1900),
            month: Some(date.month - 1),
            day: Some(date.day),
            weekday: (days + 4).rem_euclid(7),
            hour: Some(rest / 3600),
            minute: Some(rest / 60 % 60),
            second: Some(rest % 60),
            ..DateFields::default()
        }
    }

    /// Returns the parts of `moment` in the local time zone.
    pub(super) fn local(moment: i64) -> Self {
        let summer = summer_at(moment);
        DateFields {
            summer: Some(summer),
            ..DateFields::utc(moment.saturating_add(summer.offset))
        }
    }

    /// Returns whether no part is known.
    pub(super) fn is_empty(&self) -> bool {
        let parts = [
            self.year,
            self.month,
            self.day,
            self.hour,
            self.minute,
            self.second,
        ];
        parts.iter().all(Option::is_none)
    }

    /// Returns whether year, month and day are known.
    pub(super) fn has_day(&self) -> bool {
        self.year.is_some() && self.month.is_some() && self.day.is_some()
    }

    /// Returns the date, as a date in UTC, in seconds since 1970-01-01 UTC. Returns `None` if the
    /// year, the month or the time of day is unknown, or if the year is not between 1970 and 2099,
    /// as in Git.
    pub(super) fn seconds(&self) -> Option<i64> {
        let in_range = (70..200).contains(&self.year?);
        let time = (self.hour?, self.minute?, self.second?);
        let is_known = self.month? < 12 && time.0 >= 0;
        (in_range && is_known).then(|| self.normalized())
    }

    /// Returns the date, as a date in UTC, in seconds since 1970-01-01 UTC. Parts may exceed their
    /// ranges.
    fn normalized(&self) -> i64 {
        let part = |part: Option<i64>| part.unwrap_or(-1);
        let month = part(self.month);
        let year = part(self.year) + 1900 + month.div_euclid(12);
        let first = days_until(year, month.rem_euclid(12) + 1);
        let days = first.saturating_add(part(self.day) - 1);
        let time = part(self.hour) * 3600 + part(self.minute) * 60 + part(self.second);
        days.saturating_mul(DAY).saturating_add(time)
    }

    /// Returns the time of the date in the local time zone. A known state of daylight saving time
    /// is used even if it does not match the season of the date.
    pub(super) fn moment(&self) -> i64 {
        let local = self.normalized();
        let guess = local.saturating_sub(summer_at(local).offset);
        let mut offset = summer_at(guess);
        let mut moment = local.saturating_sub(offset.offset);
        let found = summer_at(moment);
        if found.offset != offset.offset {
            offset = found;
            moment = local.saturating_sub(offset.offset);
        }
        match self.summer {
            Some(wanted) if wanted.applies != offset.applies => local.saturating_sub(wanted.offset),
            _ => moment,
        }
    }
}

/// Returns `seconds` since the epoch with the offset of the local time zone at that time.
pub(super) fn at(seconds: i64) -> Time {
    Time {
        seconds,
        offset: summer_at(seconds).offset as i32,
    }
}

fn summer_at(moment: i64) -> Summer {
    let zone: TimeZone = time_zone();
    let Ok(moment) = Timestamp::from_second(moment) else {
        return Summer {
            applies: false,
            offset: 0,
        };
    };
    let info = zone.to_offset_info(moment);
    Summer {
        applies: info.dst().is_dst(),
        offset: i64::from(info.offset().seconds()),
    }
}

/// A day of the Gregorian calendar.
struct Date {
    year: i64,
    month: i64,
    day: i64,
}

impl Date {
    /// Returns the day that is `days` after 1970-01-01.
    fn of(days: i64) -> Self {
        // Days since 0000-03-01: years that begin in March end with the leap day.
        let days = days.saturating_add(719_468);
        let era = days.div_euclid(146_097);
        let of_era = days.rem_euclid(146_097);
        let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let from_march = (5 * of_year + 2) / 153;
        let month = (from_march + 2) % 12 + 1;
        Date {
            year: era * 400 + year + i64::from(month <= 2),
            month,
            day: of_year - (153 * from_march + 2) / 5 + 1,
        }
    }
}

/// Returns the number of days from 1970-01-01 to the first day of `month`, which is counted from 1.
fn days_until(year: i64, month: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let of_era = year.rem_euclid(400);
    let from_march = (month + 9) % 12;
    let of_year = (153 * from_march + 2) / 5;
    let in_era = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    year.div_euclid(400)
        .saturating_mul(146_097)
        .saturating_add(in_era - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_parts_agree() {
        for moment in [
            0,
            -1,
            951_782_400,
            1_112_911_993,
            4_102_444_799,
            -86_400 * 400,
        ] {
            assert_eq!(DateFields::utc(moment).normalized(), moment);
        }
        let fields = DateFields::utc(1_112_911_993);
        let date = (fields.year, fields.month, fields.day, fields.weekday);
        assert_eq!(date, (Some(105), Some(3), Some(7), 4));
    }
}

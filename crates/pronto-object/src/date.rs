//! Parses the dates of all commands and settings, with Git's rules: exact dates (`Mon 20 Aug 2018
//! 20:19:19 +0200`), relative dates (`2.weeks.ago`) and expiry dates (`never`).

mod approximate;
mod calendar;
mod exact;
mod words;
mod zone;

use bstr::{BStr, ByteSlice};
use gix_date::Time;
use gix_date::time::CustomFormat;
use jiff::Timestamp;

pub use zone::local_now;

/// Parses a date, exact or relative to the present (`yesterday`, `2 weeks ago`), and returns it in
/// seconds since the epoch. A day without a time gets the present time of day. Returns `None` if no
/// part of `text` is recognised.
pub fn parse_date(text: &BStr) -> Option<i64> {
    let now = now();
    if let Some(time) = exact::parse(text, now) {
        return Some(time.seconds);
    }
    let found = approximate::parse(text, now);
    found.is_understood.then_some(found.moment)
}

/// Parses a date like [`parse_date`]. Returns the present time if no part of `text` is recognised,
/// as Git does for `--since`, `--until` and similar options.
pub fn approximate_date(text: &BStr) -> i64 {
    parse_date(text).unwrap_or_else(now)
}

/// Parses an expiry date (such as `gc.reflogExpire`). Returns 0 for `never` and `false`, and the
/// largest time for `now` and `all`. Returns `None` if no part of `text` is recognised.
pub fn parse_expiry(text: &BStr) -> Option<i64> {
    match text.as_bytes() {
        b"never" | b"false" => Some(0),
        b"all" | b"now" => Some(i64::MAX),
        _ => parse_date(text),
    }
}

/// Parses an exact date with its time zone, in the formats of `GIT_COMMITTER_DATE`. Returns `None`
/// for a day without a time, and for times before 1970.
pub fn parse_exact_date(text: &BStr) -> Option<Time> {
    exact::parse(text, now())
}

fn now() -> i64 {
    Timestamp::now().as_second()
}

/// Formats the day of a time in its own time zone: `2005-04-07` (`--date=short`). Returns `None` if
/// the time is out of range.
pub fn short(time: Time) -> Option<String> {
    time.format(gix_date::time::format::SHORT).ok()
}

/// Formats a time in the format of mail headers (`--date=rfc2822`).
pub fn rfc2822(seconds: i64, zone: &BStr) -> String {
    const FORMAT: CustomFormat = CustomFormat::new("%a, %-d %b %Y %H:%M:%S %z");
    let header = format!("{seconds} {zone}");
    gix_date::parse_header(&header)
        .and_then(|time| time.format(FORMAT).ok())
        .unwrap_or(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2009-08-30 19:20:00 UTC, a Sunday.
    const NOW: i64 = 1_251_660_000;

    fn exact(text: &str) -> Option<(i64, i32)> {
        let time = exact::parse(text.as_bytes(), NOW)?;
        Some((time.seconds, time.offset / 60))
    }

    #[test]
    fn exact_dates_are_read_in_every_form() {
        for text in [
            "Mon 20 Aug 2018 20:19:19 +0200",
            "Mon, 20 Aug 2018 20:19:19 +0200",
            "Mon Aug 20 20:19:19 2018 +0200",
            "Monday August 20 20:19:19 2018 +02",
            "2018-08-20 20:19:19 +0200",
            "2018-08-20 20:19:19+02:00",
            "2018-08-20T20:19:19+0200",
            "2018.08.20 20:19:19.25 +0200",
            "20180820T201919+0200",
            "08/20/2018 20:19:19 +0200",
            "20.08.2018 20:19:19 +0200",
            "20.08.18 08:19:19 PM +0200",
            "1534789159 +0200",
            "@1534789159 +0200",
            "Mon 20 Aug 2018 20:19:19 CEST",
        ] {
            assert_eq!(exact(text), Some((1_534_789_159, 120)), "{text}");
        }
        assert_eq!(exact("2018-08-20T18Z"), Some((1_534_788_000, 0)));
        assert_eq!(exact("2018-08-20T1819Z"), Some((1_534_789_140, 0)));
        assert_eq!(exact("@0 +0000"), Some((0, 0)));
        assert_eq!(
            exact("2018-08-20 20:19:19 -0330"),
            Some((1_534_808_959, -210))
        );
        for text in [
            "",
            "never",
            "2018-08-20",
            "@100",
            "@-100 +0000",
            "-100 +0000",
            "1960-01-01 00:00:00 +0000",
            "1970-01-01 00:00:00 +0200",
            "2100-01-01 00:00:00 +0000",
            "yesterday",
            "gibberish",
        ] {
            assert_eq!(exact(text), None, "{text}");
        }
    }

    #[test]
    fn spoken_dates_are_relative() {
        let now = Timestamp::now().as_second();
        for (text, ago) in [
            ("now", 0),
            ("yesterday", 86_400),
            ("2.weeks.ago", 1_209_600),
            ("two weeks ago", 1_209_600),
            ("3 days 2 hours ago", 3 * 86_400 + 7200),
            ("1.hour.ago", 3600),
        ] {
            let moment = parse_date(text.into()).expect(text);
            assert!((now - ago - moment).abs() < 3700, "{text}");
        }
        assert_eq!(parse_date("gibberish".into()), None);
        assert!((approximate_date("gibberish".into()) - now).abs() < 60);
        assert_eq!(parse_date("never".into()), Some(0));
        assert_eq!(parse_expiry("false".into()), Some(0));
        assert_eq!(parse_expiry("all".into()), Some(i64::MAX));
        assert_eq!(parse_expiry("".into()), None);
    }

    #[test]
    fn moments_are_written_as_in_mails() {
        assert_eq!(
            rfc2822(1_112_911_993, "-0700".into()),
            "Thu, 7 Apr 2005 15:13:13 -0700"
        );
    }
}

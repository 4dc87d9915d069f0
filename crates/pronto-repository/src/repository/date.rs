//! Parses dates in the forms that users write.

use bstr::{BStr, ByteSlice};
use gix_date::time::CustomFormat;
use gix_date::{Time, Zoned};

/// The moment that `text` means, in seconds since 1970: absolute, or relative to now
/// (`yesterday`, `2 weeks ago`). A day alone is taken at the time of day it is now, as in Git.
/// `None` when nothing in it is understood.
pub fn parse_date(text: &BStr) -> Option<i64> {
    let text = text.to_str().ok()?.trim();
    if text.eq_ignore_ascii_case("never") {
        return Some(0);
    }
    let now = Zoned::now();
    if is_day(text) {
        let moment = now.with().date(text.parse().ok()?).build().ok()?;
        return Some(moment.timestamp().as_second());
    }
    parse_exact_date(text, Some(now)).map(|time| time.seconds)
}

/// The moment that `text` means, with its zone; not for a day alone. What is relative is so to
/// `now`, and means nothing without it.
pub(crate) fn parse_exact_date(text: &str, now: Option<Zoned>) -> Option<Time> {
    let lacks_zone = text
        .strip_prefix('@')
        .is_some_and(|seconds| !seconds.contains(' '));
    if is_day(text) || lacks_zone {
        return None;
    }
    gix_date::parse(text, now).ok()
}

/// Whether `text` is year, month and day, and nothing else.
fn is_day(text: &str) -> bool {
    let is_place = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    text.len() == 10 && text.bytes().enumerate().all(is_place)
}

/// A moment as mail headers write it.
pub(crate) fn rfc2822(seconds: i64, zone: &BStr) -> String {
    const FORMAT: CustomFormat = CustomFormat::new("%a, %-d %b %Y %H:%M:%S %z");
    let header = format!("{seconds} {zone}");
    gix_date::parse_header(&header)
        .and_then(|time| time.format(FORMAT).ok())
        .unwrap_or(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_absolute_or_relative() {
        assert_eq!(
            parse_date("2005-04-07 22:13:13 +0000".into()),
            Some(1_112_911_993)
        );
        let now = Zoned::now().timestamp().as_second();
        for (text, ago) in [
            ("now", 0),
            ("yesterday", 86_400),
            ("2.weeks.ago", 1_209_600),
        ] {
            let moment = parse_date(text.into()).expect(text);
            assert!((now - ago - moment).abs() < 3700, "{text}");
        }
        assert_eq!(parse_date("gibberish".into()), None);
        assert_eq!(parse_date("@100".into()), None);
        assert_eq!(parse_date("2020-02-31".into()), None);
        let day = parse_date("2020-01-01".into()).expect("a day");
        let since_midnight =
            Zoned::now().duration_since(&Zoned::now().start_of_day().expect("one"));
        let expected = since_midnight.as_secs() + 1_577_836_800;
        // The zone of the machine may be any.
        assert!((day - expected).abs() < 15 * 3600, "{day}");
        assert_eq!(
            rfc2822(1_112_911_993, "-0700".into()),
            "Thu, 7 Apr 2005 15:13:13 -0700"
        );
    }
}

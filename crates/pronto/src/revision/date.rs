//! Dates as people write them.

use bstr::{BStr, ByteSlice};
use gix_date::Zoned;
use gix_date::time::CustomFormat;

/// The moment that `text` means, in seconds since 1970: absolute, or relative to now
/// (`yesterday`, `2 weeks ago`). `None` when nothing in it is understood.
pub fn parse_date(text: &BStr) -> Option<i64> {
    let text = text.to_str().ok()?.trim();
    if text.eq_ignore_ascii_case("never") {
        return Some(0);
    }
    let now = Zoned::now();
    gix_date::parse(text, Some(now))
        .ok()
        .map(|time| time.seconds)
}

/// A moment as mail headers write it.
pub(super) fn rfc2822(seconds: i64, zone: &BStr) -> String {
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
        assert_eq!(
            rfc2822(1_112_911_993, "-0700".into()),
            "Thu, 7 Apr 2005 15:13:13 -0700"
        );
    }
}

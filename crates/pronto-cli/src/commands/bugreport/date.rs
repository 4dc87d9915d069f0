//! Formats the local time for the name of a report.

use pronto_object::date::local_now;

use crate::CliError;
use crate::commands::shared::Calendar;

/// Formats the present local time as strftime(3) does in the locale `C`.
///
/// # Errors
/// Fails with [`Kind::Unsupported`](crate::error::Kind::Unsupported) for other conversions than
/// `%Y`, `%y`, `%m`, `%d`, `%j`, `%H`, `%M`, `%S`, `%F`, `%T`, `%s` and `%%`.
pub(super) fn format(pattern: &str) -> Result<String, CliError> {
    let now = local_now();
    let seconds = now.seconds + i64::from(now.offset);
    let local = Calendar::of(u64::try_from(seconds).unwrap_or_default());
    format_at(pattern, &local, now.seconds)
}

fn format_at(pattern: &str, at: &Calendar, seconds: i64) -> Result<String, CliError> {
    let mut out = String::new();
    let mut rest = pattern.chars();
    while let Some(each) = rest.next() {
        if each != '%' {
            out.push(each);
            continue;
        }
        let conversion = rest.next();
        out.push_str(&match conversion {
            Some('Y') => at.year.to_string(),
            Some('y') => format!("{:02}", at.year % 100),
            Some('m') => format!("{:02}", at.month),
            Some('d') => format!("{:02}", at.day),
            Some('j') => format!("{:03}", at.day_of_year()),
            Some('H') => format!("{:02}", at.hour),
            Some('M') => format!("{:02}", at.minute),
            Some('S') => format!("{:02}", at.second),
            Some('F') => format!("{}-{:02}-{:02}", at.year, at.month, at.day),
            Some('T') => format!("{:02}:{:02}:{:02}", at.hour, at.minute, at.second),
            Some('s') => seconds.to_string(),
            Some('%') => "%".to_owned(),
            _ => {
                let what = "this format of '--suffix'";
                return Err(CliError::unsupported(what));
            }
        });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_are_those_of_strftime() {
        let at = Calendar::of(1_709_210_047);
        let all = format_at("%Y %y %m %d %j %H%M %S %F %T %s %% x", &at, 7);
        let expected = "2024 24 02 29 060 1234 07 2024-02-29 12:34:07 7 % x";
        assert_eq!(all.expect("known conversions"), expected);
        for unknown in ["%A", "%", "%-d"] {
            assert!(format_at(unknown, &at, 0).is_err(), "{unknown}");
        }
    }
}

//! Random dates: exact ones as `git var` reads them, and those of `--since`.

use std::path::Path;
use std::process::Command;

use bstr::BStr;
use pronto_object::date::{approximate_date, parse_exact_date};
use test_support::{Random, Seed};

/// The number of dates of each kind. `PRONTO_TEST_DATES` sets another.
const DATES: u64 = 400;

/// The words of dates, and numbers that are days, hours, years and times.
const WORDS: &[&str] = &[
    "1",
    "2",
    "3",
    "07",
    "9",
    "10",
    "12",
    "13",
    "20",
    "23",
    "24",
    "28",
    "29",
    "30",
    "31",
    "32",
    "45",
    "59",
    "60",
    "61",
    "69",
    "70",
    "99",
    "100",
    "1969",
    "1970",
    "1999",
    "2000",
    "2018",
    "2024",
    "2038",
    "2100",
    "10000000",
    "99999999",
    "100000000",
    "1700000000",
    "4294967296",
    "20180820",
    "2018-08-20",
    "2018-02-30",
    "2018/08/20",
    "20.08.2018",
    "08/20/2018",
    "20-08-2018",
    "2018-8",
    "18-08-20",
    "20:19",
    "20:19:19",
    "20:19:60",
    "24:00",
    "8:5",
    "20:19:19.5",
    "20:19:19.999",
    "2018-08-20T20:19:19",
    "20180820T201919",
    "2018-08-20T20:19:19Z",
    "T20",
    "201919",
    "+0200",
    "-0730",
    "+02:00",
    "-08",
    "+5",
    "-0000",
    "+1400",
    "+2400",
    "Z",
    "UTC",
    "GMT",
    "EST",
    "PDT",
    "CEST",
    "JST",
    "IDLW",
    "NZDT",
    "Mon",
    "monday",
    "TUE",
    "wednes",
    "Sun",
    "sat",
    "jan",
    "January",
    "FEB",
    "mar",
    "may",
    "aug",
    "August",
    "sept",
    "dec",
    "am",
    "PM",
    "ago",
    "last",
    "next",
    "noon",
    "midnight",
    "tea",
    "today",
    "yesterday",
    "now",
    "never",
    "second",
    "minutes",
    "hour",
    "days",
    "week",
    "weeks",
    "fortnight",
    "month",
    "months",
    "year",
    "years",
    "one",
    "three",
    "ten",
    "a",
    "an",
    "dozen",
    "few",
    "at",
    "of",
    "@0",
    "@1700000000",
    "@x",
    "x",
    "ä",
    "-",
    "+",
];

/// The separators of words. Words are never joined: Git computes with 32 bits, and numbers beyond them have
/// no meaning.
const BETWEEN: &[&str] = &[" ", " ", " ", ".", ",", "-", ":", "/", "  ", "_"];

fn date(random: &mut Random) -> String {
    let mut text = String::new();
    for at in 0..=random.below(5) {
        if at > 0 {
            text.push_str(random.one_of::<&str>(BETWEEN));
        }
        text.push_str(random.one_of::<&str>(WORDS));
    }
    text
}

/// Returns the dates of a test, and the git to compare with. `None` if it is missing.
fn dates(name: &'static str) -> Option<(&'static Path, Vec<String>)> {
    let Some(git) = test_support::git::reference() else {
        test_support::skip!("git 2.55 is missing", test_support::NO_REFERENCE);
    };
    let count = std::env::var("PRONTO_TEST_DATES").ok();
    let count = count.and_then(|count| count.parse().ok()).unwrap_or(DATES);
    let mut random = Random::new(Seed::new(name).number());
    Some((git, (0..count).map(|_| date(&mut random)).collect()))
}

#[test]
fn exact_dates_are_those_of_git() {
    let Some((git, dates)) = dates("exact_dates_are_those_of_git") else {
        return;
    };
    for text in dates {
        let output = Command::new(git)
            .args(["var", "GIT_COMMITTER_IDENT"])
            .envs([("GIT_COMMITTER_NAME", "c"), ("GIT_COMMITTER_EMAIL", "c")])
            .env("GIT_COMMITTER_DATE", &text)
            .output()
            .expect("git starts");
        let ident = String::from_utf8_lossy(&output.stdout);
        let expected = match output.status.success() {
            true => ident.trim_end().strip_prefix("c <c> ").map(str::to_owned),
            false => None,
        };
        let found = parse_exact_date(BStr::new(&text)).map(|time| {
            let minutes = time.offset.abs() / 60;
            let sign = if time.offset < 0 { '-' } else { '+' };
            // Git prints times before 1970 as large numbers.
            let seconds = time.seconds.cast_unsigned();
            format!("{seconds} {sign}{:02}{:02}", minutes / 60, minutes % 60)
        });
        assert_eq!(found, expected, "{text:?}");
    }
}

#[test]
fn relative_dates_are_those_of_git() {
    let Some((git, dates)) = dates("relative_dates_are_those_of_git") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a directory");
    let made = Command::new(git)
        .args(["init", "-q"])
        .arg(folder.path())
        .status();
    assert!(made.expect("git starts").success());
    for text in dates {
        let before = approximate_date(BStr::new(&text));
        let output = Command::new(git)
            .arg("rev-parse")
            .arg(format!("--since={text}"))
            .current_dir(folder.path())
            .output()
            .expect("git starts");
        let after = approximate_date(BStr::new(&text));
        let age = String::from_utf8_lossy(&output.stdout);
        let age = age.trim_end().strip_prefix("--max-age=");
        let expected: u64 = age.and_then(|age| age.parse().ok()).expect("a number");
        // A second can end between the calls.
        let found = [before, after].map(i64::cast_unsigned);
        assert!(
            (found[0]..=found[1]).contains(&expected),
            "{text:?}: git {expected}, found {found:?}"
        );
    }
}

//! `store verify` and `store list`: check stored repositories, and list them.

use std::io::Write as _;

use pronto::Watch;

use super::arguments::{CommonArguments, ListArguments, Verify};
use super::server::OpenStoredRepository;
use crate::commands::shared::counted;
use crate::{CliError, Context, ExitCode};

impl Verify {
    pub(super) fn run(
        &self,
        common: &CommonArguments,
        context: &mut Context,
    ) -> Result<ExitCode, CliError> {
        let store = common.open(&self.store, context)?;
        let names = match &self.name {
            Some(name) => vec![name.clone()],
            None => store.existing(store.repositories()?)?,
        };
        let progress = common.progress(context);
        let interrupt = context.interrupt.clone();
        let watch = Watch::from(&interrupt).with_progress(&*progress);
        let mut is_whole = true;
        for name in &names {
            let repository = store.repository(name)?;
            let verified = store.wait(repository.verify(!self.sizes_only, &watch))?;
            context.settle();
            for problem in &verified.problems {
                is_whole = false;
                writeln!(context.out, "{name}: {problem}")?;
            }
            writeln!(
                context.out,
                "{name}: {} up to {}, {} of {}, {}, {}",
                counted(verified.generations, "generation"),
                verified.newest,
                counted(verified.objects, "object"),
                counted(verified.bytes, "byte"),
                counted(verified.orphans, "orphan"),
                counted(verified.problems.len(), "problem")
            )?;
        }
        Ok(match is_whole {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        })
    }
}

impl ListArguments {
    pub(super) fn run(
        &self,
        common: &CommonArguments,
        context: &mut Context,
    ) -> Result<ExitCode, CliError> {
        let store = common.open(&self.store, context)?;
        let Some(name) = &self.name else {
            // Upkeep deletes the objects of removed repositories later.
            for name in store.existing(store.repositories()?)? {
                writeln!(context.out, "{name}")?;
            }
            return Ok(ExitCode::SUCCESS);
        };
        let place = OpenStoredRepository::open(store, name)?;
        for listed in place.store.generations(&place.repository)? {
            let time = utc(listed.created.as_secs());
            writeln!(context.out, "{}\t{time}", listed.number)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Formats a time in UTC as ISO 8601.
fn utc(seconds: u64) -> String {
    let (days, rest) = (seconds / 86400, seconds % 86400);
    // Here, years begin in March, so that the leap day is the last day of a year. A cycle of 400
    // years has 146097 days, and day 0 is the 1st of March of the year 0.
    let day = days + 719_468;
    let (cycle, of_cycle) = (day / 146_097, day % 146_097);
    let year_of_cycle = (of_cycle - of_cycle / 1460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
    let of_year = of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    let year = cycle * 400 + year_of_cycle + carry;
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
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

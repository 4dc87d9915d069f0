//! `store` in the program `pronto-server`.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use pronto::refs::MigrateOptions;
use pronto::repository::RefStorage;
use pronto::{Environment, Repository, Watch};
use pronto_store::{EXPORT_OK, EXPORT_OK_FILE, Source};

use super::places::{Place, Stores, progress, scratch};
use super::{Args, import, settings, upkeep};
use crate::{CliError, Context, ExitCode};

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let words: Vec<&str> = args.words.iter().filter_map(|word| word.to_str()).collect();
    if words.len() != args.words.len() {
        return Err(CliError::usage("the arguments of store must be UTF-8"));
    }
    check_options(args, words[0])?;
    match words.as_slice() {
        ["import", source, store, name] => import::one(args, source, store, name, context),
        ["import", directory, store] => import::all(args, directory, store, context),
        ["export", store, name, directory] => {
            let place = Place::open(Stores::of(args, store), name, context)?;
            export(args, &place, Path::new(directory), context)
        }
        ["copy", store, name, target, new] => {
            let from = Place::open(Stores::of(args, store), name, context)?;
            let to = Stores {
                url: target,
                generations: args.target_generations.as_deref(),
            };
            let to = Place::open(to, new, context)?;
            copy(args, &from, &to, context)
        }
        ["verify", store] => {
            let names = Stores::of(args, store).open(context)?.repositories()?;
            verify(args, store, &names, context)
        }
        ["verify", store, name] => verify(args, store, &[(*name).to_owned()], context),
        ["upkeep", store] => upkeep::run(args, store, None, context),
        ["upkeep", store, name] => upkeep::run(args, store, Some(name), context),
        ["list", store] => {
            for name in Stores::of(args, store).open(context)?.repositories()? {
                writeln!(context.out, "{name}")?;
            }
            Ok(ExitCode::SUCCESS)
        }
        ["list", store, name] => {
            let place = Place::open(Stores::of(args, store), name, context)?;
            list(&place, context)
        }
        ["config", store, name, rest @ ..] => {
            let place = Place::open(Stores::of(args, store), name, context)?;
            settings::config(args, &place, rest, context)
        }
        ["head", store, name] => {
            let place = Place::open(Stores::of(args, store), name, context)?;
            settings::show_head(&place, context)
        }
        ["head", store, name, branch] => {
            let place = Place::open(Stores::of(args, store), name, context)?;
            settings::set_head(&place, branch, context)
        }
        _ => Err(CliError::usage(
            "store needs 'import REPOSITORY STORE NAME', 'import DIRECTORY STORE', \
             'export STORE NAME DIRECTORY', 'copy STORE NAME STORE NAME', 'verify STORE [NAME]', 'upkeep STORE [NAME]', 'list STORE [NAME]', \
             'config STORE NAME [KEY [VALUE]]' or 'head STORE NAME [BRANCH]'",
        )),
    }
}

/// Refuses options that belong to other commands.
fn check_options(args: &Args, command: &str) -> Result<(), CliError> {
    let given = [
        (
            "--generation",
            args.generation.is_some(),
            &["export", "copy"][..],
        ),
        (
            "--scratch",
            args.scratch.is_some(),
            &["import", "copy", "upkeep"],
        ),
        ("--update", args.update, &["import"]),
        ("--ref-format", args.ref_format.is_some(), &["export"]),
        ("--sizes-only", args.sizes_only, &["verify"]),
        ("--cache", args.cache.is_some(), &["upkeep"]),
        ("--every", args.every.is_some(), &["upkeep"]),
        ("--add", args.add, &["config"]),
        ("--unset", args.unset, &["config"]),
        (
            "--target-generations",
            args.target_generations.is_some(),
            &["copy"],
        ),
    ];
    for (option, is_given, commands) in given {
        if is_given && !commands.contains(&command) {
            return Err(CliError::usage(format!(
                "'{option}' is not for 'store {command}'"
            )));
        }
    }
    Ok(())
}

fn export(
    args: &Args,
    place: &Place,
    directory: &Path,
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let directory = context.environment()?.absolute(directory);
    let generation = place.generation(args)?;
    let progress = progress(args, context);
    let interrupt = context.interrupt.clone();
    let watch = Watch::from(&interrupt).with_progress(&*progress);
    let view = place
        .repository
        .write_view(&generation, &directory, None, &watch);
    place.store.wait(view)?;
    context.settle();
    // Every git reads files; reftables are of git 2.45.
    let storage = args.ref_format.unwrap_or(RefStorage::Files);
    if storage != RefStorage::Reftable {
        let exported = Repository::open(&directory, &Environment::empty(&directory))?;
        exported.migrate_refs(&MigrateOptions::new(storage))?;
    }
    mark_visible(&directory)?;
    writeln!(context.out, "generation {}", generation.number())?;
    Ok(ExitCode::SUCCESS)
}

/// Marks the repository for servers that need a mark, if it had one in the store.
fn mark_visible(directory: &Path) -> Result<(), CliError> {
    let exported = Repository::open(directory, &Environment::empty(directory))?;
    if exported.config().bool_or(EXPORT_OK, false)? {
        let file = directory.join(EXPORT_OK_FILE);
        let created = File::create_new(&file);
        created.map_err(|error| {
            let reason = pronto_io::error::reason(&error);
            CliError::fatal(format!("cannot create '{}': {reason}", file.display()))
        })?;
    }
    Ok(())
}

fn copy(
    args: &Args,
    from: &Place,
    to: &Place,
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let generation = from.generation(args)?;
    let scratch = scratch(args, context)?;
    let progress = progress(args, context);
    let interrupt = context.interrupt.clone();
    let watch = Watch::from(&interrupt).with_progress(&*progress);
    let source = Source {
        store: &from.store,
        repository: &from.repository,
    };
    let written = to
        .store
        .copy(&generation, source, &to.repository, &scratch, &watch)?;
    context.settle();
    let (number, refs, objects) = (generation.number(), written.refs, written.objects);
    writeln!(
        context.out,
        "generation {number}: {refs} refs and {objects} objects"
    )?;
    Ok(ExitCode::SUCCESS)
}

fn verify(
    args: &Args,
    url: &str,
    names: &[String],
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let store = Stores::of(args, url).open(context)?;
    let progress = progress(args, context);
    let interrupt = context.interrupt.clone();
    let watch = Watch::from(&interrupt).with_progress(&*progress);
    let mut is_whole = true;
    for name in names {
        let repository = store.repository(name)?;
        let verified = store.wait(repository.verify(!args.sizes_only, &watch))?;
        context.settle();
        for problem in &verified.problems {
            is_whole = false;
            writeln!(context.out, "{name}: {problem}")?;
        }
        writeln!(
            context.out,
            "{name}: {} generations up to {}, {} objects of {} bytes, {} orphans, {} problems",
            verified.generations,
            verified.newest,
            verified.objects,
            verified.bytes,
            verified.orphans,
            verified.problems.len()
        )?;
    }
    Ok(match is_whole {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn list(place: &Place, context: &mut Context) -> Result<ExitCode, CliError> {
    for listed in place.store.generations(&place.repository)? {
        let time = utc(listed.created.as_secs());
        writeln!(context.out, "{}\t{time}", listed.number)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Formats a time as ISO 8601 does, in UTC.
fn utc(seconds: u64) -> String {
    let (days, rest) = (seconds / 86400, seconds % 86400);
    // Years begin in March here, so that the day of a leap year is the last one. A cycle of 400 years has
    // 146097 days; day 0 is the 1st of March of the year 0.
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

//! The limits of a shallow fetch, from the arguments (`--depth`, `--deepen`, `--shallow-since`,
//! `--shallow-exclude`).

use std::os::unix::ffi::OsStrExt;

use pronto::remote::Deepen;
use pronto::revision::approximate_date;

use super::Args;
use crate::CliError;

pub(super) fn deepen(args: &Args) -> Result<Deepen, CliError> {
    let mut deepen = Deepen::default();
    let together = |first: &str, second: &str| {
        let message = format!("options '{first}' and '{second}' cannot be used together");
        Err(CliError::fatal(message))
    };
    let number = |text: &String| {
        let parsed = text.parse::<u32>().ok().filter(|&depth| depth > 0);
        let message = format!("depth {text} is not a positive number");
        parsed.ok_or_else(|| CliError::fatal(message))
    };
    if args.deepen.is_some() && args.depth.is_some() {
        return together("--deepen", "--depth");
    }
    if args.unshallow && args.depth.is_some() {
        return together("--depth", "--unshallow");
    }
    if let Some(depth) = &args.deepen {
        if depth.starts_with('-') {
            let message = "negative depth in --deepen is not supported";
            return Err(CliError::fatal(message));
        }
        deepen.depth = Some(number(depth)?);
        deepen.relative = true;
    }
    if let Some(depth) = &args.depth {
        deepen.depth = Some(number(depth)?);
    }
    if let Some(since) = &args.shallow_since {
        deepen.since = Some(approximate_date(since.as_str().into()));
    }
    let names = args.shallow_exclude.iter();
    deepen.not = names.map(|name| name.as_bytes().into()).collect();
    Ok(deepen)
}

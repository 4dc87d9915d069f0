//! `remote` and `remote show`: list the remotes, and their URLs.

use std::io::Write;

use pronto::configured_remotes;

use super::Args;
use crate::{CliError, Context, ExitCode};

pub(super) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    let listings = configured_remotes::list(&repository).map_err(CliError::of)?;
    let out = &mut context.out;
    for remote in listings {
        out.write_all(&remote.name)?;
        if args.verbose > 0 {
            match &remote.url {
                Some(url) => {
                    write!(out, "\t{url} (fetch)")?;
                    if let Some(filter) = &remote.filter {
                        write!(out, " [{filter}]")?;
                    }
                }
                None => write!(out, "\t")?,
            }
            for url in &remote.push_urls {
                write!(out, "\n{}\t{url} (push)", remote.name)?;
            }
        }
        writeln!(out)?;
    }
    Ok(ExitCode::SUCCESS)
}

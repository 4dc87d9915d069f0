//! `write-tree`: write the index as a tree.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;

use bstr::ByteSlice;
use pronto::Watch;
use pronto::write_tree::WrittenTree;

use crate::{CliError, Context, ExitCode};

/// Arguments of `write-tree`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Allow missing objects
    #[arg(long)]
    missing_ok: bool,
    /// Write only the tree of this directory
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    let prefix = args
        .prefix
        .as_ref()
        .map(|prefix| prefix.as_bytes().as_bstr());
    let written = pronto::write_tree::write_tree(
        &repository,
        prefix,
        args.missing_ok,
        &Watch::from(&context.interrupt),
    );
    let written = written.map_err(CliError::of)?;
    let failure = || Err(CliError::fatal("git-write-tree: error building trees"));
    match written {
        WrittenTree::Tree(id) => {
            writeln!(context.out, "{id}")?;
            Ok(ExitCode::SUCCESS)
        }
        WrittenTree::Faults(faults) => {
            for fault in faults {
                context.remark(&fault.to_string());
            }
            failure()
        }
        WrittenTree::Missing(error) => {
            context.report_error(&error.to_string());
            failure()
        }
        WrittenTree::NoSuchDirectory => {
            let prefix = prefix.unwrap_or_default();
            let message = format!("git-write-tree: prefix {prefix} not found");
            Err(CliError::fatal(message))
        }
        other => Err(CliError::unknown_outcome(&other)),
    }
}

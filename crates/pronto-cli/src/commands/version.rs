//! `version`: print the version of pronto and the release of git that it follows.

use std::io::Write;

use crate::{CliError, Context, ExitCode};

/// The release of git whose behaviour pronto follows. Scripts compare this number.
pub(crate) const GIT_VERSION: &str = "2.55.0";

/// Arguments of `version`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Also show how this binary was built
    #[arg(long)]
    build_options: bool,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let own = env!("CARGO_PKG_VERSION");
    if context.called_as_git {
        writeln!(context.out, "git version {GIT_VERSION}")?;
    } else {
        writeln!(context.out, "pronto version {own}")?;
    }
    if args.build_options {
        let pointer_bytes = size_of::<usize>();
        writeln!(context.out, "cpu: {}", std::env::consts::ARCH)?;
        writeln!(
            context.out,
            "sizeof-long: {}",
            size_of::<std::ffi::c_long>()
        )?;
        writeln!(context.out, "sizeof-size_t: {pointer_bytes}")?;
        match context.called_as_git {
            true => writeln!(context.out, "pronto: {own}")?,
            false => writeln!(context.out, "follows: git {GIT_VERSION}")?,
        }
        writeln!(context.out, "default-ref-format: files")?;
        writeln!(context.out, "default-hash: sha1")?;
    }
    Ok(ExitCode::SUCCESS)
}

//! `merge-file`: merge three versions of a file.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bstr::{BStr, BString, ByteSlice};
use pronto::config::Loader;
use pronto::merge::{self, ConflictStyle, Favor, Options};

use crate::{CliError, Context, ExitCode};

/// The largest permitted size of a file.
const LARGEST_BYTES: u64 = 1023 << 20;

/// Arguments of `merge-file`.
#[derive(clap::Args, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct Args {
    /// Print the result instead of writing it to the first file
    #[arg(short = 'p', long)]
    stdout: bool,
    /// Also show the common ancestor in conflicts
    #[arg(long, overrides_with = "zdiff3")]
    diff3: bool,
    /// Like --diff3, without common lines at the start and end of a conflict
    #[arg(long, overrides_with = "diff3")]
    zdiff3: bool,
    /// Resolve conflicts with the first file's side
    #[arg(long, overrides_with_all = ["theirs", "union"])]
    ours: bool,
    /// Resolve conflicts with the last file's side
    #[arg(long, overrides_with_all = ["ours", "union"])]
    theirs: bool,
    /// Resolve conflicts with both sides
    #[arg(long, overrides_with_all = ["ours", "theirs"])]
    union: bool,
    /// The length of conflict markers
    #[arg(long, value_name = "N")]
    marker_size: Option<String>,
    /// Do not print errors
    #[arg(short, long)]
    quiet: bool,
    /// The name of a file in conflicts; once for each file
    #[arg(short = 'L', value_name = "NAME")]
    names: Vec<OsString>,
    /// The file to change, the common ancestor, and the other version
    #[arg(value_name = "FILE")]
    files: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let [ours, base, theirs] = args.files.as_slice() else {
        return Err(CliError::unsupported(
            "this combination of arguments of 'merge-file'",
        ));
    };
    let marker_len = marker_len(args)?;
    if args.names.len() > 3 {
        return Err(CliError::usage("too many labels on the command line"));
    }
    let configured = match context.repository_if_any()? {
        Some(repository) => merge::conflict_style(&repository)?,
        // As in Git, `-c` on the command line has no effect outside of a repository.
        None => {
            let environment = context.environment()?;
            let mut loader = Loader::new(&environment, None);
            merge::conflict_style_of(&loader.system()?.global().load()?)?
        }
    };
    let name = |at: usize, file: &OsString| {
        let name = args.names.get(at).unwrap_or(file);
        Some(name.as_bytes().into())
    };
    let mut options = Options::default();
    options.style = match (args.diff3, args.zdiff3) {
        (true, _) => ConflictStyle::Diff3,
        (_, true) => ConflictStyle::ZealousDiff3,
        _ => configured,
    };
    options.favor = match (args.ours, args.theirs, args.union) {
        (true, ..) => Favor::Ours,
        (_, true, _) => Favor::Theirs,
        (.., true) => Favor::Union,
        _ => Favor::Markers,
    };
    options.marker_len = marker_len;
    options.joins_over_punctuation = true;
    options.names = [name(0, ours), name(1, base), name(2, theirs)];
    let prefix = match context.repository_if_any()? {
        Some(repository) => repository.prefix_or_empty(),
        None => BString::default(),
    };
    let merged = contents(&args.files, prefix.as_bstr()).and_then(|contents| {
        let [ours_text, base_text, theirs_text] = contents;
        let merged = merge::merge(&ours_text, &base_text, &theirs_text, &options);
        if !args.stdout {
            write(ours, &merged.text)?;
        }
        Ok(merged)
    });
    match merged {
        Ok(merged) => {
            if args.stdout {
                context.out.write_all(&merged.text)?;
            }
            let code = u8::try_from(merged.conflicts).unwrap_or(127).min(127);
            Ok(ExitCode::new(code))
        }
        Err(message) => {
            if !args.quiet {
                context.report_error(&message);
            }
            // Git's exit code is -1.
            Ok(ExitCode::new(255))
        }
    }
}

/// Returns the length of conflict markers (`--marker-size`).
fn marker_len(args: &Args) -> Result<usize, CliError> {
    match args.marker_size.as_deref().map(str::parse::<i32>) {
        None => Ok(merge::MARKER_LEN),
        Some(Ok(size)) => Ok(usize::try_from(size)
            .ok()
            .filter(|size| *size > 0)
            .unwrap_or(merge::MARKER_LEN)),
        Some(Err(_)) => Err(CliError::unsupported("this value of '--marker-size'")),
    }
}

/// Reads the files, or returns the message for a file that cannot be merged.
///
/// Messages show paths relative to the top of the worktree, so the current directory is `prefix`.
fn contents(files: &[OsString], prefix: &BStr) -> Result<[Vec<u8>; 3], String> {
    let mut contents = [const { Vec::new() }; 3];
    for (content, file) in contents.iter_mut().zip(files) {
        let said = match Path::new(file).is_absolute() {
            true => file.to_string_lossy().into_owned(),
            false => format!("{prefix}{}", file.to_string_lossy()),
        };
        let reason = |error: &std::io::Error| pronto_io::error::reason(error);
        let size = std::fs::metadata(file)
            .map_err(|error| format!("Could not stat {said}: {}", reason(&error)))?
            .len();
        let binary = || format!("Cannot merge binary files: {}", file.to_string_lossy());
        if size > LARGEST_BYTES {
            return Err(binary());
        }
        *content = std::fs::read(file)
            .map_err(|error| format!("Could not open {said}: {}", reason(&error)))?;
        if merge::is_binary(content) {
            return Err(binary());
        }
    }
    Ok(contents)
}

fn write(file: &OsString, text: &[u8]) -> Result<(), String> {
    let said = file.to_string_lossy();
    let reason = |error: &std::io::Error| pronto_io::error::reason(error);
    let mut opened = std::fs::File::create(Path::new(file))
        .map_err(|error| format!("Could not open {said} for writing: {}", reason(&error)))?;
    opened
        .write_all(text)
        .map_err(|error| format!("Could not write to {said}: {}", reason(&error)))
}

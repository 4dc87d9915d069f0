//! `cat-file`: the content, type or size of objects.

mod batch;
mod format;
mod input;
mod parallel;
mod single;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use crate::{CliError, Context, ExitCode};
use format::{BatchFormat, DEFAULT_FORMAT};

/// Arguments of `cat-file`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Exit with 0 if the object exists, and with 1 if not
    #[arg(short = 'e')]
    exists: bool,
    /// Print the object in a readable form for its type
    #[arg(short = 'p')]
    pretty: bool,
    /// Print the type of the object
    #[arg(short = 't')]
    kind: bool,
    /// Print the size of the object
    #[arg(short = 's')]
    size: bool,
    /// Accepted for old scripts
    #[arg(long)]
    allow_unknown_type: bool,
    /// Print type, size and content of each object named on standard input
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true,
        default_missing_value = DEFAULT_FORMAT)]
    batch: Vec<String>,
    /// Print type and size of each object named on standard input
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true,
        default_missing_value = DEFAULT_FORMAT)]
    batch_check: Vec<String>,
    /// Execute commands from standard input: contents, info, flush
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true,
        default_missing_value = DEFAULT_FORMAT)]
    batch_command: Vec<String>,
    /// Process all objects of the repository instead of those on standard input
    #[arg(long)]
    batch_all_objects: bool,
    /// Write when a buffer is full instead of after each object
    #[arg(long)]
    buffer: Option<bool>,
    /// Process all objects in storage order
    #[arg(long)]
    unordered: bool,
    /// Lines of standard input end with NUL
    #[arg(short = 'z')]
    nul_input: bool,
    /// Lines of standard input and output end with NUL
    #[arg(short = 'Z')]
    nul: bool,
    /// The type and the object, or only the object
    #[arg(value_name = "OBJECT")]
    objects: Vec<OsString>,
}

/// The query about a single object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Query {
    Exists,
    Pretty,
    Kind,
    Size,
}

impl Query {
    fn letter(self) -> char {
        match self {
            Query::Exists => 'e',
            Query::Pretty => 'p',
            Query::Kind => 't',
            Query::Size => 's',
        }
    }
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let query = query(args, &context.arguments)?;
    let batch = batch_mode(args)?;
    if let Some((mode, format)) = batch {
        if let Some(query) = query {
            let letter = query.letter();
            return Err(CliError::misuse(format!(
                "'-{letter}' is incompatible with batch mode"
            )));
        }
        if !args.objects.is_empty() {
            return Err(CliError::misuse("batch modes take no arguments"));
        }
        let options = batch::Options {
            mode,
            all_objects: args.batch_all_objects,
            unordered: args.unordered,
            buffered: args.buffer.unwrap_or(args.batch_all_objects),
            input_end: if args.nul || args.nul_input { 0 } else { b'\n' },
            output_end: if args.nul { 0 } else { b'\n' },
            format: BatchFormat::parse(format)?,
        };
        return batch::run(&options, context);
    }
    for (given, option) in [
        (args.buffer.is_some(), "--buffer"),
        (args.batch_all_objects, "--batch-all-objects"),
        (args.nul_input, "-z"),
        (args.nul, "-Z"),
    ] {
        if given {
            return Err(CliError::misuse(format!(
                "'{option}' requires a batch mode"
            )));
        }
    }
    match (query, args.objects.as_slice()) {
        (Some(query), [object]) => single::query(query, object, context),
        (Some(query), []) => {
            let letter = query.letter();
            Err(CliError::misuse(format!(
                "<object> required with '-{letter}'"
            )))
        }
        (Some(_), _) => Err(CliError::misuse("too many arguments")),
        (None, [kind, object]) => single::content(kind, object, context),
        (None, objects) => Err(CliError::misuse(format!(
            "only two arguments allowed in <type> <object> mode, not {}",
            objects.len()
        ))),
    }
}

/// Returns the query. `given` are the arguments as typed, because the order of `-t`, `-s`, `-e` and
/// `-p` matters to Git.
fn query(args: &Args, given: &[OsString]) -> Result<Option<Query>, CliError> {
    let mut queries = [
        (args.exists, Query::Exists),
        (args.pretty, Query::Pretty),
        (args.kind, Query::Kind),
        (args.size, Query::Size),
    ]
    .into_iter()
    .filter_map(|(is_given, query)| is_given.then_some(query));
    let query = queries.next();
    let first = usize::from(query.is_some());
    let count = first + queries.count() + usize::from(args.batch_all_objects);
    if count < 2 {
        return Ok(query);
    }
    let modes = given.iter().take_while(|word| *word != "--");
    let modes = modes.flat_map(|word| match word.as_bytes() {
        b"--batch-all-objects" => vec!["--batch-all-objects".to_owned()],
        [b'-', letters @ ..] if !letters.starts_with(b"-") => {
            let letters = letters.iter().filter(|letter| b"epts".contains(letter));
            letters
                .map(|&letter| format!("-{}", char::from(letter)))
                .collect()
        }
        _ => Vec::new(),
    });
    let mut modes = modes.collect::<Vec<_>>().into_iter();
    let first = modes.next().unwrap_or_default();
    let second = modes.find(|mode| *mode != first).unwrap_or_default();
    let message = format!("options '{second}' and '{first}' cannot be used together");
    Err(CliError::usage(message))
}

fn batch_mode(args: &Args) -> Result<Option<(batch::Mode, &str)>, CliError> {
    let all = [
        (batch::Mode::Contents, &args.batch),
        (batch::Mode::Info, &args.batch_check),
        (batch::Mode::Commands, &args.batch_command),
    ];
    let mut given = all
        .into_iter()
        .flat_map(|(mode, formats)| formats.iter().map(move |format| (mode, format.as_str())));
    match (given.next(), given.next()) {
        (Some(_), Some(_)) => Err(CliError::misuse("only one batch option may be specified")),
        (mode, _) => Ok(mode),
    }
}

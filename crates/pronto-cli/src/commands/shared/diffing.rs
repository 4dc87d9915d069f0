//! Code that the diff commands share: options, operands, and the output format.

use pronto::status::Problem;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;

use bstr::{BStr, ByteSlice};
use pronto::Repository;
use pronto::diff::{DiffFilter, DiffResult, Difference, DifferenceSide, MOST_SIMILAR, Options};
use pronto::quote::c_quote_into;
use pronto::revision::ExpectedType;
use pronto::status::{IgnoreSubmodules, Renames};
use pronto_hash::ObjectId;

use crate::paths::pathspec_error;
use crate::{CliError, Context, ExitCode};

/// Options of all these commands.
#[derive(clap::Args, Debug)]
pub(crate) struct DiffArgs {
    /// Show modes, ids and paths (the default)
    #[arg(long)]
    raw: bool,
    /// Show only paths
    #[arg(long)]
    name_only: bool,
    /// Show only paths and the kind of change
    #[arg(long)]
    name_status: bool,
    /// Print nothing
    #[arg(short = 's', long)]
    no_patch: bool,
    /// Print nothing, and report differences by the exit code
    #[arg(long)]
    quiet: bool,
    /// Exit with 1 if there are differences
    #[arg(long)]
    exit_code: bool,
    /// Terminate paths with NUL and do not quote them
    #[arg(short = 'z')]
    null: bool,
    /// Show ids with this many digits
    #[arg(long, num_args = 0..=1, default_missing_value = "", value_name = "N")]
    abbrev: Option<String>,
    /// Accepted without effect
    #[arg(long, hide = true)]
    full_index: bool,
    /// Show only these kinds of changes, by letters
    #[arg(long, value_name = "LETTERS")]
    diff_filter: Vec<OsString>,
    /// Show the reverse difference
    #[arg(short = 'R')]
    reverse: bool,
    /// Detect renames
    #[arg(short = 'M', long, num_args = 0..=1, default_missing_value = "", value_name = "SCORE")]
    find_renames: Option<OsString>,
    /// Detect renames, and copies of changed files
    #[arg(short = 'C', long, num_args = 0..=1, default_missing_value = "", value_name = "SCORE")]
    find_copies: Vec<OsString>,
    /// Do not detect renames
    #[arg(long)]
    no_renames: bool,
    /// Compare at most this many files for renames
    #[arg(short = 'l', value_name = "N")]
    rename_limit: Option<String>,
    /// Show only paths below this directory (the current one), relative to it
    #[arg(long, num_args = 0..=1, default_missing_value = "", value_name = "PATH")]
    relative: Option<OsString>,
    /// Ignore these changes of submodules
    #[arg(long, num_args = 0..=1, default_missing_value = "all", value_name = "WHEN")]
    ignore_submodules: Option<OsString>,
}

/// The output format of differences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DiffFormat {
    Raw,
    NameOnly,
    NameStatus,
    Nothing,
}

/// Prints differences.
pub(crate) struct DiffPrinter<'a> {
    repository: &'a Repository,
    format: DiffFormat,
    null: bool,
    quote_all: bool,
    /// The number of digits of ids (`--abbrev`); `None` for full ids.
    digits: Option<usize>,
    /// The length of the prefix that is removed from paths (`--relative`).
    cut: usize,
    sets_exit_code: bool,
    count: usize,
}

/// Checks that no option requests patches, which is the opposite of `--no-patch`.
///
/// # Errors
/// Fails with an unsupported option if an option requests patches. git runs the call.
pub(crate) fn refuse_patches(context: &Context) -> Result<(), CliError> {
    let options = context.arguments.iter().take_while(|word| *word != "--");
    for word in options {
        if word == "--patch" {
            return Err(CliError::unsupported("option '--patch'"));
        }
    }
    Ok(())
}

impl DiffArgs {
    /// Converts the arguments into options of the library.
    pub(crate) fn options(
        &self,
        repository: &Repository,
        paths: &[OsString],
    ) -> Result<Options, CliError> {
        let specs = paths.iter().map(|path| path.as_bytes().as_bstr());
        let mut filter: Option<DiffFilter> = None;
        for letters in &self.diff_filter {
            let parsed = DiffFilter::parse(letters.as_bytes());
            let parsed =
                parsed.ok_or_else(|| CliError::misuse("unknown letter in '--diff-filter'"))?;
            filter = Some(filter.unwrap_or_default().and(parsed));
        }
        let ignore_submodules = match &self.ignore_submodules {
            None => None,
            Some(when) => {
                let parsed = IgnoreSubmodules::parse(when.as_bytes());
                let wrong = || CliError::misuse("bad --ignore-submodules argument");
                Some(parsed.ok_or_else(wrong)?)
            }
        };
        let below = match self.relative.as_deref().map(OsStr::as_bytes) {
            None => "".into(),
            Some(b"") => repository.prefix_or_empty(),
            Some(given) => given.into(),
        };
        let mut options = Options::default();
        options.pathspec = repository.pathspec(specs).map_err(pathspec_error)?;
        options.renames = self.renames(repository)?;
        options.reverse = self.reverse;
        options.ignore_submodules = ignore_submodules;
        options.filter = filter;
        options.below = below;
        Ok(options)
    }

    fn renames(&self, repository: &Repository) -> Result<Option<Renames>, CliError> {
        if self.no_renames && self.find_renames.is_none() && self.find_copies.is_empty() {
            return Ok(None);
        }
        let (given, copies, option) = match (&self.find_renames, self.find_copies.as_slice()) {
            _ if self.no_renames => {
                return Err(CliError::unsupported("--no-renames together with -M or -C"));
            }
            (None, []) => return Ok(None),
            (Some(score), []) => (score, false, "this value of '-M'"),
            (None, [score]) => (score, true, "this value of '-C'"),
            (None, _) => return Err(CliError::unsupported("option '--find-copies-harder'")),
            (Some(_), _) => return Err(CliError::unsupported("-M together with -C")),
        };
        let mut renames = Renames {
            copies,
            ..Renames::default()
        };
        if !given.is_empty() {
            renames.minimum_score = score(given.as_bytes(), option)?;
        }
        let limit = match &self.rename_limit {
            Some(text) => {
                let wrong = |_| CliError::misuse("option `l' expects an integer value");
                Some(text.parse::<i32>().map_err(wrong)?)
            }
            None => {
                let entry = repository.config().entry_of("diff.renameLimit");
                entry.map(|entry| entry.i32()).transpose()?
            }
        };
        if let Some(limit) = limit {
            renames.limit = usize::try_from(limit).unwrap_or(renames.limit);
        }
        Ok(Some(renames))
    }

    /// Creates the printer for these options.
    pub(crate) fn printer<'a>(
        &self,
        repository: &'a Repository,
        options: &Options,
    ) -> Result<DiffPrinter<'a>, CliError> {
        let formats = [
            (self.raw, DiffFormat::Raw),
            (self.name_only, DiffFormat::NameOnly),
            (self.name_status, DiffFormat::NameStatus),
            (self.no_patch, DiffFormat::Nothing),
        ];
        let mut wanted = formats.iter().filter(|(wanted, _)| *wanted);
        let first = wanted.next().map_or(DiffFormat::Raw, |(_, format)| *format);
        if wanted.next().is_some() {
            return Err(CliError::unsupported(
                "a combination of several output formats",
            ));
        }
        Ok(DiffPrinter {
            repository,
            format: if self.quiet {
                DiffFormat::Nothing
            } else {
                first
            },
            null: self.null,
            quote_all: repository.config().bool_or("core.quotepath", true)?,
            digits: digits(self.abbrev.as_deref(), repository)?,
            cut: options.below.len(),
            sets_exit_code: self.exit_code || self.quiet,
            count: 0,
        })
    }
}

fn digits(abbrev: Option<&str>, repository: &Repository) -> Result<Option<usize>, CliError> {
    Ok(match abbrev {
        None => None,
        Some("") => Some(repository.abbreviation_length()?),
        Some(text) => {
            let wrong = |_| CliError::misuse("option `abbrev' expects a numerical value");
            Some(text.parse::<usize>().map_err(wrong)?)
        }
    })
}

impl DiffPrinter<'_> {
    /// Prints the differences, and reports the paths that could not be examined.
    pub(crate) fn print(
        &mut self,
        found: &DiffResult,
        context: &mut Context,
    ) -> Result<(), CliError> {
        for Problem { path, error, .. } in &found.problems {
            context.remark(&format!("{path}: {}", pronto_io::error::reason(error)));
        }
        self.count += found.differences.len();
        let mut line = Vec::new();
        for difference in &found.differences {
            line.clear();
            self.line(difference, &mut line)?;
            context.out.write_all(&line)?;
        }
        Ok(())
    }

    /// Returns the terminator of a line that is not a difference.
    pub(crate) fn line_end(&self) -> u8 {
        if self.null { 0 } else { b'\n' }
    }

    /// Returns the exit code after all differences are printed (`--exit-code`).
    pub(crate) fn code(&self) -> ExitCode {
        match self.sets_exit_code && self.count > 0 {
            true => ExitCode::FAILURE,
            false => ExitCode::SUCCESS,
        }
    }

    fn line(&self, difference: &Difference, line: &mut Vec<u8>) -> Result<(), CliError> {
        if self.format == DiffFormat::Nothing {
            return Ok(());
        }
        if self.format == DiffFormat::Raw {
            let modes = [&difference.old, &difference.new].map(|side| side.map_or(0, |it| it.mode));
            write!(line, ":{:06o} {:06o} ", modes[0], modes[1])?;
            for side in [&difference.old, &difference.new] {
                self.id(side.as_ref(), line)?;
                line.push(b' ');
            }
        }
        let path = difference.path.as_bstr();
        if self.format != DiffFormat::NameOnly {
            line.push(difference.letter());
            if let Some(origin) = &difference.origin {
                write!(line, "{:03}", origin.score * 100 / MOST_SIMILAR)?;
                line.push(if self.null { 0 } else { b'\t' });
                self.path(origin.path.as_bstr(), line);
            }
            line.push(if self.null { 0 } else { b'\t' });
        }
        self.path(path, line);
        line.push(self.line_end());
        Ok(())
    }

    fn id(&self, side: Option<&DifferenceSide>, line: &mut Vec<u8>) -> Result<(), CliError> {
        let null = self.repository.object_hash().null();
        let id: ObjectId = side.map_or(null, |side| side.id);
        match self.digits {
            None => write!(line, "{id}")?,
            Some(digits) => {
                line.extend_from_slice(self.repository.abbreviate_to(&id, digits)?.as_bytes());
            }
        }
        Ok(())
    }

    fn path(&self, path: &BStr, line: &mut Vec<u8>) {
        let seen = path.get(self.cut..).unwrap_or_default();
        let seen = match self.cut {
            0 => seen,
            _ => seen.strip_prefix(b"/").unwrap_or(seen),
        };
        match self.null {
            true => line.extend_from_slice(seen),
            false => c_quote_into(seen, self.quote_all, line),
        }
    }
}

/// A revision on the command line.
#[derive(Clone, Debug)]
pub(crate) struct Revision {
    /// The text as given.
    pub(crate) name: String,
    /// The id of the named object.
    pub(crate) id: ObjectId,
    /// Whether the revision is excluded (`^A`, or the `A` of `A..B`).
    pub(crate) is_excluded: bool,
}

impl Revision {
    /// Returns the error about a name whose object is missing or has the wrong type.
    pub(crate) fn unusable(&self, repository: &Repository, otherwise: String) -> CliError {
        missing(self, repository).unwrap_or_else(|| CliError::fatal(otherwise))
    }
}

/// Splits `operands` into revisions and paths.
pub(crate) fn revisions_and_paths<'o>(
    operands: &'o [OsString],
    repository: &Repository,
    context: &mut Context,
) -> Result<(Vec<Revision>, &'o [OsString]), CliError> {
    let mut revisions = Vec::new();
    let separator = context.separator;
    for (at, operand) in operands.iter().enumerate() {
        if separator == Some(at) {
            return Ok((revisions, &operands[at..]));
        }
        let name = operand.as_bytes().as_bstr();
        let found = look_up(name, repository);
        context.report();
        let found = found?;
        if found.is_empty() {
            // As in Git, which looks at each revision before the next.
            if let Some(missing) = revisions
                .iter()
                .find_map(|known| missing(known, repository))
            {
                return Err(missing);
            }
            if separator.is_some() {
                return Err(CliError::fatal(format!("bad revision '{name}'")));
            }
            for (later, path) in operands[at..].iter().enumerate() {
                let path = path.as_bytes().as_bstr();
                repository.verify_file_name(path, later == 0)?;
            }
            return Ok((revisions, &operands[at..]));
        }
        if separator.is_none() && repository.could_be_file(name) {
            return Err(CliError::misuse(format!(
                "ambiguous argument '{name}': both revision and filename"
            )));
        }
        revisions.extend(found);
    }
    Ok((revisions, &[]))
}

/// Returns the error about a revision whose object is missing.
fn missing(revision: &Revision, repository: &Repository) -> Option<CliError> {
    let found = repository.objects().map(|store| store.header(&revision.id));
    let is_missing = matches!(found, Ok(Ok(None)));
    is_missing.then(|| CliError::fatal(format!("bad object {}", revision.name)))
}

fn look_up(name: &BStr, repository: &Repository) -> Result<Vec<Revision>, CliError> {
    let one = |name: &BStr, is_excluded| {
        let found = repository.try_resolve(name, ExpectedType::Anything);
        let found = found.map_err(CliError::unresolved)?;
        Ok::<_, CliError>(found.map(|id| Revision {
            name: name.to_string(),
            id,
            is_excluded,
        }))
    };
    if let Some(range) = repository.split_range(name)
        && let (Some(from), Some(to)) = (one(range.from, true)?, one(range.to, false)?)
    {
        return match range.is_symmetric {
            true => Err(CliError::unsupported(
                "a symmetric difference (A...B) for this command",
            )),
            false => Ok(vec![from, to]),
        };
    }
    let found = match name.strip_prefix(b"^") {
        Some(rest) => one(rest.as_bstr(), true)?,
        None => one(name, false)?,
    };
    let has_suffix = [&b"^@"[..], b"^!"]
        .iter()
        .any(|suffix| name.ends_with(suffix))
        || name.contains_str("^-");
    if found.is_none() && has_suffix {
        return Err(CliError::unsupported(
            "REV^@, REV^! or REV^- for this command",
        ));
    }
    Ok(found.into_iter().collect())
}

/// Parses a similarity of `option`: `50%`, digits after an implied decimal point, or a decimal
/// number.
pub(crate) fn score(text: &[u8], option: &str) -> Result<u32, CliError> {
    const MOST: u64 = 60_000;
    let (mut number, mut scale, mut dot) = (0u64, 1u64, false);
    let mut rest = text;
    while let Some((&byte, tail)) = rest.split_first() {
        match byte {
            b'.' if !dot => (scale, dot) = (1, true),
            b'%' => {
                scale = if dot { scale * 100 } else { 100 };
                rest = tail;
                break;
            }
            b'0'..=b'9' => {
                if scale < 100_000 {
                    scale *= 10;
                    number = number * 10 + u64::from(byte - b'0');
                }
            }
            _ => break,
        }
        rest = tail;
    }
    if !rest.is_empty() {
        return Err(CliError::unsupported(option));
    }
    let score = if number >= scale {
        MOST
    } else {
        MOST * number / scale
    };
    // Zero selects the default.
    Ok(match u32::try_from(score) {
        Ok(0) | Err(_) => Renames::default().minimum_score,
        Ok(score) => score,
    })
}

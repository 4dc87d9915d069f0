//! `hash-object`: compute the object id of a file.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bstr::{BStr, BString, ByteSlice};
use gix_object::Kind as ObjectKind;
use pronto::hash_object::{ContentHasher, check_format};
use pronto_hash::{Kind, ObjectId};

use crate::commands::pathspecs::unquote;
use crate::{CliError, Context, ExitCode};

/// Arguments of `hash-object`.
#[derive(clap::Args, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct Args {
    /// The type of the object
    #[arg(short = 't', value_name = "TYPE")]
    kind: Option<String>,
    /// Store the object
    #[arg(short = 'w')]
    write: bool,
    /// Read the object from standard input
    #[arg(long)]
    stdin: bool,
    /// Read file names from standard input
    #[arg(long)]
    stdin_paths: bool,
    /// Do not convert the content
    #[arg(long)]
    no_filters: bool,
    /// Accept any type and content (handed to git)
    #[arg(long)]
    literally: bool,
    /// Convert as if the content were that of this file
    #[arg(long, value_name = "FILE")]
    path: Option<OsString>,
    /// Files
    file: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    if args.literally {
        return Err(CliError::unsupported(
            "option '--literally' of 'hash-object'",
        ));
    }
    check(args)?;
    let repository = match args.write {
        true => Some(context.repository()?),
        false => context.repository_if_any()?,
    };
    let kind = args.kind.as_deref().unwrap_or("blob");
    let kind = ObjectKind::from_bytes(kind.as_bytes())
        .map_err(|_| CliError::fatal(format!("invalid object type \"{kind}\"")))?;
    let Some(repository) = repository else {
        return without_repository(args, kind, context);
    };
    // Files can be hashed even if the worktree does not exist.
    let work_tree = repository.require_work_tree().ok().map(Path::to_owned);
    let prefix = repository.prefix_or_empty();
    let placed = |path: &[u8]| -> BString {
        match path.starts_with(b"/") {
            true => path.into(),
            false => [prefix.as_slice(), path].concat().into(),
        }
    };
    let as_path = args.path.as_ref().map(|path| placed(path.as_bytes()));
    let mut maker = ObjectMaker {
        hasher: pronto::hash_object::content_hasher(&repository, kind, args.write)?,
        kind,
        hash: repository.object_hash(),
        filters: !args.no_filters && work_tree.is_some(),
        write: args.write,
    };
    if args.stdin {
        let mut content = Vec::new();
        std::io::stdin()
            .read_to_end(&mut content)
            .map_err(|_| failed(args.write, "standard input"))?;
        let path = as_path.as_ref().map(|path| path.as_bstr());
        maker.check(&content)?;
        let id = maker.hasher.content(&content, maker.path(path))?;
        print(&id, context)?;
    }
    let stood = repository.environment().current_dir().to_owned();
    for file in &args.file {
        let name = placed(file.as_bytes());
        let path = as_path.as_ref().unwrap_or(&name);
        let id = maker.file(&stood.join(file), name.as_bstr(), path.as_bstr())?;
        print(&id, context)?;
    }
    if args.stdin_paths {
        let top = work_tree.unwrap_or(stood);
        for line in std::io::stdin().lock().split(b'\n') {
            let line = unquoted(&line?)?;
            let id = maker.file(
                &top.join(pronto::path::borrow(&line)),
                line.as_bstr(),
                line.as_bstr(),
            )?;
            print(&id, context)?;
            context.out.flush()?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses invalid combinations. Git prints its usage.
fn check(args: &Args) -> Result<(), CliError> {
    let wrong = if args.stdin_paths {
        if args.stdin {
            Some("Can't use --stdin-paths with --stdin")
        } else if !args.file.is_empty() {
            Some("Can't specify files with --stdin-paths")
        } else if args.path.is_some() {
            Some("Can't use --stdin-paths with --path")
        } else {
            None
        }
    } else if args.path.is_some() && args.no_filters {
        Some("Can't use --path with --no-filters")
    } else {
        None
    };
    match wrong {
        Some(message) => Err(CliError::misuse(message)),
        None => Ok(()),
    }
}

fn print(id: &ObjectId, context: &mut Context) -> Result<(), CliError> {
    context.report();
    writeln!(context.out, "{}", pronto_hash::hex(id))?;
    Ok(())
}

fn unquoted(line: &[u8]) -> Result<BString, CliError> {
    unquote(line).ok_or_else(|| CliError::fatal("line is badly quoted"))
}

fn failed(write: bool, name: &str) -> CliError {
    CliError::fatal(match write {
        true => format!("Unable to add {name} to database"),
        false => format!("Unable to hash {name}"),
    })
}

struct ObjectMaker<'a> {
    hasher: ContentHasher<'a>,
    kind: ObjectKind,
    hash: Kind,
    filters: bool,
    write: bool,
}

impl ObjectMaker<'_> {
    fn path<'p>(&self, path: Option<&'p BStr>) -> Option<&'p BStr> {
        path.filter(|path| self.filters && is_inside(path))
    }

    fn check(&self, content: &[u8]) -> Result<(), CliError> {
        Ok(check_format(self.kind, content, self.hash)?)
    }

    /// Hashes the file at `place`, whose name in messages is `name`, with the conversions for
    /// `path`.
    fn file(&mut self, place: &Path, name: &BStr, path: &BStr) -> Result<ObjectId, CliError> {
        let file = open(place, name)?;
        if self.kind != ObjectKind::Blob {
            let mut content = Vec::new();
            (&mut &file)
                .read_to_end(&mut content)
                .map_err(|_| failed(self.write, &name.to_string()))?;
            self.check(&content)?;
            return Ok(self.hasher.content(&content, None)?);
        }
        let path = self.path(Some(path));
        self.hasher
            .file(&file, path)
            .map_err(|error| match error.kind() {
                pronto::ErrorKind::Io => failed(self.write, &name.to_string()),
                _ => {
                    let fatal = CliError::fatal(error.message());
                    let fatal = match error.hint() {
                        Some(hint) => fatal.with_hint(hint).with_leading_hints(),
                        None => fatal,
                    };
                    match error.reported_before() {
                        Some(before) => fatal.after(before),
                        None => fatal,
                    }
                }
            })
    }
}

/// Returns whether `path`, relative to the top of the worktree, stays inside the worktree.
fn is_inside(path: &[u8]) -> bool {
    let mut depth = 0;
    let mut parts = path.split(|&byte| byte == b'/');
    !path.starts_with(b"/")
        && parts.all(|part| {
            depth += match part {
                b"" | b"." => 0,
                b".." => -1,
                _ => 1,
            };
            depth >= 0
        })
}

fn open(place: &Path, name: &BStr) -> Result<File, CliError> {
    // An empty name joined to a directory would open the directory.
    let opened = match name.is_empty() {
        true => Err(rustix::io::Errno::NOENT.into()),
        false => File::open(place),
    };
    opened.map_err(|error| {
        let reason = pronto_io::error::reason(&error);
        CliError::fatal(format!("could not open '{name}' for reading: {reason}"))
    })
}

/// Returns whether the user's settings convert files even outside of a repository (`core.autocrlf`,
/// `core.eol`, attributes files).
fn has_conversions(context: &Context) -> Result<bool, CliError> {
    let config = context.configuration()?;
    let keys = ["core.autocrlf", "core.eol", "core.attributesfile"];
    let environment = context.environment()?;
    let base = match environment.path("XDG_CONFIG_HOME") {
        Some(base) if !base.as_os_str().is_empty() => Some(base.to_owned()),
        _ => environment.home().map(|home| home.join(".config")),
    };
    let usual = base.is_some_and(|base| base.join("git/attributes").exists());
    let is_set = |key: &&str| match *key {
        "core.autocrlf" => config.bool(key).ok().flatten() != Some(false) && config.contains(*key),
        key => config.contains(key),
    };
    Ok(usual || keys.iter().any(is_set) || Path::new("/etc/gitattributes").exists())
}

/// Hashes outside of a repository: no object is stored, no content is converted, and ids are SHA-1.
fn without_repository(
    args: &Args,
    kind: ObjectKind,
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    if kind == ObjectKind::Blob && !args.no_filters && has_conversions(context)? {
        return Err(CliError::unsupported(
            "converting a file outside of a repository",
        ));
    }
    let hash = |content: &[u8], name: &str| {
        check_format(kind, content, Kind::Sha1)?;
        let header = gix_object::encode::loose_header(kind, content.len() as u64);
        pronto_hash::digest(Kind::Sha1, &[&header, content]).map_err(|_| failed(false, name))
    };
    let mut content = Vec::new();
    if args.stdin {
        let read = std::io::stdin().read_to_end(&mut content);
        read.map_err(|_| failed(false, "standard input"))?;
        print(&hash(&content, "standard input")?, context)?;
    }
    let mut of_file = |name: &BStr, context: &mut Context| {
        content.clear();
        let mut file = open(pronto::path::borrow(name), name)?;
        let read = file.read_to_end(&mut content);
        read.map_err(|_| failed(false, &name.to_string()))?;
        print(&hash(&content, &name.to_string())?, context)
    };
    for name in &args.file {
        of_file(name.as_bytes().as_bstr(), context)?;
    }
    if args.stdin_paths {
        for line in std::io::stdin().lock().split(b'\n') {
            of_file(unquoted(&line?)?.as_bstr(), context)?;
            // The caller may wait for this line before it writes the next one.
            context.out.flush()?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

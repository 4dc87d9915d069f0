//! `update-index`: change entries of the index.

mod report;

use std::ffi::OsString;
use std::io::{BufRead, Write};
use std::os::unix::ffi::OsStrExt;

use bstr::{BStr, BString, ByteSlice};
use pronto::refresh::Options as Refresh;
use pronto::update_index::{AllowedChanges, EntryMark, IndexAction, IndexVersion, Options};
use pronto::{Repository, Watch};

use crate::commands::pathspecs::unquote;
use crate::terminal::text::write_to_stderr;
use crate::{CliError, Context, ExitCode};
use report::{failed, print};

/// Arguments of `update-index`: each option applies to the paths after it.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Options and files: [-q] [--add] [--remove] [--force-remove] [--replace] [--refresh]
    /// [--unmerged] [--ignore-missing] [--ignore-submodules] [--ignore-skip-worktree-entries]
    /// [--info-only] [--cacheinfo <mode>,<object>,<file>] [--chmod=(+|-)x]
    /// [--[no-]assume-unchanged] [--[no-]skip-worktree] [--index-version <n>]
    /// [--clear-resolve-undo] [--[no-]fsmonitor-valid] [--really-refresh] [--[no-]split-index]
    /// [--[no-|test-|force-]untracked-cache] [--[no-]fsmonitor] [--verbose] [-z]
    /// [--stdin | --index-info] [--again | --unresolve] [--] [<file>...]
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENTS"
    )]
    arguments: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    if repository.work_tree().is_none() {
        return Err(CliError::unsupported("'update-index' in a bare repository"));
    }
    repository.require_work_tree()?;
    let mut reader = Reader {
        repository: &repository,
        how: UpdateFlags::default(),
        options: Options::default(),
    };
    reader.read(&args.arguments)?;
    let how = reader.how;
    let options = reader.options;
    if how.tests_untracked_cache {
        return test_untracked_cache(&repository, context);
    }
    remark_settings(&repository, &options, context)?;
    let version_before = match options.version {
        Some(_) if how.verbose => repository.index()?.version(),
        _ => 0,
    };
    let watch = Watch::from(&context.interrupt);
    let said = pronto::update_index::update_index(&repository, &options, &watch);
    let code = match said {
        Ok(events) => print(events, &how, context)?,
        Err(failure) => return Err(failed(failure, &how, context)?),
    };
    if how.verbose {
        if let Some(version) = how.version {
            let line = format!("index-version: was {version_before}, set to {version}");
            writeln!(context.out, "{line}")?;
        }
        print_caches(&repository, &options, context)?;
    }
    Ok(code)
}

/// Prints Git's messages about index extensions that were enabled or disabled.
fn print_caches(
    repository: &Repository,
    options: &Options,
    context: &mut Context,
) -> Result<(), CliError> {
    let out = &mut context.out;
    match options.untracked_cache {
        Some(true) => {
            let top = repository.require_work_tree()?;
            writeln!(out, "Untracked cache enabled for '{}'", top.display())?;
        }
        Some(false) => writeln!(out, "Untracked cache disabled")?,
        None => {}
    }
    match options.fsmonitor {
        Some(true) => writeln!(out, "fsmonitor enabled")?,
        Some(false) => writeln!(out, "fsmonitor disabled")?,
        None => {}
    }
    Ok(())
}

/// The effect of the options so far, because options apply to the following paths.
#[derive(Clone, Debug, Default)]
struct UpdateFlags {
    allowed: AllowedChanges,
    force_remove: bool,
    mark: Option<(EntryMark, bool)>,
    executable: Option<bool>,
    quiet: bool,
    verbose: bool,
    ends_with_nul: bool,
    allow_unmerged: bool,
    refresh: Refresh,
    vouch: Option<bool>,
    tests_untracked_cache: bool,
    /// The requested version of the index (`--index-version`).
    version: Option<u8>,
}

impl UpdateFlags {
    /// Returns the action that the options select for `path`.
    fn action(&self, path: BString) -> IndexAction {
        match (self.mark, self.vouch) {
            (Some((mark, on)), _) => IndexAction::Mark(path, mark, on),
            (None, Some(is_valid)) => IndexAction::Vouch(path, is_valid),
            (None, None) if self.force_remove => IndexAction::Remove(path),
            (None, None) => IndexAction::Update(path, self.allowed),
        }
    }
}

struct Reader<'a> {
    repository: &'a Repository,
    how: UpdateFlags,
    options: Options,
}

impl Reader<'_> {
    fn read(&mut self, arguments: &[OsString]) -> Result<(), CliError> {
        let mut rest = arguments.iter();
        let mut only_paths = false;
        while let Some(argument) = rest.next() {
            let bytes = argument.as_bytes();
            if only_paths || !bytes.starts_with(b"-") || bytes == b"-" {
                self.path(bytes.as_bstr())?;
                continue;
            }
            let text = argument.to_string_lossy();
            match &*text {
                "--" => only_paths = true,
                "--stdin" | "--index-info" => {
                    if rest.next().is_some() {
                        let name = text.trim_start_matches('-');
                        let message = format!("option '{name}' must be at the end");
                        return Err(CliError::misuse(message));
                    }
                    return match &*text {
                        "--stdin" => self.paths_of_stdin(),
                        _ => self.index_info(),
                    };
                }
                "--cacheinfo" => self.cacheinfo(&mut rest)?,
                "--again" | "-g" => return self.again(rest.as_slice()),
                "--unresolve" => return self.unresolve(rest.as_slice()),
                "--index-version" => {
                    let value = rest.next().map(|value| value.to_string_lossy());
                    self.version(value.as_deref())?;
                }
                _ => self.option(&text)?,
            }
        }
        Ok(())
    }

    fn option(&mut self, text: &str) -> Result<(), CliError> {
        let how = &mut self.how;
        match text {
            "-q" => how.quiet = true,
            "--add" => how.allowed.add = true,
            "--no-add" => how.allowed.add = false,
            "--remove" => how.allowed.remove = true,
            "--no-remove" => how.allowed.remove = false,
            "--replace" => how.allowed.replace = true,
            "--no-replace" => how.allowed.replace = false,
            "--info-only" => how.allowed.info_only = true,
            "--no-info-only" => how.allowed.info_only = false,
            "--ignore-skip-worktree-entries" => how.allowed.ignore_skip_worktree = true,
            "--no-ignore-skip-worktree-entries" => how.allowed.ignore_skip_worktree = false,
            "--force-remove" => how.force_remove = true,
            "--no-force-remove" => how.force_remove = false,
            "--verbose" => how.verbose = true,
            "--no-verbose" => how.verbose = false,
            "-z" => how.ends_with_nul = true,
            "--unmerged" => how.allow_unmerged = true,
            "--ignore-submodules" => how.refresh.ignore_submodules = true,
            "--ignore-missing" => how.refresh.ignore_missing = true,
            "--assume-unchanged" => how.mark = Some((EntryMark::AssumeUnchanged, true)),
            "--no-assume-unchanged" => how.mark = Some((EntryMark::AssumeUnchanged, false)),
            "--skip-worktree" => how.mark = Some((EntryMark::SkipWorktree, true)),
            "--no-skip-worktree" => how.mark = Some((EntryMark::SkipWorktree, false)),
            "--chmod=+x" => how.executable = Some(true),
            "--chmod=-x" => how.executable = Some(false),
            "--force-write-index" => self.options.force_write = true,
            "--refresh" => {
                let refresh = how.refresh.clone();
                self.options.actions.push(IndexAction::Refresh(refresh));
            }
            "--really-refresh" => {
                let mut refresh = how.refresh.clone();
                refresh.really = true;
                self.options.actions.push(IndexAction::Refresh(refresh));
            }
            "--split-index" => self.options.split = Some(true),
            "--no-split-index" => self.options.split = Some(false),
            "--untracked-cache" | "--force-untracked-cache" => {
                self.options.untracked_cache = Some(true);
                how.tests_untracked_cache = false;
            }
            "--no-untracked-cache" => {
                self.options.untracked_cache = Some(false);
                how.tests_untracked_cache = false;
            }
            "--test-untracked-cache" => how.tests_untracked_cache = true,
            "--fsmonitor" => self.options.fsmonitor = Some(true),
            "--no-fsmonitor" => self.options.fsmonitor = Some(false),
            "--fsmonitor-valid" => how.vouch = Some(true),
            "--no-fsmonitor-valid" => how.vouch = Some(false),
            "--clear-resolve-undo" => self.options.actions.push(IndexAction::ClearResolveUndo),
            _ if text.starts_with("--cacheinfo=") => {
                return Err(CliError::usage("option `cacheinfo' takes no value"));
            }
            _ => match text.strip_prefix("--index-version=") {
                Some(version) => self.version(Some(version))?,
                None => {
                    let what = format!("option '{text}' of 'update-index'");
                    return Err(CliError::unsupported(what));
                }
            },
        }
        Ok(())
    }

    fn version(&mut self, value: Option<&str>) -> Result<(), CliError> {
        let (version, number) = match value {
            Some("2") => (IndexVersion::Two, 2),
            Some("3") => (IndexVersion::Two, 3),
            Some("4") => (IndexVersion::Four, 4),
            _ => return Err(CliError::unsupported("this value of --index-version")),
        };
        self.options.version = Some(version);
        self.how.version = Some(number);
        Ok(())
    }

    fn path(&mut self, path: &BStr) -> Result<(), CliError> {
        let path = self.repository.entry_from_top(path)?;
        let how = &self.how;
        self.options.actions.push(how.action(path.clone()));
        if let Some(executable) = how.executable {
            self.options
                .actions
                .push(IndexAction::Executable(path, executable));
        }
        Ok(())
    }

    /// Handles `--again PATHSPEC...`: applies the options to all paths that differ from `HEAD`.
    fn again(&mut self, rest: &[OsString]) -> Result<(), CliError> {
        let given: Vec<&BStr> = rest.iter().map(|path| path.as_bytes().as_bstr()).collect();
        if given.iter().any(|given| given.starts_with(b"-")) {
            return Err(CliError::unsupported(
                "'update-index' with options after --again",
            ));
        }
        let here = [BStr::new(b".")];
        let given = match given.is_empty() && !self.repository.prefix_or_empty().is_empty() {
            true => &here[..],
            false => &given,
        };
        let pathspec = self.repository.pathspec(given.iter().copied())?;
        let action = self.how.action(BString::default());
        let again = IndexAction::Again(Box::new(action), pathspec);
        self.options.actions.push(again);
        Ok(())
    }

    /// Handles `--unresolve PATH...`.
    fn unresolve(&mut self, rest: &[OsString]) -> Result<(), CliError> {
        let paths = rest
            .iter()
            .map(|path| self.repository.entry_from_top(path.as_bytes().as_bstr()));
        let paths = paths.collect::<Result<_, _>>()?;
        self.options.actions.push(IndexAction::Unresolve(paths));
        Ok(())
    }

    fn paths_of_stdin(&mut self) -> Result<(), CliError> {
        for line in self.lines() {
            let line = line?;
            let path = match self.how.ends_with_nul {
                true => line,
                false => unquote(&line).ok_or_else(|| CliError::fatal("line is badly quoted"))?,
            };
            self.path(path.as_bstr())?;
        }
        Ok(())
    }

    fn lines(&self) -> impl Iterator<Item = std::io::Result<BString>> + use<> {
        let end = match self.how.ends_with_nul {
            true => 0,
            false => b'\n',
        };
        let lines = std::io::stdin().lock().split(end);
        lines.map(|line| line.map(BString::from))
    }

    /// Handles `--cacheinfo MODE,OBJECT,FILE`, which may also be three arguments.
    fn cacheinfo(&mut self, rest: &mut std::slice::Iter<'_, OsString>) -> Result<(), CliError> {
        let expects = || {
            let message = "option 'cacheinfo' expects <mode>,<sha1>,<path>";
            CliError::misuse(message)
        };
        let first = rest.next().ok_or_else(expects)?.as_bytes();
        if first.contains(&b',') {
            return self.entry(first);
        }
        let (Some(id), Some(path)) = (rest.next(), rest.next()) else {
            return Err(expects());
        };
        self.entry(&[first, id.as_bytes(), path.as_bytes()].join(&b','))
    }

    fn entry(&mut self, info: &[u8]) -> Result<(), CliError> {
        let expects = || {
            let message = "option 'cacheinfo' expects <mode>,<sha1>,<path>";
            CliError::misuse(message)
        };
        let mut parts = info.splitn(3, |byte| *byte == b',');
        let (Some(mode), Some(id), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(expects());
        };
        let mode = octal(mode).ok_or_else(expects)?;
        let id = pronto_hash::parse_hex(id).map_err(|_| expects())?;
        if id.kind() != self.repository.object_hash() {
            return Err(expects());
        }
        let path = path.as_bstr();
        self.options.actions.push(IndexAction::Entry {
            path: path.to_owned(),
            mode: if mode == 0 { 0o100_644 } else { mode },
            id,
            stage: 0,
            allowed: self.how.allowed,
            from_list: false,
        });
        Ok(())
    }

    fn index_info(&mut self) -> Result<(), CliError> {
        let hex_len = self.repository.object_hash().len_in_hex();
        let allowed = AllowedChanges {
            add: true,
            remove: true,
            replace: true,
            ..self.how.allowed
        };
        for line in self.lines() {
            let line = line?;
            let bad = || CliError::fatal(format!("malformed index info {line}"));
            let blank = line.find_byte(b' ').ok_or_else(bad)?;
            let mode = octal(&line[..blank]).ok_or_else(bad)?;
            let tab = line.find_byte(b'\t').ok_or_else(bad)?;
            let (head, stage) = match line[..tab] {
                [ref head @ .., b' ', stage @ b'0'..=b'3'] => (head, stage - b'0'),
                ref head => (head, 0),
            };
            let start = head.len().checked_sub(hex_len).ok_or_else(bad)?;
            if start == 0 || head[start - 1] != b' ' || start <= blank {
                return Err(bad());
            }
            let id = pronto_hash::parse_hex(&head[start..]).map_err(|_| bad())?;
            let path = match self.how.ends_with_nul {
                true => line[tab + 1..].into(),
                false => unquote(&line[tab + 1..])
                    .ok_or_else(|| CliError::fatal("git update-index: bad quoting of path name"))?,
            };
            self.options.actions.push(IndexAction::Entry {
                path,
                mode,
                id,
                stage,
                allowed,
                from_list: true,
            });
        }
        Ok(())
    }
}

/// Prints Git's messages about options that contradict the configuration, and about the result of
/// options.
fn remark_settings(
    repository: &Repository,
    options: &Options,
    context: &mut Context,
) -> Result<(), CliError> {
    let config = repository.config();
    let warn = |context: &mut Context, key: &str, is: bool, verb: &str, what: &str| {
        context.warn(&format!(
            "{key} is set to {is}; remove or change it, if you really want to {verb} {what}"
        ));
    };
    let contradicts = |wanted: Option<bool>, key: &str| {
        let set = wanted.and(config.bool(key).ok().flatten());
        set.filter(|set| Some(*set) != wanted)
    };
    let verb = |is_set: bool| if is_set { "disable" } else { "enable" };
    if let Some(set) = contradicts(options.split, "core.splitIndex") {
        warn(context, "core.splitIndex", set, verb(set), "split index");
    }
    if let Some(set) = contradicts(options.untracked_cache, "core.untrackedCache") {
        let what = "the untracked cache";
        warn(context, "core.untrackedCache", set, verb(set), what);
    }
    let is_monitored = match config.entry_of("core.fsmonitor") {
        Some(entry) => entry.bool().unwrap_or(true),
        None => false,
    };
    match options.fsmonitor {
        Some(true) if !is_monitored => {
            context.warn("core.fsmonitor is unset; set it if you really want to enable fsmonitor");
        }
        Some(false) if is_monitored => {
            context
                .warn("core.fsmonitor is set; remove it if you really want to disable fsmonitor");
        }
        _ => {}
    }
    Ok(())
}

/// Handles `--test-untracked-cache`.
fn test_untracked_cache(
    repository: &Repository,
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let top = repository.require_work_tree()?;
    let say = write_to_stderr;
    say(&format!("Testing mtime in '{}' ", top.display()));
    let mut step = || {
        say(".");
        Ok(())
    };
    let defect = pronto::update_index::test_untracked_cache(top, &mut step)?;
    match defect {
        None => say(" OK\n"),
        Some(defect) => say(&format!("\n{defect}\n")),
    }
    context.out.flush()?;
    Ok(defect.map_or(ExitCode::SUCCESS, |_| ExitCode::FAILURE))
}

fn octal(digits: &[u8]) -> Option<u32> {
    u32::from_str_radix(digits.to_str().ok()?, 8).ok()
}

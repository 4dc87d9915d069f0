//! The options of `rev-parse`, except those about paths.

use bstr::{BStr, BString, ByteSlice};
use pronto::repository::hash_name;
use pronto::revision::RefSelection;
use pronto_io::short::Short as _;

use super::{ArgumentParser, Symbolic, paths};
use crate::CliError;

/// The shortest length of abbreviated ids.
const LEAST_ABBREVIATION: usize = 4;

/// Options that only git supports. They are searched before anything is printed, so that the call
/// can be handed over.
const FOREIGN: &[&str] = &[
    "--parseopt",
    "--exclude-hidden",
    "--show-superproject-working-tree",
    "--shared-index-path",
    "--output-object-format",
];

/// Options of the commands that walk history. They are printed like revisions.
const OF_REVISIONS: &[&str] = &[
    "--all",
    "--bisect",
    "--dense",
    "--branches",
    "--header",
    "--ignore-missing",
    "--no-merges",
    "--no-min-parents",
    "--no-max-parents",
    "--objects",
    "--objects-edge",
    "--parents",
    "--pretty",
    "--remotes",
    "--sparse",
    "--tags",
    "--topo-order",
    "--date-order",
    "--unpacked",
];
const OF_REVISIONS_WITH_VALUE: &[&str] = &[
    "--branches=",
    "--max-age=",
    "--max-count=",
    "--min-age=",
    "--min-parents=",
    "--max-parents=",
    "--remotes=",
    "--glob=",
    "--tags=",
];

/// Hands the call over if it contains an option that only git supports.
pub(super) fn refuse_unknown(arguments: &[BString]) -> Result<(), CliError> {
    let options = arguments.iter().take_while(|argument| *argument != "--");
    for option in options {
        let name = option.split_at_each(b'=').next().unwrap_or_default();
        if FOREIGN.iter().any(|foreign| foreign.as_bytes() == name)
            || (option == "-h" && arguments.len() == 1)
        {
            return Err(CliError::unsupported(format!("option '{option}'")));
        }
    }
    Ok(())
}

fn is_about_revisions(option: &BStr) -> bool {
    OF_REVISIONS.iter().any(|known| option == *known)
        || OF_REVISIONS_WITH_VALUE
            .iter()
            .any(|known| option.starts_with(known.as_bytes()))
        || matches!(
            option.as_bytes(),
            [b'-', b'0'..=b'9', ..] | [b'-', b'n', ..]
        )
}

/// Returns the value if `option` is `name` or `name=value`.
fn with_value<'a>(option: &'a BStr, name: &str) -> Option<Option<&'a BStr>> {
    let rest = option.strip_prefix(name.as_bytes())?;
    match rest {
        [] => Some(None),
        [b'=', value @ ..] => Some(Some(value.as_bstr())),
        _ => None,
    }
}

impl ArgumentParser<'_> {
    pub(super) fn answer_option(&mut self, option: &BStr) -> Result<(), CliError> {
        if self.answer_mode(option)?
            || self.answer_value_option(option)?
            || self.answer_references(option)?
            || self.answer_place(option)?
        {
            return Ok(());
        }
        let wanted = if is_about_revisions(option) {
            self.filter.revisions
        } else {
            self.filter.others
        };
        if self.filter.flags && wanted {
            self.show(false, option)?;
            if self.verify {
                return Err(self.no_single_revision());
            }
        }
        Ok(())
    }

    /// Handles options that change how later arguments are processed.
    fn answer_mode(&mut self, option: &BStr) -> Result<bool, CliError> {
        match option.as_bytes() {
            b"--revs-only" => self.filter.others = false,
            b"--no-revs" => self.filter.revisions = false,
            b"--flags" => self.filter.plain = false,
            b"--no-flags" => self.filter.flags = false,
            b"--verify" => self.verify_only(),
            b"--quiet" | b"-q" => self.quiet = true,
            b"--sq" => self.sq = true,
            b"--not" => self.negated = !self.negated,
            b"--symbolic" => self.symbolic = Symbolic::AsGiven,
            b"--symbolic-full-name" => self.symbolic = Symbolic::FullName,
            b"--end-of-options" => {
                self.stage = super::ArgumentStage::Revisions;
                if self.filter.flags || self.filter.revisions {
                    self.show_file(option)?;
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn verify_only(&mut self) {
        self.filter.flags = false;
        self.filter.others = false;
        self.verify = true;
    }

    fn required(&mut self, option: &str) -> Result<BString, CliError> {
        self.take()
            .ok_or_else(|| CliError::fatal(format!("{option} requires an argument")))
    }

    fn answer_value_option(&mut self, option: &BStr) -> Result<bool, CliError> {
        if let Some(value) = with_value(option, "--path-format") {
            self.path_format = match value.map(|value| value.as_bytes()) {
                Some(b"absolute") => paths::PathFormat::Absolute,
                Some(b"relative") => paths::PathFormat::Relative,
                Some(other) => {
                    let message = format!("unknown argument to --path-format: {}", other.as_bstr());
                    return Err(CliError::fatal(message));
                }
                None => return Err(CliError::fatal("--path-format requires an argument")),
            };
        } else if let Some(value) = with_value(option, "--short") {
            self.verify_only();
            self.abbreviation = Some(value.map(|value| {
                let digits = value.to_str().ok().and_then(|text| text.parse().ok());
                digits.unwrap_or(0).max(LEAST_ABBREVIATION)
            }));
        } else if let Some(value) = with_value(option, "--abbrev-ref") {
            let strict = match value.map(|value| value.as_bytes()) {
                Some(b"strict") => true,
                Some(b"loose") => false,
                Some(other) => {
                    let message = format!("unknown mode for --abbrev-ref: {}", other.as_bstr());
                    return Err(CliError::fatal(message));
                }
                None => self
                    .repository()?
                    .config()
                    .bool_or("core.warnambiguousrefs", true)?,
            };
            self.symbolic = Symbolic::Short { strict };
        } else if let Some(value) = with_value(option, "--show-object-format") {
            match value.map_or(&b"storage"[..], |value| value.as_bytes()) {
                b"storage" | b"input" | b"output" => {
                    let name = hash_name(self.repository()?.object_hash());
                    self.print(name.into())?;
                }
                other => {
                    let message =
                        format!("unknown mode for --show-object-format: {}", other.as_bstr());
                    return Err(CliError::fatal(message));
                }
            }
        } else {
            return self.answer_separate_value(option);
        }
        Ok(true)
    }

    fn answer_separate_value(&mut self, option: &BStr) -> Result<bool, CliError> {
        match option.as_bytes() {
            b"--default" => self.default = Some(self.required("--default")?),
            b"--prefix" => self.prefix = Some(self.required("--prefix")?),
            b"--git-path" => {
                let name = self.required("--git-path")?;
                self.show_git_path(name.as_bstr())?;
            }
            b"-n" => {
                let value = self.required("-n")?;
                if self.filter.flags && self.filter.revisions {
                    self.show(false, option)?;
                    self.show(false, value.as_bstr())?;
                }
            }
            _ => {
                for (name, meaning) in [
                    ("--since=", "--max-age="),
                    ("--after=", "--max-age="),
                    ("--before=", "--min-age="),
                    ("--until=", "--min-age="),
                ] {
                    if let Some(date) = option.strip_prefix(name.as_bytes()) {
                        self.show_date(meaning, date.as_bstr())?;
                        return Ok(true);
                    }
                }
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the ref prefixes of a bisection, for bad and for good commits.
    fn bisect_terms(&mut self) -> Result<(BString, BString), CliError> {
        let file = self.repository()?.git_path("BISECT_TERMS");
        let terms = pronto_io::untrusted::content(file).unwrap_or_default();
        let mut terms = terms.each_line();
        let mut next = |usual: &str| {
            let term = terms.next().unwrap_or(usual.as_bytes());
            BString::from([b"refs/bisect/", term].concat())
        };
        Ok((next("bad"), next("good")))
    }

    fn answer_references(&mut self, option: &BStr) -> Result<bool, CliError> {
        if option == "--all" {
            self.show_references(&RefSelection::everything())?;
        } else if let Some(pattern) = option.strip_prefix(b"--glob=") {
            self.show_references(&RefSelection::glob(pattern.as_bstr()))?;
        } else if let Some(pattern) = option.strip_prefix(b"--exclude=") {
            self.excluded.push(pattern.into());
        } else if let Some(prefix) = option.strip_prefix(b"--disambiguate=") {
            let repository = self.repository()?;
            let ids = repository.objects_with_prefix(prefix.as_bstr())?;
            for id in ids.unwrap_or_default() {
                self.show_revision(false, id, None)?;
            }
        } else if option == "--bisect" {
            let (bad, good) = self.bisect_terms()?;
            self.show_references(&RefSelection::directory(bad).in_full())?;
            self.negated = !self.negated;
            let result = self.show_references(&RefSelection::directory(good).in_full());
            self.negated = !self.negated;
            result?;
        } else {
            for (name, directory) in [
                ("--branches", "refs/heads/"),
                ("--tags", "refs/tags/"),
                ("--remotes", "refs/remotes/"),
            ] {
                if let Some(pattern) = with_value(option, name) {
                    self.show_references(&RefSelection::directory(directory).matching(pattern))?;
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        Ok(true)
    }
}

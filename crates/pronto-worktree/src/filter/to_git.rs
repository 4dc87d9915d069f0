//! Conversion of files to blobs (clean), for `status`, `add` and `hash-object`.

use std::borrow::Cow;
use std::sync::Arc;

use bstr::BStr;
use gix_filter::eol::{convert_to_git, convert_to_git::Options};

use super::encoding::Undecodable;
use super::warning::{EncodingFlaw, LineEnding, Warnings};
use super::{
    Encoding, FilterAnswer, FilterPrograms, FilterWarning, PathConversion, SafeCrlf, Settings,
    ident,
};
use crate::attributes::AttributeStack;
use crate::{Error, ErrorKind};

/// Converts files, one after another. Each thread has its own value; long-running filters end when it
/// is dropped.
pub struct ToGit {
    attributes: AttributeStack,
    settings: Arc<Settings>,
    /// The filter programs, created when the first one is needed.
    programs: Option<FilterPrograms>,
    current: Vec<u8>,
    next: Vec<u8>,
    warnings: Vec<FilterWarning>,
    /// A shared collection of warnings.
    collected: Option<Arc<Warnings>>,
}

/// A callback that reads the blob of the path in the index into a buffer. Returns `false` if there is
/// no blob.
pub type InIndex<'a> = dyn FnMut(&mut Vec<u8>) -> Result<bool, Error> + 'a;

impl ToGit {
    /// Creates a converter. `attributes` must select [`ATTRIBUTES`](super::ATTRIBUTES).
    pub fn new(attributes: AttributeStack, settings: Arc<Settings>) -> Self {
        ToGit {
            attributes,
            settings,
            programs: None,
            current: Vec::new(),
            next: Vec::new(),
            warnings: Vec::new(),
            collected: None,
        }
    }

    /// Adds the warnings about each file to `collected`.
    #[must_use]
    pub fn with_collected(mut self, collected: Arc<Warnings>) -> Self {
        self.collected = Some(collected);
        self
    }

    /// Uses `programs`, whose processes may be running already.
    #[must_use]
    pub fn with_programs(mut self, programs: Option<FilterPrograms>) -> Self {
        self.programs = programs;
        self
    }

    /// Returns the conversion of `path`.
    ///
    /// # Errors
    /// Fails if an attributes file cannot be read, or with `ErrorKind::Filter` if a setting is
    /// malformed.
    pub fn conversion(&mut self, path: &BStr) -> Result<PathConversion, Error> {
        self.settings.check_towards_git()?;
        let states = self.attributes.states(path)?;
        Ok(self.settings.conversion(states))
    }

    /// Returns whether the file `path` becomes a blob unchanged, so that its digest may be computed
    /// while it is read.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Patterns`] if an attributes file cannot be read.
    pub fn keeps(&mut self, path: &BStr) -> Result<bool, Error> {
        Ok(self.conversion(path)?.keeps_towards_git(&self.settings))
    }

    /// Converts the content `file` of the file `path` to that of a blob. `in_index` is called only if
    /// `text=auto` depends on whether the blob in the index has CRLF. Return `Ok(false)` from it to
    /// renormalize (`--renormalize`).
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Filter`] if a required program fails, or the content is not valid in its
    /// `working-tree-encoding`.
    pub fn convert<'a>(
        &'a mut self,
        path: &BStr,
        file: &'a [u8],
        in_index: &mut InIndex<'_>,
    ) -> Result<Cow<'a, [u8]>, Error> {
        let conversion = self.conversion(path)?;
        self.convert_as(path, &conversion, file, in_index)
    }

    /// Does the same as [`convert`](Self::convert), with a [`conversion`](Self::conversion) of `path`
    /// that the caller has already queried.
    ///
    /// # Errors
    /// As for [`convert`](Self::convert).
    pub fn convert_as<'a>(
        &'a mut self,
        path: &BStr,
        conversion: &PathConversion,
        file: &'a [u8],
        in_index: &mut InIndex<'_>,
    ) -> Result<Cow<'a, [u8]>, Error> {
        if conversion.keeps_towards_git(&self.settings) {
            return Ok(Cow::Borrowed(file));
        }
        let changed = self.apply(path, conversion, file, in_index);
        if let Some(collected) = self
            .collected
            .as_ref()
            .filter(|_| !self.warnings.is_empty())
        {
            collected.add(path, self.warnings.drain(..));
        }
        Ok(Cow::Borrowed(if changed? { &self.current } else { file }))
    }

    /// Converts `file` into the buffer. Returns `false` if the content is unchanged.
    fn apply(
        &mut self,
        path: &BStr,
        conversion: &PathConversion,
        file: &[u8],
        in_index: &mut InIndex<'_>,
    ) -> Result<bool, Error> {
        let settings = Arc::clone(&self.settings);
        let mut changed = self.clean(path, file, conversion, &settings)?;
        changed |= self.decode(path, if changed { None } else { Some(file) }, conversion)?;
        let source = if changed { &self.current } else { file };
        if to_lf(
            source,
            conversion,
            &settings,
            &mut self.next,
            &mut self.warnings,
            path,
            in_index,
        )? {
            std::mem::swap(&mut self.current, &mut self.next);
            changed = true;
        }
        let source = if changed { &self.current } else { file };
        if conversion.ident && ident::reduce(source, &mut self.next) {
            std::mem::swap(&mut self.current, &mut self.next);
            changed = true;
        }
        Ok(changed)
    }

    fn clean(
        &mut self,
        path: &BStr,
        file: &[u8],
        conversion: &PathConversion,
        settings: &Settings,
    ) -> Result<bool, Error> {
        let Some(driver) = conversion.driver(settings) else {
            return Ok(false);
        };
        if !driver.acts_towards(super::Direction::ToGit) {
            return Ok(false);
        }
        let programs = self
            .programs
            .get_or_insert_with(|| FilterPrograms::new(settings));
        let asked = programs.clean(path, file, driver, &mut self.current);
        self.warnings.append(&mut programs.take_warnings());
        Ok(matches!(asked?, FilterAnswer::Filtered))
    }

    /// Decodes `file`, or the content of the buffer.
    fn decode(
        &mut self,
        path: &BStr,
        file: Option<&[u8]>,
        conversion: &PathConversion,
    ) -> Result<bool, Error> {
        let source = file.unwrap_or(&self.current);
        let encoding = match &conversion.encoding {
            Encoding::None => return Ok(false),
            Encoding::Boolean => return Err(super::boolean_encoding(path)),
            Encoding::Named(_) if source.is_empty() => return Ok(false),
            Encoding::Named(encoding) => encoding,
        };
        let flaw = match encoding.decode(source, &mut self.next) {
            Ok(()) => {
                std::mem::swap(&mut self.current, &mut self.next);
                return Ok(true);
            }
            Err(Undecodable::MarkProhibited) => EncodingFlaw::MarkProhibited,
            Err(Undecodable::MarkRequired) => EncodingFlaw::MarkRequired,
            Err(Undecodable::Malformed) => EncodingFlaw::Malformed,
        };
        let warning = FilterWarning::NotDecodable {
            path: path.to_owned(),
            encoding: encoding.name().into(),
            flaw,
        };
        if self.settings.tolerates_encodings {
            self.warnings.push(warning);
            return Ok(false);
        }
        let error = Error::new(ErrorKind::Filter, warning.to_string());
        Err(match warning.hint() {
            Some(hint) => error.with_hint(hint),
            None => error,
        })
    }

    /// Frees the memory of conversions beyond `kept_bytes`.
    pub fn shrink(&mut self, kept_bytes: usize) {
        for buffer in [&mut self.current, &mut self.next] {
            if buffer.capacity() > kept_bytes {
                *buffer = Vec::new();
            }
        }
    }

    /// Removes and returns the collected warnings.
    pub fn take_warnings(&mut self) -> Vec<FilterWarning> {
        std::mem::take(&mut self.warnings)
    }
}

impl std::fmt::Debug for ToGit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToGit").finish_non_exhaustive()
    }
}

fn to_lf(
    source: &[u8],
    conversion: &PathConversion,
    settings: &Settings,
    out: &mut Vec<u8>,
    warnings: &mut Vec<FilterWarning>,
    path: &BStr,
    in_index: &mut InIndex<'_>,
) -> Result<bool, Error> {
    let config = settings.eol_configuration();
    let mut failed = None;
    let converted = convert_to_git(
        source,
        conversion.eol,
        out,
        &mut |buffer| {
            Ok(match in_index(buffer) {
                Ok(true) => Some(()),
                Ok(false) => None,
                Err(error) => {
                    failed = Some(error);
                    None
                }
            })
        },
        Options {
            round_trip_check: None,
            config,
        },
    )
    .map_err(|error| Error::new(ErrorKind::Filter, error.to_string()))?;
    if let Some(error) = failed {
        return Err(error);
    }
    if settings.safe_crlf != SafeCrlf::Ignore {
        warn_of_line_endings(source, converted, conversion, settings, warnings, path)?;
    }
    Ok(converted)
}

/// Warns if a checkout would not restore the line endings of the file (`core.safecrlf`).
fn warn_of_line_endings(
    source: &[u8],
    converted: bool,
    conversion: &PathConversion,
    settings: &Settings,
    warnings: &mut Vec<FilterWarning>,
    path: &BStr,
) -> Result<(), Error> {
    let config = settings.eol_configuration();
    let now = gix_filter::eol::Stats::from_bytes(source);
    if conversion.eol.is_auto_text() && now.is_binary() {
        return Ok(());
    }
    let mut after = now;
    if converted {
        after.lone_lf += after.crlf;
        after.crlf = 0;
    }
    if after.will_convert_lf_to_crlf(conversion.eol, config) {
        after.crlf += after.lone_lf;
        after.lone_lf = 0;
    }
    let (lost, kept) = if now.crlf > 0 && after.crlf == 0 {
        (LineEnding::Crlf, LineEnding::Lf)
    } else if now.lone_lf > 0 && after.lone_lf == 0 {
        (LineEnding::Lf, LineEnding::Crlf)
    } else {
        return Ok(());
    };
    if settings.safe_crlf == SafeCrlf::Fail {
        let message = format!("{lost} would be replaced by {kept} in {path}");
        return Err(Error::new(ErrorKind::Filter, message));
    }
    let path = path.to_owned();
    warnings.push(FilterWarning::LineEndings { path, lost, kept });
    Ok(())
}

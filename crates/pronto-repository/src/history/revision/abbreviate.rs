//! Abbreviations of object ids to unique prefixes, and of ref names.

use bstr::{BStr, BString};
use pronto_hash::oid;

use crate::objects::from_odb;
use crate::refs::name;
use crate::{Error, ErrorKind, Repository, Result};

/// The minimum length of abbreviated ids in small repositories, if `core.abbrev` is not set.
pub const DEFAULT_ABBREVIATION: usize = 7;

/// The smallest length that `core.abbrev` and `--abbrev` accept.
const LEAST: usize = 4;

impl Repository {
    /// Returns `id` abbreviated to the configured length (`core.abbrev`), or to more digits if
    /// necessary to be unique.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] or [`ErrorKind::Object`] if the object store cannot be read, or
    /// [`ErrorKind::ConfigValue`] if `core.abbrev` is malformed.
    pub fn abbreviate(&self, id: &oid) -> Result<String> {
        let length = self.abbreviation_length()?;
        self.abbreviate_to(id, length)
    }

    /// Returns `id` abbreviated to `length` digits (at least four), or to more digits if necessary to
    /// be unique.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] or [`ErrorKind::Object`] if the object store cannot be read.
    pub fn abbreviate_to(&self, id: &oid, length: usize) -> Result<String> {
        let length = length.max(LEAST);
        if length >= id.kind().len_in_hex() {
            return Ok(pronto_hash::hex(id).to_string());
        }
        let needed = self
            .objects()?
            .unique_prefix_len(id, length)
            .map_err(from_odb)?;
        Ok(pronto_hash::hex(id)[..needed].to_owned())
    }

    /// Returns the length of abbreviated ids: `core.abbrev`, or a length that depends on the number of
    /// objects.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] or [`ErrorKind::Object`] if the object store cannot be read, or
    /// [`ErrorKind::ConfigValue`] if `core.abbrev` is malformed.
    pub fn abbreviation_length(&self) -> Result<usize> {
        let whole = self.object_hash().len_in_hex();
        if let Some(entry) = self.config().entry_of("core.abbrev") {
            let value = entry.string()?;
            if value.eq_ignore_ascii_case(b"auto") {
                return self.automatic_length();
            }
            if crate::config::value::parse_bool_word(Some(value)) == Some(false) {
                return Ok(whole);
            }
            let length = entry.i32()?;
            if length < LEAST as i32 {
                let message = format!("abbrev length out of range: {length}");
                return Err(Error::new(ErrorKind::ConfigValue, message));
            }
            return Ok((length as usize).min(whole));
        }
        self.automatic_length()
    }

    fn automatic_length(&self) -> Result<usize> {
        let count = self.objects()?.approximate_count().map_err(from_odb)?;
        let bits = (u64::BITS - count.leading_zeros()) as usize;
        Ok(bits.div_ceil(2).max(DEFAULT_ABBREVIATION))
    }

    /// Returns the shortest name that resolves to the ref `full`. With `strict`, no lookup rule may
    /// resolve the name to another ref; otherwise only the rules of higher precedence count
    /// (`core.warnAmbiguousRefs`).
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Reference`] or [`ErrorKind::Io`] if refs cannot be read.
    pub fn shorten_reference(&self, full: &BStr, strict: bool) -> Result<BString> {
        for (at, (before, after)) in name::RULES.iter().enumerate().skip(1).rev() {
            let Some(short) = full
                .strip_prefix(before.as_bytes())
                .and_then(|rest| rest.strip_suffix(after.as_bytes()))
                .filter(|short| !short.is_empty())
            else {
                continue;
            };
            let others = if strict { name::RULES.len() } else { at };
            let mut is_taken = false;
            for (other, (before, after)) in name::RULES.iter().enumerate().take(others) {
                if other == at {
                    continue;
                }
                let name = [before.as_bytes(), short, after.as_bytes()].concat();
                is_taken |= self.refs().find(&name)?.is_some();
            }
            if !is_taken {
                return Ok(short.into());
            }
        }
        Ok(full.to_owned())
    }
}

//! Conversions towards the worktree without a program.

use bstr::BStr;

use super::ident;
use super::{Encoding, FilterWarning, PathConversion, Settings};
use crate::{Error, ErrorKind};

/// Converts blobs, one after another, with reusable buffers. Each thread has its own value.
#[derive(Debug, Default)]
pub struct Internal {
    /// The result of the last conversion. `next` is the buffer for the next one.
    current: Vec<u8>,
    next: Vec<u8>,
    warnings: Vec<FilterWarning>,
}

impl Internal {
    /// Converts the content `blob` of a blob to that of the file `path`, before any filter program.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Filter`] if the attributes name an invalid conversion.
    pub fn to_worktree<'a>(
        &'a mut self,
        path: &BStr,
        blob: &'a [u8],
        conversion: &PathConversion,
        settings: &Settings,
    ) -> Result<&'a [u8], Error> {
        if !conversion.changes_towards_worktree(settings) {
            return Ok(blob);
        }
        let mut changed = false;
        if conversion.ident {
            let header = format!("blob {}\0", blob.len());
            let id = pronto_hash::digest(settings.hash, &[header.as_bytes(), blob]);
            let id = id.map_err(|collision| {
                Error::new(ErrorKind::Filter, collision.to_string()).at_path(path.to_string())
            })?;
            changed = ident::expand(blob, &id, &mut self.current);
        }
        let source = if changed { &self.current } else { blob };
        if crate::filter::to_crlf(source, conversion, settings, &mut self.next, path)? {
            std::mem::swap(&mut self.current, &mut self.next);
            changed = true;
        }
        let source = if changed { &self.current } else { blob };
        match &conversion.encoding {
            Encoding::None => {}
            Encoding::Boolean => return Err(super::boolean_encoding(path)),
            Encoding::Named(_) if source.is_empty() => {}
            Encoding::Named(encoding) => {
                if encoding.encode(source, &mut self.next) {
                    std::mem::swap(&mut self.current, &mut self.next);
                    changed = true;
                } else {
                    self.warnings.push(FilterWarning::NotEncodable {
                        path: path.to_owned(),
                        encoding: encoding.name().into(),
                    });
                }
            }
        }
        Ok(if changed { &self.current } else { blob })
    }

    /// Frees the memory of large files.
    pub fn shrink(&mut self) {
        (self.current, self.next) = (Vec::new(), Vec::new());
    }

    /// Removes and returns the collected warnings.
    pub fn take_warnings(&mut self) -> Vec<FilterWarning> {
        std::mem::take(&mut self.warnings)
    }
}

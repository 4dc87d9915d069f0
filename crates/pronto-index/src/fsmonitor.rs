//! The data of the file system monitor (`FSMN` extension): the token of the monitor, and the
//! entries that must be examined.

use crate::bytes::{take, take_u32, take_u64, take_until};
use crate::error::{Error, corrupt};
use crate::ewah::Bitmap;
use bstr::BString;

/// The content of the extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fsmonitor {
    /// The token for the next query of the monitor. In version 1, a number of nanoseconds.
    pub token: BString,
    /// The positions of the entries that may have changed since the token.
    pub dirty: Bitmap,
}

impl Fsmonitor {
    /// Returns the extension with the monitor's next `token` and the positions of entries that must
    /// be examined, in ascending order.
    pub fn new(token: BString, dirty: impl IntoIterator<Item = u32>) -> Fsmonitor {
        let dirty = Bitmap::new(dirty);
        Fsmonitor { token, dirty }
    }

    /// Appends the encoded content of the extension in version 2, as Git writes it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&2u32.to_be_bytes());
        out.extend_from_slice(&self.token);
        out.push(0);
        let at = out.len();
        out.extend_from_slice(&[0; 4]);
        self.dirty.encode(out);
        let size = (out.len() - at - 4) as u32;
        out[at..at + 4].copy_from_slice(&size.to_be_bytes());
    }

    pub(crate) fn parse(mut data: &[u8], entries: usize) -> Result<Fsmonitor, Error> {
        let short = || corrupt("corrupt fsmonitor extension (too short)");
        let token = match take_u32(&mut data).ok_or_else(short)? {
            1 => take_u64(&mut data).ok_or_else(short)?.to_string().into(),
            2 => take_until(&mut data, 0).ok_or_else(short)?.into(),
            version => return Err(corrupt(format!("bad fsmonitor version {version}"))),
        };
        let size = take_u32(&mut data).ok_or_else(short)? as usize;
        let mut bitmap = take(&mut data, size).ok_or_else(short)?;
        let dirty = Bitmap::parse(&mut bitmap, entries)?;
        Ok(Fsmonitor { token, dirty })
    }
}

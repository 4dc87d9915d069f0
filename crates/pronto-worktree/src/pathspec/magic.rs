//! The magic at the start of a pathspec.

use super::wrong;
use crate::{Error, ErrorKind};
use bstr::{BStr, ByteSlice};

/// The magic of a pathspec.
#[derive(Clone, Copy, Default)]
pub(super) struct Magic {
    pub(super) top: bool,
    pub(super) literal: bool,
    pub(super) glob: bool,
    pub(super) noglob: bool,
    pub(super) icase: bool,
    pub(super) exclude: bool,
}

/// Removes the magic from the start of `spec`.
pub(super) fn parse_magic<'a>(spec: &'a BStr, magic: &mut Magic) -> Result<&'a BStr, Error> {
    let Some(rest) = spec.strip_prefix(b":") else {
        return Ok(spec);
    };
    if let Some(long) = rest.strip_prefix(b"(") {
        let Some(end) = long.find_byte(b')') else {
            return Err(wrong(format!(
                "Missing ')' at the end of pathspec magic in '{spec}'"
            )));
        };
        for word in long[..end].split_str(",").filter(|word| !word.is_empty()) {
            match word {
                b"top" => magic.top = true,
                b"literal" => magic.literal = true,
                b"glob" => magic.glob = true,
                b"icase" => magic.icase = true,
                b"exclude" => magic.exclude = true,
                word if word.starts_with(b"attr:") || word.starts_with(b"prefix:") => {
                    return Err(Error::new(
                        ErrorKind::Unsupported,
                        format!(
                            "pathspec magic '{}' is not implemented natively",
                            word.as_bstr()
                        ),
                    ));
                }
                word => {
                    let word = word.as_bstr();
                    return Err(wrong(format!(
                        "Invalid pathspec magic '{word}' in '{spec}'"
                    )));
                }
            }
        }
        return Ok(long[end + 1..].as_bstr());
    }
    let mut at = 0;
    while let Some(&byte) = rest.get(at) {
        match byte {
            b'/' => magic.top = true,
            b'!' | b'^' => magic.exclude = true,
            b':' => return Ok(rest[at + 1..].as_bstr()),
            // A character that cannot be magic starts the path.
            byte if !byte.is_ascii_punctuation() || b"*?[\\._-+$()|{}".contains(&byte) => break,
            byte => {
                return Err(wrong(format!(
                    "Unimplemented pathspec magic '{}' in '{spec}'",
                    char::from(byte)
                )));
            }
        }
        at += 1;
    }
    Ok(rest[at..].as_bstr())
}

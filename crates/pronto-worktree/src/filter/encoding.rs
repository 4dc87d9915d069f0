//! The attribute `working-tree-encoding`: blobs are UTF-8, and files have the encoding of the
//! attribute.
//!
//! The Unicode encodings and Latin-1 are implemented here, like Git's iconv; the others are those
//! of `encoding_rs`.

use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};

use crate::attributes::AttributeState;

/// The encoding of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Encoding {
    /// The encoding of the blob, without conversion.
    #[default]
    None,
    /// The attribute is set or unset without a value, which Git rejects.
    Boolean,
    /// The encoding with this name.
    Named(Arc<NamedEncoding>),
}

/// An encoding that the attribute names.
#[derive(Debug, PartialEq)]
pub struct NamedEncoding {
    name: BString,
    scheme: EncodingScheme,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum EncodingScheme {
    /// UTF-16 or UTF-32; `unit` is the number of bytes of a code unit.
    Unicode {
        unit: usize,
        order: ByteOrder,
    },
    /// ISO-8859-1: the first 256 characters.
    Latin1,
    Other(&'static gix_filter::encoding::Encoding),
    Unknown,
}

/// The byte order of code units, and whether a byte order mark precedes them.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ByteOrder {
    /// The order that a required byte order mark states; little endian when writing.
    Marked,
    /// Little endian, without a byte order mark.
    Little,
    /// Big endian, without a byte order mark.
    Big,
    /// Little endian, with a byte order mark (`UTF-16LE-BOM`).
    LittleMarked,
}

/// The reason for which a file cannot be decoded.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Undecodable {
    /// A byte order mark is present, although the name of the encoding includes the byte order.
    MarkProhibited,
    /// The byte order mark is missing, although the name of the encoding does not include the byte
    /// order.
    MarkRequired,
    /// The bytes are not valid in the encoding.
    Malformed,
}

impl Encoding {
    pub(super) fn from_state(state: &AttributeState) -> Self {
        match state {
            AttributeState::Unspecified => Encoding::None,
            AttributeState::Set | AttributeState::Unset => Encoding::Boolean,
            AttributeState::Value(name) if name.is_empty() || is_utf8(name) => Encoding::None,
            AttributeState::Value(name) => Encoding::Named(Arc::new(NamedEncoding {
                name: name.as_ref().clone(),
                scheme: EncodingScheme::from_name(name.as_bstr()),
            })),
        }
    }
}

/// Converts `text` from the encoding `from` to the encoding `to`, which have names of `iconv`. Returns
/// `None` if an encoding is unknown, or `text` cannot be converted.
pub fn reencode(text: &[u8], from: &BStr, to: &BStr) -> Option<Vec<u8>> {
    let named =
        |name: &BStr| match Encoding::from_state(&AttributeState::Value(Arc::new(name.to_owned())))
        {
            Encoding::Named(named) => Some(named),
            _ => None,
        };
    let mut decoded = Vec::new();
    match named(from) {
        Some(from) => from.decode(text, &mut decoded).ok()?,
        None => decoded.extend_from_slice(text),
    }
    let Some(to) = named(to) else {
        return Some(decoded);
    };
    let mut encoded = Vec::new();
    to.encode(&decoded, &mut encoded).then_some(encoded)
}

fn is_utf8(name: &BString) -> bool {
    name.eq_ignore_ascii_case(b"utf-8") || name.eq_ignore_ascii_case(b"utf8")
}

impl EncodingScheme {
    fn from_name(name: &BStr) -> Self {
        let lower = name.to_ascii_lowercase();
        let unicode = |unit, order| EncodingScheme::Unicode { unit, order };
        let rest = lower
            .strip_prefix(b"utf-")
            .or_else(|| lower.strip_prefix(b"utf"));
        match rest {
            Some(b"16") => unicode(2, ByteOrder::Marked),
            Some(b"16le") => unicode(2, ByteOrder::Little),
            Some(b"16be") => unicode(2, ByteOrder::Big),
            Some(b"16le-bom") => unicode(2, ByteOrder::LittleMarked),
            Some(b"32") => unicode(4, ByteOrder::Marked),
            Some(b"32le") => unicode(4, ByteOrder::Little),
            Some(b"32be") => unicode(4, ByteOrder::Big),
            _ => match lower.as_slice() {
                b"iso-8859-1" | b"iso8859-1" | b"iso_8859-1" | b"latin1" | b"latin-1" | b"l1" => {
                    EncodingScheme::Latin1
                }
                _ => gix_filter::encoding::Encoding::for_label(&lower)
                    .map_or(EncodingScheme::Unknown, EncodingScheme::Other),
            },
        }
    }
}

impl NamedEncoding {
    /// Returns the name as the attribute spells it.
    pub fn name(&self) -> &BStr {
        self.name.as_bstr()
    }

    /// Encodes a blob for the worktree. Returns `false` if that is not possible.
    pub(super) fn encode(&self, blob: &[u8], out: &mut Vec<u8>) -> bool {
        out.clear();
        let Ok(text) = blob.to_str() else {
            return false;
        };
        match self.scheme {
            EncodingScheme::Unicode { unit, order } => {
                let big = order == ByteOrder::Big;
                if matches!(order, ByteOrder::Marked | ByteOrder::LittleMarked) {
                    put(u32::from('\u{feff}'), unit, big, out);
                }
                for character in text.chars() {
                    if unit == 4 {
                        put(u32::from(character), 4, big, out);
                        continue;
                    }
                    for half in character.encode_utf16(&mut [0; 2]) {
                        put(u32::from(*half), 2, big, out);
                    }
                }
                true
            }
            EncodingScheme::Latin1 => text.chars().all(|character| {
                u8::try_from(u32::from(character))
                    .map(|byte| out.push(byte))
                    .is_ok()
            }),
            EncodingScheme::Other(encoding) => {
                let (bytes, _, unmappable) = encoding.encode(text);
                out.extend_from_slice(&bytes);
                !unmappable
            }
            EncodingScheme::Unknown => false,
        }
    }

    /// Decodes a file for Git.
    pub(super) fn decode(&self, file: &[u8], out: &mut Vec<u8>) -> Result<(), Undecodable> {
        out.clear();
        match self.scheme {
            EncodingScheme::Unicode { unit, order } => decode_unicode(file, unit, order, out),
            EncodingScheme::Latin1 => {
                let characters = file.iter().map(|byte| char::from(*byte));
                out.extend(characters.collect::<String>().into_bytes());
                Ok(())
            }
            EncodingScheme::Other(encoding) => {
                let text = encoding
                    .decode_without_bom_handling_and_without_replacement(file)
                    .ok_or(Undecodable::Malformed)?;
                out.extend_from_slice(text.as_bytes());
                Ok(())
            }
            EncodingScheme::Unknown => Err(Undecodable::Malformed),
        }
    }
}

fn put(value: u32, unit: usize, big: bool, out: &mut Vec<u8>) {
    if big {
        out.extend_from_slice(&value.to_be_bytes()[4 - unit..]);
    } else {
        out.extend_from_slice(&value.to_le_bytes()[..unit]);
    }
}

fn get(bytes: &[u8], big: bool) -> u32 {
    let shift = |value: u32, byte: &u8| (value << 8) | u32::from(*byte);
    if big {
        bytes.iter().fold(0, shift)
    } else {
        bytes.iter().rev().fold(0, shift)
    }
}

fn decode_unicode(
    file: &[u8],
    unit: usize,
    order: ByteOrder,
    out: &mut Vec<u8>,
) -> Result<(), Undecodable> {
    let mark = u32::from('\u{feff}');
    let first = file.get(..unit);
    let little_mark = first.is_some_and(|first| get(first, false) == mark);
    let big_mark = first.is_some_and(|first| get(first, true) == mark);
    let (big, skip) = match order {
        ByteOrder::Little | ByteOrder::Big if little_mark || big_mark => {
            return Err(Undecodable::MarkProhibited);
        }
        ByteOrder::Little => (false, 0),
        ByteOrder::Big => (true, 0),
        ByteOrder::Marked | ByteOrder::LittleMarked if little_mark => (false, unit),
        ByteOrder::Marked if big_mark => (true, unit),
        ByteOrder::Marked => return Err(Undecodable::MarkRequired),
        ByteOrder::LittleMarked => (false, 0),
    };
    let units = file[skip..].chunks(unit);
    if !file.len().is_multiple_of(unit) {
        return Err(Undecodable::Malformed);
    }
    let mut push = |character: char| {
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    };
    if unit == 4 {
        for bytes in units {
            push(char::from_u32(get(bytes, big)).ok_or(Undecodable::Malformed)?);
        }
        return Ok(());
    }
    for character in char::decode_utf16(units.map(|bytes| get(bytes, big) as u16)) {
        push(character.map_err(|_| Undecodable::Malformed)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Arc<NamedEncoding> {
        match Encoding::from_state(&AttributeState::Value(Arc::new(name.into()))) {
            Encoding::Named(named) => named,
            other => panic!("{name} is {other:?}"),
        }
    }

    #[test]
    fn encodings_go_there_and_back() {
        let text = "héllo ☺ 𝄞\n";
        for name in [
            "UTF-16",
            "utf16le",
            "UTF-16BE",
            "UTF-16LE-BOM",
            "UTF-32",
            "UTF-32BE",
            "gb18030",
        ] {
            let encoding = named(name);
            let (mut file, mut blob) = (Vec::new(), Vec::new());
            assert!(encoding.encode(text.as_bytes(), &mut file), "{name}");
            assert_eq!(encoding.decode(&file, &mut blob), Ok(()), "{name}");
            assert_eq!(blob.as_bstr(), text, "{name}");
        }
        let mut out = Vec::new();
        assert!(named("UTF-16").encode(b"a", &mut out));
        assert_eq!(out, [0xff, 0xfe, b'a', 0]);
        assert!(named("latin1").encode("é".as_bytes(), &mut out));
        assert_eq!(out, [0xe9]);
        assert!(!named("latin1").encode("☺".as_bytes(), &mut out));
        assert!(!named("no-such-thing").encode(b"a", &mut out));
    }

    #[test]
    fn marks_are_demanded_and_forbidden_as_the_name_says() {
        let mut out = Vec::new();
        assert_eq!(
            named("UTF-16").decode(b"a\0", &mut out),
            Err(Undecodable::MarkRequired)
        );
        let marked = [0xff, 0xfe, b'a', 0];
        assert_eq!(
            named("UTF-16LE").decode(&marked, &mut out),
            Err(Undecodable::MarkProhibited)
        );
        assert_eq!(
            named("UTF-16LE").decode(b"a\0b", &mut out),
            Err(Undecodable::Malformed)
        );
        assert_eq!(
            named("UTF-16LE").decode(b"\0\xd8", &mut out),
            Err(Undecodable::Malformed)
        );
    }
}

//! The fields that `ls-tree` shows of each entry.

use bstr::{BStr, BString, ByteSlice};

use crate::CliError;

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TreeFormatPiece {
    Text(BString),
    Mode,
    Type,
    Name,
    Size { padded: bool },
    Path,
}

/// The parts of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TreeFormat {
    pub(super) pieces: Vec<TreeFormatPiece>,
}

fn space() -> TreeFormatPiece {
    TreeFormatPiece::Text(" ".into())
}

impl TreeFormat {
    pub(super) fn ordinary() -> Self {
        let tab = TreeFormatPiece::Text("\t".into());
        let pieces = vec![
            TreeFormatPiece::Mode,
            space(),
            TreeFormatPiece::Type,
            space(),
            TreeFormatPiece::Name,
            tab,
            TreeFormatPiece::Path,
        ];
        TreeFormat { pieces }
    }

    pub(super) fn long() -> Self {
        let mut format = Self::ordinary();
        format
            .pieces
            .splice(5..5, [space(), TreeFormatPiece::Size { padded: true }]);
        format
    }

    pub(super) fn name_only() -> Self {
        TreeFormat {
            pieces: vec![TreeFormatPiece::Path],
        }
    }

    pub(super) fn object_only() -> Self {
        TreeFormat {
            pieces: vec![TreeFormatPiece::Name],
        }
    }

    /// Parses a format given by the user.
    pub(super) fn parse(text: &BStr) -> Result<Self, CliError> {
        let mut pieces = Vec::new();
        let mut rest = text.as_bytes();
        while let Some(at) = rest.find_byte(b'%') {
            if at > 0 {
                pieces.push(TreeFormatPiece::Text(rest[..at].into()));
            }
            rest = &rest[at + 1..];
            let (piece, length) = parse_element(rest)?;
            pieces.push(piece);
            rest = &rest[length..];
        }
        if !rest.is_empty() {
            pieces.push(TreeFormatPiece::Text(rest.into()));
        }
        Ok(TreeFormat { pieces })
    }
}

/// Parses the text after a percent sign, and returns its length.
fn parse_element(text: &[u8]) -> Result<(TreeFormatPiece, usize), CliError> {
    let literal = |byte: u8, length| Ok((TreeFormatPiece::Text(vec![byte].into()), length));
    let bad = |what: String| Err(CliError::fatal(format!("bad ls-tree format: {what}")));
    let shown = text.as_bstr();
    match text {
        [b'%', ..] => return literal(b'%', 1),
        [b'n', ..] => return literal(b'\n', 1),
        [b'x', high, low, ..] => {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            if let (Some(high), Some(low)) = (digit(*high), digit(*low)) {
                return literal((high * 16 + low) as u8, 3);
            }
        }
        _ => {}
    }
    if !text.starts_with(b"(") {
        return bad(format!("element '{shown}' does not start with '('"));
    }
    let Some(end) = text.find_byte(b')') else {
        return bad(format!("element '{shown}' does not end in ')'"));
    };
    let piece = match &text[1..end] {
        b"objectmode" => TreeFormatPiece::Mode,
        b"objecttype" => TreeFormatPiece::Type,
        b"objectname" => TreeFormatPiece::Name,
        b"objectsize" => TreeFormatPiece::Size { padded: false },
        b"objectsize:padded" => TreeFormatPiece::Size { padded: true },
        b"path" => TreeFormatPiece::Path,
        _ => return bad(format!("%{}", text[..=end].as_bstr())),
    };
    Ok((piece, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_taken_apart() {
        let format = TreeFormat::parse("a%x09%(path)%%%n".into()).expect("well formed");
        let text = |text: &str| TreeFormatPiece::Text(text.into());
        let pieces = [
            text("a"),
            text("\t"),
            TreeFormatPiece::Path,
            text("%"),
            text("\n"),
        ];
        assert_eq!(format.pieces, pieces);
        for broken in ["%", "%(path", "%(nothing)", "%x0"] {
            assert!(TreeFormat::parse(broken.into()).is_err(), "{broken}");
        }
    }
}

//! The format of a line of `--batch` and similar options.

use pronto_hash::ObjectId;

use crate::CliError;

/// The default format.
pub(super) const DEFAULT_FORMAT: &str = "%(objectname) %(objecttype) %(objectsize)";

/// A parsed format.
#[derive(Debug)]
pub(super) struct BatchFormat {
    parts: Vec<FormatPart>,
}

#[derive(Debug, PartialEq, Eq)]
enum FormatPart {
    Text(Vec<u8>),
    Name,
    Kind,
    Size,
    SizeOnDisk,
    DeltaBase,
    Mode,
    Rest,
}

/// The properties of an object. Fields that the format does not use have arbitrary values.
#[derive(Clone, Copy, Debug)]
pub(super) struct ObjectDetails<'a> {
    pub(super) id: ObjectId,
    pub(super) kind: Option<gix_object::Kind>,
    pub(super) size: u64,
    pub(super) size_on_disk: u64,
    pub(super) delta_base: Option<ObjectId>,
    pub(super) mode: Option<u32>,
    pub(super) rest: &'a [u8],
}

impl ObjectDetails<'_> {
    /// Creates properties with only the id.
    pub(super) fn of(id: ObjectId) -> Self {
        ObjectDetails {
            id,
            kind: None,
            size: 0,
            size_on_disk: 0,
            delta_base: None,
            mode: None,
            rest: b"",
        }
    }
}

impl BatchFormat {
    /// Parses the format `text`.
    pub(super) fn parse(text: &str) -> Result<BatchFormat, CliError> {
        let mut parts = Vec::new();
        let mut literal = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find('%') {
            literal.extend_from_slice(&rest.as_bytes()[..at]);
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix('(') {
                let Some((atom, after)) = after.split_once(')') else {
                    return Err(CliError::fatal(format!(
                        "bad cat-file format: element '{rest}' does not end in ')'"
                    )));
                };
                if !literal.is_empty() {
                    parts.push(FormatPart::Text(std::mem::take(&mut literal)));
                }
                parts.push(part(atom)?);
                rest = after;
            } else {
                literal.push(b'%');
                rest = rest.strip_prefix('%').unwrap_or(rest);
            }
        }
        literal.extend_from_slice(rest.as_bytes());
        if !literal.is_empty() {
            parts.push(FormatPart::Text(literal));
        }
        Ok(BatchFormat { parts })
    }

    fn has(&self, part: &FormatPart) -> bool {
        self.parts.contains(part)
    }

    /// Returns whether the format needs the type or the size.
    pub(super) fn needs_header(&self) -> bool {
        self.has(&FormatPart::Kind) || self.has(&FormatPart::Size)
    }

    /// Returns whether the format needs the disk size or the delta base.
    pub(super) fn needs_details(&self) -> bool {
        self.has(&FormatPart::SizeOnDisk) || self.has(&FormatPart::DeltaBase)
    }

    /// Returns whether a line of input is split into a name and the text for `%(rest)`.
    pub(super) fn splits_input(&self) -> bool {
        self.has(&FormatPart::Rest)
    }

    /// Appends the line for `known` to `out`, without a line end.
    pub(super) fn expand(&self, known: &ObjectDetails<'_>, out: &mut Vec<u8>) {
        for part in &self.parts {
            match part {
                FormatPart::Text(text) => out.extend_from_slice(text),
                FormatPart::Name => push_id(&known.id, out),
                FormatPart::Kind => {
                    if let Some(kind) = known.kind {
                        out.extend_from_slice(kind.as_bytes());
                    }
                }
                FormatPart::Size => push_number(known.size, out),
                FormatPart::SizeOnDisk => push_number(known.size_on_disk, out),
                FormatPart::DeltaBase => {
                    let none = known.id.kind().null();
                    push_id(known.delta_base.as_ref().unwrap_or(&none), out);
                }
                FormatPart::Mode => {
                    if let Some(mode) = known.mode {
                        out.extend_from_slice(format!("{mode:06o}").as_bytes());
                    }
                }
                FormatPart::Rest => out.extend_from_slice(known.rest),
            }
        }
    }
}

fn part(atom: &str) -> Result<FormatPart, CliError> {
    Ok(match atom {
        "objectname" => FormatPart::Name,
        "objecttype" => FormatPart::Kind,
        "objectsize" => FormatPart::Size,
        "objectsize:disk" => FormatPart::SizeOnDisk,
        "deltabase" => FormatPart::DeltaBase,
        "objectmode" => FormatPart::Mode,
        "rest" => FormatPart::Rest,
        other => {
            let message = format!("bad cat-file format: %({other})");
            return Err(CliError::fatal(message));
        }
    })
}

pub(super) fn push_id(id: &ObjectId, out: &mut Vec<u8>) {
    out.extend_from_slice(pronto_hash::hex(id).as_bytes());
}

fn push_number(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(format: &str) -> String {
        let known = ObjectDetails {
            id: pronto_hash::Kind::Sha1.empty_blob(),
            kind: Some(gix_object::Kind::Blob),
            size: 0,
            size_on_disk: 1_234_567,
            delta_base: None,
            mode: Some(0o100_644),
            rest: b"the rest",
        };
        let mut out = Vec::new();
        BatchFormat::parse(format)
            .expect("a format")
            .expand(&known, &mut out);
        String::from_utf8(out).expect("it is text")
    }

    #[test]
    fn everything_is_expanded() {
        assert_eq!(
            expand(DEFAULT_FORMAT),
            "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391 blob 0"
        );
        assert_eq!(
            expand("%%(x) %d %(objectsize:disk)|%(rest)|%(objectmode)%"),
            "%(x) %d 1234567|the rest|100644%"
        );
        assert_eq!(expand("%(deltabase)"), "0".repeat(40));
    }

    #[test]
    fn what_is_no_element_is_refused() {
        let message = |format| BatchFormat::parse(format).expect_err("wrong").messages()[0].clone();
        assert_eq!(message("%(foo)"), "bad cat-file format: %(foo)");
        assert_eq!(
            message("x%(objectname"),
            "bad cat-file format: element '(objectname' does not end in ')'"
        );
    }
}

//! Incremental multi-pack-indexes: chains in which each layer covers packs that the layers below do
//! not. Format: Git's technical documentation of the multi-pack-index.

use std::path::{Path, PathBuf};

use pronto_hash::Kind;
use pronto_io::error::IoContext as _;

use crate::error::{Error, ErrorKind};

/// Returns the files of the chain in `directory`, a directory of packs, lowest layer first; empty
/// if there is no chain. The lines from the first line that is not an id are skipped, and the
/// returned error names this line.
///
/// # Errors
/// Fails with `ErrorKind::Io` if the list exists and cannot be read, and with
/// `ErrorKind::Truncated` if it is too short for an id.
pub fn files(directory: &Path, kind: Kind) -> Result<(Vec<PathBuf>, Option<Error>), Error> {
    let directory = directory.join("multi-pack-index.d");
    let path = directory.join("multi-pack-index-chain");
    let text = match pronto_io::untrusted::content(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok((Vec::new(), None));
        }
        Err(error) => return Err(error).context(ErrorKind::Io, "cannot read", &path),
    };
    parse(&text, &directory, kind).map_err(|error| error.at_path(&path))
}

/// Does the same as [`files`] for the content of the list.
///
/// # Errors
/// Fails as [`files`] does.
pub fn parse(
    text: &[u8],
    directory: &Path,
    kind: Kind,
) -> Result<(Vec<PathBuf>, Option<Error>), Error> {
    let hex_len = kind.len_in_hex();
    if text.is_empty() {
        return Ok((Vec::new(), None));
    }
    if text.len() < hex_len {
        let message = "multi-pack-index chain file too small";
        return Err(Error::new(ErrorKind::Truncated, message));
    }
    let mut files = Vec::new();
    for line in text
        .split(|byte| *byte == b'\n')
        .take(text.len() / (hex_len + 1))
    {
        match pronto_hash::parse_hex(line)
            .ok()
            .filter(|id| id.kind() == kind)
        {
            Some(id) => files.push(directory.join(format!("multi-pack-index-{id}.midx"))),
            None => {
                let line = String::from_utf8_lossy(line);
                let message = format!("invalid multi-pack-index chain: line '{line}' not a hash");
                return Ok((files, Some(Error::new(ErrorKind::Corrupt, message))));
            }
        }
    }
    Ok((files, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_far_as_they_make_sense() {
        let directory = Path::new("d");
        let (one, two) = ("1".repeat(40), "2".repeat(40));
        let parse = |text: &str| parse(text.as_bytes(), directory, Kind::Sha1);
        let (files, error) = parse(&format!("{one}\n{two}\n")).expect("well formed");
        assert!(error.is_none());
        assert_eq!(
            files[0],
            directory.join(format!("multi-pack-index-{one}.midx"))
        );
        assert_eq!(files.len(), 2);
        let (files, error) =
            parse(&format!("{one}\nnonsense{}\n{two}\n", "x".repeat(32))).expect("read");
        assert_eq!(files.len(), 1);
        assert_eq!(
            error.expect("the second line is wrong").message(),
            format!(
                "invalid multi-pack-index chain: line 'nonsense{}' not a hash",
                "x".repeat(32)
            )
        );
        assert!(parse("short").is_err());
        assert_eq!(parse("").expect("nothing").0, Vec::<PathBuf>::new());
    }
}

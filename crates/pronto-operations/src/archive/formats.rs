//! The formats of archives: tar and zip, and tar through a program (`tar.<format>.command`).

use bstr::{BStr, BString, ByteSlice};

use crate::config::Config;
use crate::{Error, ErrorKind, Result};

/// The value of `tar.FORMAT.command` that selects the built-in compression.
const INTERNAL_GZIP: &[u8] = b"git archive gzip";

/// The highest compression level of zlib.
const HIGHEST_LEVEL: u32 = 9;

/// The method by which an archive is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Method {
    /// POSIX tar, with pax headers where the fields of ustar do not suffice.
    #[default]
    Tar,
    /// POSIX tar, compressed with gzip.
    Gzip,
    /// POSIX tar, piped through this shell command (`tar.FORMAT.command`).
    Command(BString),
    Zip,
}

/// The format of an archive. The default is tar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveFormat {
    name: BString,
    pub(super) method: Method,
    is_remote: bool,
}

impl Default for ArchiveFormat {
    fn default() -> Self {
        ArchiveFormat::built_in("tar", Method::Tar)
    }
}

impl ArchiveFormat {
    fn built_in(name: &str, method: Method) -> Self {
        ArchiveFormat {
            name: name.into(),
            method,
            is_remote: true,
        }
    }

    /// Returns the name of the format.
    pub fn name(&self) -> &BStr {
        self.name.as_bstr()
    }

    /// Returns whether remote clients may request this format (`tar.FORMAT.remote`).
    pub fn is_remote(&self) -> bool {
        self.is_remote
    }

    /// Checks a compression level.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::InvalidInput`] and Git's message if the format does not have the
    /// level.
    pub fn check_level(&self, level: u32) -> Result<()> {
        let message = match self.method {
            Method::Zip if level <= HIGHEST_LEVEL => return Ok(()),
            Method::Command(_) => return Ok(()),
            Method::Gzip if level <= HIGHEST_LEVEL => return Ok(()),
            Method::Gzip => "deflateInit2: stream consistency error (no message)".to_owned(),
            Method::Tar | Method::Zip => format!(
                "Argument not supported for format '{}': -{level}",
                self.name
            ),
        };
        Err(Error::new(ErrorKind::InvalidInput, message))
    }
}

/// All formats, in the order in which Git lists them. Costs one iteration over the configuration.
#[derive(Clone, Debug)]
pub struct Formats(Vec<ArchiveFormat>);

/// A tar filter, while the configuration is read.
struct TarFilter {
    name: BString,
    command: Option<BString>,
    is_remote: bool,
}

impl Formats {
    /// Returns the built-in and the configured formats.
    ///
    /// # Errors
    /// Fails with `ErrorKind::ConfigValue` if a setting has an invalid value, and with
    /// `ErrorKind::Unsupported` if a command lacks a value.
    pub fn configured(config: &Config) -> Result<Self> {
        let gzip = |name: &str| TarFilter {
            name: name.into(),
            command: Some(INTERNAL_GZIP.into()),
            is_remote: true,
        };
        let mut filters = vec![gzip("tgz"), gzip("tar.gz")];
        for entry in config.iter() {
            let Some(rest) = entry.key.strip_prefix(b"tar.") else {
                continue;
            };
            let Some((name, variable)) = rest.rsplit_once_str(".") else {
                continue;
            };
            let known = filters.iter().position(|filter| filter.name == name);
            let at = known.unwrap_or_else(|| {
                filters.push(TarFilter {
                    name: name.into(),
                    command: None,
                    is_remote: false,
                });
                filters.len() - 1
            });
            match variable {
                b"command" => {
                    let missing = || super::unsupported("tar.<format>.command without a value");
                    filters[at].command = Some(entry.value.ok_or_else(missing)?.to_owned());
                }
                b"remote" => filters[at].is_remote = entry.bool()?,
                _ => {}
            }
        }
        let filters = filters.into_iter().filter_map(|filter| {
            let command = filter.command?;
            Some(ArchiveFormat {
                name: filter.name,
                method: match command == INTERNAL_GZIP {
                    true => Method::Gzip,
                    false => Method::Command(command),
                },
                is_remote: filter.is_remote,
            })
        });
        let mut formats = vec![ArchiveFormat::default()];
        formats.extend(filters);
        formats.push(ArchiveFormat::built_in("zip", Method::Zip));
        Ok(Formats(formats))
    }

    /// Returns the formats, in the order of `--list`.
    pub fn iter(&self) -> impl Iterator<Item = &ArchiveFormat> {
        self.0.iter()
    }

    /// Returns the format called `name`.
    pub fn find(&self, name: &BStr) -> Option<&ArchiveFormat> {
        self.iter().find(|format| format.name == name)
    }

    /// Returns the format that the extension of a file name selects (`--output`).
    pub fn of_file(&self, file: &BStr) -> Option<&ArchiveFormat> {
        self.iter().find(|format| {
            let rest = file.strip_suffix(format.name.as_slice());
            rest.is_some_and(|rest| rest.len() > 1 && rest.ends_with(b"."))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_of_files_say_the_format() {
        let formats = Formats::configured(&Config::default()).expect("nothing is configured");
        let name = |file: &str| formats.of_file(file.into()).map(|format| format.name());
        assert_eq!(name("a.tar.gz"), Some("tar.gz".into()));
        assert_eq!(name("a.zip"), Some("zip".into()));
        for file in ["zip", ".zip", "azip", "a.zip.x", ""] {
            assert_eq!(name(file), None, "{file}");
        }
    }
}

//! The manual: the pages of `docs/man`, which the program contains in compressed form.
//!
//! Only [`ManualArchive::open`] touches the archive. `build.rs` makes it.

mod page;

pub(crate) use page::{PageLook, render};

/// The largest size of the archive without compression.
const SIZE_LIMIT_BYTES: usize = 4 << 20;

/// The manual pages as sources for `man`, and the names of the configuration variables.
#[derive(Debug)]
pub(crate) struct ManualArchive(String);

impl ManualArchive {
    /// Decompresses the archive, which takes about a millisecond.
    pub(crate) fn open() -> Self {
        let archive = include_bytes!(concat!(env!("OUT_DIR"), "/manual.bin"));
        let bytes = miniz_oxide::inflate::decompress_to_vec_with_limit(archive, SIZE_LIMIT_BYTES);
        // The archive is a part of the program. A damaged program has no manual.
        let text = bytes.unwrap_or_default();
        ManualArchive(String::from_utf8(text).unwrap_or_default())
    }

    /// Returns the source of the manual page `name`, such as `pronto-add`.
    pub(crate) fn page(&self, name: &str) -> Option<&str> {
        self.parts()
            .find(|(found, _)| *found == name)
            .map(|(_, text)| text)
    }

    /// Returns the names of the configuration variables: `core.pager`, `branch.<name>.remote`.
    pub(crate) fn settings(&self) -> impl Iterator<Item = &str> {
        self.page("settings").unwrap_or_default().lines()
    }

    /// Returns the parts of the archive, with their names.
    fn parts(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut rest = self.0.as_str();
        std::iter::from_fn(move || {
            let (name, after) = rest.split_once('\n')?;
            let (length, after) = after.split_once('\n')?;
            let (text, after) = after.split_at_checked(length.parse().ok()?)?;
            rest = after;
            Some((name, text))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::COMMANDS;

    #[test]
    fn every_native_command_has_a_page() {
        let archive = ManualArchive::open();
        for command in COMMANDS {
            let name = format!("pronto-{}", command.name);
            let page = archive.page(&name).expect(&name);
            assert!(page.starts_with(".TH "), "{name}");
        }
        assert!(archive.page("pronto").is_some());
        assert!(archive.page("pronto-stroe").is_none());
        assert!(archive.settings().any(|name| name == "core.pager"));
    }
}

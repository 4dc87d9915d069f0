//! Downloads the bundles that the user (`--bundle-uri`) or the server names before the fetch.

use bstr::{BString, ByteSlice};
use pronto_io::progress::ProgressMessage;
use pronto_wire::client::FetchClient;

use super::CloneRun;
use crate::bundle_uri::{self, BundleList};
use crate::config::edit::set_in_file;
use crate::remote::connection::from_wire;
use crate::{Repository, Result};

impl CloneRun<'_> {
    /// Downloads the bundles of `--bundle-uri`, or else those that the server advertises if
    /// `transfer.bundleURI` allows them.
    ///
    /// # Errors
    /// Fails if the operation is interrupted, the connection breaks, a setting is malformed, or the
    /// settings for later fetches (`fetch.bundleURI`, `fetch.bundleCreationToken`) cannot be
    /// written.
    pub(super) fn take_bundles(
        &self,
        client: &mut FetchClient,
        repository: &Repository,
    ) -> Result<()> {
        match &self.options.bundle_uri {
            Some(uri) => self.take_named(uri, repository),
            None if self.config.bool_or("transfer.bundleuri", false)? => {
                self.take_offered(client, repository)
            }
            None => Ok(()),
        }
    }

    fn take_named(&self, uri: &BString, repository: &Repository) -> Result<()> {
        let taken = bundle_uri::fetch(repository, uri.as_bstr(), self.watch)?;
        if !taken.succeeded {
            self.warn(&format!("failed to fetch objects from bundle URI '{uri}'"));
        } else if taken.has_heuristic {
            let file = repository.git_dir().join("config");
            set_in_file(&file, "fetch.bundleuri", uri.as_bstr(), repository.config())?;
        }
        Ok(())
    }

    fn take_offered(&self, client: &mut FetchClient, repository: &Repository) -> Result<()> {
        let lines = client
            .bundle_lines(&self.options.server_options)
            .map_err(from_wire)?;
        let url = self.address();
        let list = match BundleList::parse_lines(&lines, url.as_bstr()) {
            Ok(list) => list,
            Err(bad) => {
                let progress = self.watch.progress();
                progress.message(ProgressMessage::Error(&bad.to_string()));
                let message = "could not retrieve server-advertised bundle-uri list";
                progress.message(ProgressMessage::Error(message));
                return Ok(());
            }
        };
        if list.entries.is_empty() {
            return Ok(());
        }
        if !bundle_uri::fetch_list(repository, &list, url.as_bstr(), self.watch)? {
            self.warn("failed to fetch advertised bundles");
        }
        Ok(())
    }

    fn warn(&self, text: &str) {
        self.watch
            .progress()
            .message(ProgressMessage::Warning(text));
    }
}

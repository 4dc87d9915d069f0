//! Drops the options that have no effect on bundles.

use pronto_io::progress::ProgressMessage;
use pronto_wire::client::FetchClient;

use super::FetchRun;
use crate::Result;

impl FetchRun<'_> {
    /// Drops the limits of a shallow history if `client` reads a bundle, and warns of all options
    /// without effect. The names are those of Git's transport options.
    pub(super) fn ignore_options(&mut self, client: &FetchClient) -> Result<()> {
        if client.bundle().is_none() {
            return Ok(());
        }
        let options = self.options;
        let deepen = std::mem::take(&mut self.deepen);
        let configured = self.remote.partial_clone_filter.as_ref();
        let has_filter = options.filter.is_some() || configured.is_some_and(|_| !options.no_filter);
        let given = [
            ("uploadpack", options.settings.upload_pack.is_some()),
            ("keep", options.keep),
            ("depth", deepen.depth.is_some()),
            ("deepen-since", deepen.since.is_some()),
            ("deepen-not", !deepen.not.is_empty()),
            ("deepen-relative", deepen.relative),
            ("updateshallow", options.update_shallow),
            ("refetch", options.refetch),
            ("filter", has_filter),
            ("from-promisor", has_filter),
        ];
        let url = self.remote.url()?;
        for (name, _) in given.iter().filter(|(_, is_given)| *is_given) {
            let warning = format!("option \"{name}\" is ignored for {url}");
            self.watch
                .progress()
                .message(ProgressMessage::Warning(&warning));
        }
        Ok(())
    }
}

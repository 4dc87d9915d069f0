//! Directories, templates and configuration of the new repository.

use std::fs;

use bstr::{BStr, ByteSlice};
use pronto_io::error::IoContext;
use pronto_wire::client::Client;

use super::Work;
use super::heads::Heads;
use super::place::Place;
use super::skeleton::{self, ConfigText};
use crate::{ErrorKind, Result, repository};

impl Work<'_> {
    /// Directories, templates and configuration.
    pub(super) fn make_repository(
        &self,
        client: &Client,
        heads: &Heads<'_>,
        place: &Place,
    ) -> Result<()> {
        let options = self.options;
        let template = options.template.as_deref();
        let template = skeleton::template(template, &self.config, self.environment)?;
        skeleton::make(&place.partial, template.as_deref(), self.environment)?;
        let file = place.partial.join("config");
        let mut text = ConfigText::new(fs::read(&file).unwrap_or_default());
        let hash = client.object_format();
        let filter = self.filter(client);
        let is_newer = hash != pronto_hash::Kind::Sha1 || filter.is_some();
        let version = if is_newer { "1" } else { "0" };
        text.set("core", None, "repositoryformatversion", version.into());
        text.set("core", None, "filemode", "true".into());
        let bare = if options.is_bare() { "true" } else { "false" };
        text.set("core", None, "bare", bare.into());
        if !options.is_bare() {
            text.set("core", None, "logallrefupdates", "true".into());
        }
        for setting in &options.config {
            let (section, subsection, name, value) = skeleton::split_setting(setting.as_bstr())?;
            let subsection = subsection.as_ref().map(|name| name.as_bstr());
            text.add(&section, subsection, &name, value.as_bstr());
        }
        let origin = Some(self.origin.as_bstr());
        text.add("remote", origin, "url", self.source.url.as_bstr());
        if !options.tags && !options.mirror {
            text.add("remote", origin, "tagOpt", "--no-tags".into());
        }
        if hash != pronto_hash::Kind::Sha1 {
            text.set(
                "extensions",
                None,
                "objectformat",
                repository::hash_name(hash).into(),
            );
        }
        if let Some(refspec) = heads.refspec(self) {
            text.add("remote", origin, "fetch", refspec.as_bstr());
            if options.mirror {
                text.add("remote", origin, "mirror", "true".into());
            }
        }
        if let Some(filter) = filter {
            text.add("remote", origin, "promisor", "true".into());
            text.add("remote", origin, "partialclonefilter", filter.as_bstr());
        }
        if let Some(branch) = heads.branch().filter(|_| !options.is_bare()) {
            let full = [b"refs/heads/", branch.as_bytes()].concat();
            text.set("branch", Some(branch), "remote", self.origin.as_bstr());
            text.set("branch", Some(branch), "merge", full.as_bstr());
            self.set_rebase(&mut text, branch)?;
        }
        fs::write(&file, text.bytes()).context(ErrorKind::Io, "could not write", &file)?;
        let head = place.partial.join("HEAD");
        // Replaced once it is known what there is.
        fs::write(&head, "ref: refs/heads/.invalid\n").context(
            ErrorKind::Io,
            "could not write",
            &head,
        )
    }

    fn set_rebase(&self, text: &mut ConfigText, branch: &BStr) -> Result<()> {
        let wanted = self.config.string("branch.autosetuprebase")?;
        if wanted.is_some_and(|wanted| matches!(wanted.as_bytes(), b"always" | b"remote")) {
            text.set("branch", Some(branch), "rebase", "true".into());
        }
        Ok(())
    }
}

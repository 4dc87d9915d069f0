//! Serves the commands `object-info` and `bundle-uri`.

use bstr::{BString, ByteSlice};

use super::super::writer::UnsentLines;
use super::super::{ConversationEnd, MOST_IDS, UploadSession, broken, too_much};
use super::Request;
use crate::objects::from_odb;
use crate::{ErrorKind, Result};

impl UploadSession<'_> {
    /// Sends the sizes of objects.
    pub(super) fn object_info(&mut self, request: &Request) -> Result<ConversationEnd> {
        let mut out = UnsentLines::default();
        let (mut with_size, mut ids) = (false, Vec::new());
        let what = "object-info: expected flush after arguments";
        loop {
            let line = match self.argument(request, what) {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(error) => {
                    out.error(error.message())?;
                    self.send_lines(&mut out)?;
                    return Err(error);
                }
            };
            match line.strip_prefix(b"oid ") {
                _ if line == b"size" => with_size = true,
                Some(_) if ids.len() >= MOST_IDS => return Err(too_much()),
                Some(id) => ids.push(BString::from(id)),
                None => {
                    let line = line.as_bstr();
                    out.error(format!("object-info: unexpected line: '{line}'"))?;
                    self.send_lines(&mut out)?;
                }
            }
        }
        if with_size && !ids.is_empty() {
            out.text("size")?;
        }
        let format = self.repository.object_hash();
        let store = self.repository.objects()?;
        for id in &ids {
            let hex = id.get(..format.len_in_hex()).unwrap_or_default();
            let Ok(parsed) = pronto_hash::parse_hex(hex) else {
                let message =
                    format!("object-info: protocol error, expected to get oid, not '{id}'");
                out.error(message)?;
                continue;
            };
            let size = match with_size {
                false => String::new(),
                true => match store.header(&parsed).map_err(from_odb)? {
                    Some(header) => format!(" {}", header.size),
                    None => " ".to_owned(),
                },
            };
            out.text([id.as_slice(), size.as_bytes()].concat())?;
        }
        out.flush();
        self.send_lines(&mut out)?;
        Ok(ConversationEnd::Served)
    }

    /// Sends the bundle URIs of the repository.
    pub(super) fn bundle_uris(&mut self, request: &Request) -> Result<ConversationEnd> {
        let what = "bundle-uri: expected flush after arguments";
        if let Some(line) = self.argument(request, what)? {
            let line = line.as_bstr();
            return Err(broken(format!("bundle-uri: unexpected argument: '{line}'")));
        }
        let mut out = UnsentLines::default();
        if self.settings.bundle_uris.is_none() {
            if let Some(uri) = self.made_bundle()? {
                out.text("bundle.version=1")?;
                out.text("bundle.mode=all")?;
                out.text(format!("bundle.clone.uri={uri}"))?;
            }
        } else {
            for entry in self.repository.config().iter() {
                if let Some(value) = entry.value.filter(|_| entry.key.starts_with(b"bundle.")) {
                    out.text([entry.key.as_bytes(), b"=", value.as_bytes()].concat())?;
                }
            }
        }
        out.flush();
        self.send_lines(&mut out)?;
        Ok(ConversationEnd::Served)
    }

    /// Returns the URL of the bundle that this server creates, if there is one.
    fn made_bundle(&self) -> Result<Option<String>> {
        let Some(source) = &self.options.bundles else {
            return Ok(None);
        };
        match source.uri(self.repository, self.interrupt) {
            Err(error) if error.kind() == ErrorKind::Interrupted => Err(error),
            // A fetch of a damaged history reports the damage.
            Err(_) => Ok(None),
            Ok(uri) => Ok(uri),
        }
    }
}

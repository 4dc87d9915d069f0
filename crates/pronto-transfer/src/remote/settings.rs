//! The settings of a connection.

use std::path::PathBuf;

use bstr::{BStr, ByteSlice};
use pronto_wire::transport::Family;

use super::Remote;
use crate::Result;
use crate::config::Config;

/// Settings of a connection for one operation.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Settings {
    /// The program that serves on the other side (`--upload-pack`).
    pub upload_pack: Option<bstr::BString>,
    /// The HTTP proxy; an empty one means none.
    pub proxy: Option<bstr::BString>,
    /// The authentication method of the proxy (`remote.<name>.proxyAuthMethod`).
    pub proxy_auth_method: Option<bstr::BString>,
    /// Which kind of internet address to use.
    pub family: Family,
    /// The program that serves local repositories when called with `upload-pack`; the one of the
    /// environment, or git, if that is not said.
    pub server: Option<PathBuf>,
    /// Whether a path has to lead to a repository: a bundle is none then.
    pub no_bundles: bool,
}

impl Settings {
    /// The same with what is configured for `remote`.
    ///
    /// # Errors
    /// A value is malformed.
    pub fn for_remote(&self, remote: &Remote, config: &Config) -> Result<Self> {
        let mut settings = self.clone();
        if settings.upload_pack.is_none() {
            settings.upload_pack.clone_from(&remote.upload_pack);
        }
        settings.proxy.clone_from(&remote.proxy);
        if !remote.name.is_empty() {
            let key = [b"remote.", remote.name.as_bytes(), b".proxyauthmethod"].concat();
            settings.proxy_auth_method = config.string(key)?.map(BStr::to_owned);
        }
        Ok(settings)
    }
}

//! The settings of a connection.

use std::path::PathBuf;

use bstr::{BStr, ByteSlice};
use pronto_wire::transport::AddressFamily;

use super::Remote;
use crate::Result;
use crate::config::Config;

/// The settings of a connection for one operation.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Settings {
    /// The program on the remote side (`--upload-pack`).
    pub upload_pack: Option<bstr::BString>,
    /// The HTTP proxy; empty for no proxy (`remote.<name>.proxy`).
    pub proxy: Option<bstr::BString>,
    /// The authentication method of the proxy (`remote.<name>.proxyAuthMethod`).
    pub proxy_auth_method: Option<bstr::BString>,
    /// The internet protocol version to use (`--ipv4`, `--ipv6`).
    pub family: AddressFamily,
    /// The program that is called with `upload-pack` to serve local repositories. Unset, the
    /// program of the environment, or git.
    pub server: Option<PathBuf>,
    /// Require that a path is a repository, and do not accept bundles.
    pub no_bundles: bool,
}

impl Settings {
    /// Returns the settings with unset values replaced by those of `remote`.
    ///
    /// # Errors
    /// Fails if a setting is malformed.
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

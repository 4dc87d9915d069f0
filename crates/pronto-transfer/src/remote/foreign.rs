//! HTTP settings that only git supports.
//!
//! If one of these settings applies, the call fails before anything is sent to the URL, with an
//! error that lets the caller hand the call over to git. Settings of git that are neither listed
//! here nor in [`web`](super::web) have no visible effect: `http.version`, `http.keepAlive*`,
//! `http.minSessions`, `http.maxRequests` and `http.postBuffer` tune curl; `http.noEPSV` and
//! `http.sslTry` concern FTP; `http.schannel*` concerns one library, which `http.sslBackend` would
//! have to select; `http.saveCookies` needs `http.cookieFile`; and `http.maxRetries`,
//! `http.maxRetryTime` and `http.retryAfter` concern responses that end a call here.

use pronto_wire::transport::http::Options;

use super::lookup::Lookup;
use super::settings::Settings;
use crate::{Error, ErrorKind, Result};

/// A setting that only git supports, unless its value has no effect.
struct Foreign {
    name: &'static str,
    /// The environment variable that overrides the setting.
    variable: &'static str,
    /// The values without effect, in lower case.
    harmless: &'static [&'static str],
}

const fn foreign(
    name: &'static str,
    variable: &'static str,
    harmless: &'static [&'static str],
) -> Foreign {
    Foreign {
        name,
        variable,
        harmless,
    }
}

/// Settings for all connections.
const ANY: &[Foreign] = &[
    foreign("curloptResolve", "", &[]),
    foreign("delegation", "", &["none"]),
    foreign("emptyAuth", "", &["auto", "false", "no", "off", "0"]),
    foreign("cookieFile", "", &[]),
    foreign("proactiveAuth", "", &["none"]),
];

/// Settings for encrypted connections. pronto never uses a TLS version below 1.2.
const ENCRYPTED: &[Foreign] = &[
    foreign("pinnedPubkey", "", &[]),
    foreign("sslVersion", "GIT_SSL_VERSION", &["tlsv1.2"]),
    foreign("sslCipherList", "GIT_SSL_CIPHER_LIST", &[]),
    foreign("sslBackend", "", &[]),
];

/// Settings of client certificates.
const CERTIFICATE: &[Foreign] = &[
    foreign("sslCertType", "GIT_SSL_CERT_TYPE", &["pem"]),
    foreign("sslKeyType", "GIT_SSL_KEY_TYPE", &["pem"]),
];

/// Settings for connections through a proxy.
const PROXY: &[Foreign] = &[foreign(
    "proxyAuthMethod",
    "GIT_HTTP_PROXY_AUTHMETHOD",
    &["anyauth", "basic"],
)];

/// Settings for encrypted connections to a proxy.
const ENCRYPTED_PROXY: &[Foreign] = &[
    foreign("proxySSLCert", "GIT_PROXY_SSL_CERT", &[]),
    foreign("proxySSLKey", "GIT_PROXY_SSL_KEY", &[]),
    foreign("proxySSLCAInfo", "GIT_PROXY_SSL_CAINFO", &[]),
];

/// Fails with [`ErrorKind::Unsupported`] if a setting for the URL of `lookup` is supported only by
/// git.
pub(super) fn check(lookup: &Lookup<'_>, options: &Options, settings: &Settings) -> Result<()> {
    let is_encrypted = lookup.url.scheme() == "https";
    let proxy = options.proxy.as_deref().filter(|proxy| !proxy.is_empty());
    let proxy = proxy.map(str::to_ascii_lowercase);
    let proxy_is = |scheme: &str| {
        proxy
            .as_ref()
            .is_some_and(|proxy| proxy.starts_with(scheme))
    };
    let has_certificate = is_encrypted && options.ssl_cert.is_some();
    let groups = [
        (ANY, true),
        (ENCRYPTED, is_encrypted),
        (CERTIFICATE, has_certificate),
        (PROXY, proxy.is_some()),
        (ENCRYPTED_PROXY, proxy_is("https:")),
    ];
    for (group, applies) in groups {
        for setting in group.iter().filter(|_| applies) {
            let name = setting.name.to_ascii_lowercase();
            let Some(value) = lookup.either(setting.variable, &name)? else {
                continue;
            };
            let value = value.to_ascii_lowercase();
            if !setting.harmless.contains(&value.as_str()) {
                return Err(left_to_git(&format!("http.{}", setting.name)));
            }
        }
    }
    if has_certificate
        && (lookup.is_set("GIT_SSL_CERT_PASSWORD_PROTECTED")
            || lookup.boolean("sslcertpasswordprotected", false)?)
    {
        return Err(left_to_git("http.sslCertPasswordProtected"));
    }
    if proxy_is("https:")
        && (lookup.is_set("GIT_PROXY_SSL_CERT_PASSWORD_PROTECTED")
            || lookup.boolean("proxysslcertpasswordprotected", false)?)
    {
        return Err(left_to_git("http.proxySSLCertPasswordProtected"));
    }
    if options.low_speed.is_some() && proxy_is("socks") {
        return Err(left_to_git("http.lowSpeedLimit with a SOCKS proxy"));
    }
    match settings
        .proxy_auth_method
        .as_ref()
        .filter(|_| proxy.is_some())
    {
        Some(method) if method != "anyauth" && method != "basic" => {
            Err(left_to_git("remote.<name>.proxyAuthMethod"))
        }
        _ => Ok(()),
    }
}

fn left_to_git(what: &str) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        format!("{what} is not implemented natively"),
    )
}

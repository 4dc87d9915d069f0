//! The settings of transports that the transports lack. A row goes when its transport learns to
//! obey it.

use super::table::{OFF, row};
use super::{Lacking, Place, When};

const CLIENTS: &[&str] = &["clone", "fetch"];

const fn variable(name: &'static str, when: When) -> Lacking {
    row(name, Place::Section, CLIENTS, when)
}

/// Configured variables, sorted.
pub static TRANSPORT_KEYS: &[Lacking] = &[
    row("core.gitproxy", Place::Section, CLIENTS, When::Set),
    row("credential.interactive", Place::Either, CLIENTS, When::Set),
    row(
        "credential.protectprotocol",
        Place::Either,
        CLIENTS,
        When::Set,
    ),
    row(
        "credential.sanitizeprompt",
        Place::Either,
        CLIENTS,
        When::Set,
    ),
    row("http.cookiefile", Place::Either, CLIENTS, When::NotEmpty),
    row("http.curloptresolve", Place::Either, CLIENTS, When::Set),
    row("http.delegation", Place::Either, CLIENTS, When::Set),
    row("http.emptyauth", Place::Either, CLIENTS, When::Set),
    row("http.lowspeedlimit", Place::Either, CLIENTS, When::Set),
    row("http.lowspeedtime", Place::Either, CLIENTS, When::Set),
    row("http.maxretries", Place::Either, CLIENTS, When::Not(&["0"])),
    row("http.pinnedpubkey", Place::Either, CLIENTS, When::Set),
    row("http.proactiveauth", Place::Either, CLIENTS, When::Set),
    row("http.proxyauthmethod", Place::Either, CLIENTS, When::Set),
    row("http.proxysslcainfo", Place::Either, CLIENTS, When::Set),
    row("http.proxysslcert", Place::Either, CLIENTS, When::Set),
    row(
        "http.proxysslcertpasswordprotected",
        Place::Either,
        CLIENTS,
        When::True,
    ),
    row("http.proxysslkey", Place::Either, CLIENTS, When::Set),
    row("http.savecookies", Place::Either, CLIENTS, When::True),
    row("http.sslbackend", Place::Either, CLIENTS, When::Set),
    row(
        "http.sslcertpasswordprotected",
        Place::Either,
        CLIENTS,
        When::True,
    ),
    row("http.sslcerttype", Place::Either, CLIENTS, When::Set),
    row("http.sslcipherlist", Place::Either, CLIENTS, When::Set),
    row("http.sslkeytype", Place::Either, CLIENTS, When::Set),
    row("http.sslversion", Place::Either, CLIENTS, When::Set),
    row(
        "remote.proxyauthmethod",
        Place::Subsection,
        CLIENTS,
        When::Set,
    ),
    row(
        "sideband.allowcontrolcharacters",
        Place::Either,
        CLIENTS,
        When::Set,
    ),
];

/// Variables of the environment, sorted.
pub static TRANSPORT_VARIABLES: &[Lacking] = &[
    variable("GIT_CURL_VERBOSE", When::Set),
    variable("GIT_HTTP_LOW_SPEED_LIMIT", When::Set),
    variable("GIT_HTTP_LOW_SPEED_TIME", When::Set),
    variable("GIT_HTTP_MAX_RETRIES", When::Not(&["0"])),
    variable("GIT_HTTP_PROXY_AUTHMETHOD", When::Set),
    variable("GIT_OVERRIDE_VIRTUAL_HOST", When::NotEmpty),
    variable("GIT_PROXY_COMMAND", When::NotEmpty),
    variable("GIT_PROXY_SSL_CAINFO", When::Set),
    variable("GIT_PROXY_SSL_CERT", When::Set),
    variable("GIT_PROXY_SSL_CERT_PASSWORD_PROTECTED", When::Set),
    variable("GIT_PROXY_SSL_KEY", When::Set),
    variable("GIT_SMART_HTTP", When::False),
    variable("GIT_SSL_CERT_PASSWORD_PROTECTED", When::Set),
    variable("GIT_SSL_CERT_TYPE", When::Set),
    variable("GIT_SSL_CIPHER_LIST", When::Set),
    variable("GIT_SSL_KEY_TYPE", When::Set),
    variable("GIT_SSL_VERSION", When::Set),
    variable("GIT_TRACE_CURL", When::Not(OFF)),
];

//! The settings that transports lack for every URL. The transport itself (`pronto::remote`) refuses
//! settings that depend on the URL.

use super::table::{OFF, row};
use super::{Lacking, Place, When};

const CLIENTS: &[&str] = &[
    "clone",
    "fetch",
    "fetch-pack",
    "ls-remote",
    "push",
    "remote",
    "send-pack",
];

const fn variable(name: &'static str, when: When) -> Lacking {
    row(name, Place::Section, CLIENTS, when)
}

/// The configured variables that transports lack, sorted by name.
pub static TRANSPORT_KEYS: &[Lacking] = &[
    row(
        "credential.sanitizeprompt",
        Place::Either,
        CLIENTS,
        When::False,
    ),
    row("http.maxretries", Place::Either, CLIENTS, When::Not(&["0"])),
    row(
        "sideband.allowcontrolcharacters",
        Place::Either,
        CLIENTS,
        When::Set,
    ),
];

/// The environment variables that transports lack, sorted by name.
pub static TRANSPORT_VARIABLES: &[Lacking] = &[
    variable("GIT_CURL_VERBOSE", When::Set),
    variable("GIT_HTTP_MAX_RETRIES", When::Not(&["0"])),
    variable("GIT_OVERRIDE_VIRTUAL_HOST", When::NotEmpty),
    variable("GIT_SMART_HTTP", When::False),
    variable("GIT_TRACE_CURL", When::Not(OFF)),
];

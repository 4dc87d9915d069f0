//! Sections of the configuration whose settings protect the user.

use bstr::ByteSlice as _;

use super::operation::{Operation, Operations};
use crate::config::ConfigKey;

/// The reason for every refusal because of this table.
pub(super) const REASON: &str =
    "pronto does not know this setting, and settings of this section can protect users";

/// A section whose settings protect the user. An unknown setting of the section is never ignored.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct GuardedSection {
    /// The name of the section, in lower case.
    pub section: &'static str,
    /// The operations to which the settings of the section apply.
    pub operations: Operations,
    /// The known variables of the section in lower case, sorted.
    pub known: &'static [&'static str],
}

/// The operations of both sides of Git's protocol.
const PROTOCOL: &[Operation] = &[
    Operation::Connect,
    Operation::ReceivePackIntoView,
    Operation::UploadArchive,
    Operation::UploadPack,
];

/// The guarded sections. An unknown variable of these sections is not ignored, because the variable
/// may protect the user.
pub static GUARDED: &[GuardedSection] = &[
    GuardedSection {
        section: "credential",
        operations: Operations::of(&[Operation::Connect]),
        known: &[
            "helper",
            "interactive",
            "protectprotocol",
            "sanitizeprompt",
            "usehttppath",
            "username",
        ],
    },
    GuardedSection {
        section: "http",
        operations: Operations::of(&[Operation::Connect]),
        known: &[
            "cookiefile",
            "curloptresolve",
            "delegation",
            "emptyauth",
            "extraheader",
            "followredirects",
            "getanyfile",
            "keepalivecount",
            "keepaliveidle",
            "keepaliveinterval",
            "lowspeedlimit",
            "lowspeedtime",
            "maxrequestbuffer",
            "maxrequests",
            "maxretries",
            "maxretrytime",
            "minsessions",
            "noepsv",
            "pinnedpubkey",
            "postbuffer",
            "proactiveauth",
            "proxy",
            "proxyauthmethod",
            "proxysslcainfo",
            "proxysslcert",
            "proxysslcertpasswordprotected",
            "proxysslkey",
            "receivepack",
            "retryafter",
            "savecookies",
            "schannelcheckrevoke",
            "schannelusesslcainfo",
            "sslbackend",
            "sslcainfo",
            "sslcapath",
            "sslcert",
            "sslcertpasswordprotected",
            "sslcerttype",
            "sslcipherlist",
            "sslkey",
            "sslkeytype",
            "ssltry",
            "sslverify",
            "sslversion",
            "uploadarchive",
            "uploadpack",
            "useragent",
            "version",
        ],
    },
    GuardedSection {
        section: "protocol",
        operations: Operations::of(&[Operation::Clone, Operation::Fetch, Operation::Sync]),
        known: &["allow", "version"],
    },
    GuardedSection {
        section: "safe",
        operations: Operations::of(&[Operation::Read]),
        known: &["barerepository", "directory"],
    },
    GuardedSection {
        section: "sideband",
        operations: Operations::of(&[Operation::Connect]),
        known: &["allowcontrolcharacters"],
    },
    GuardedSection {
        section: "transfer",
        operations: Operations::of(PROTOCOL),
        known: &[
            "advertiseobjectinfo",
            "advertisesid",
            "bundleuri",
            "credentialsinurl",
            "fsckobjects",
            "hiderefs",
            "unpacklimit",
        ],
    },
];

/// Returns the guarded section of `key`, if the variable of `key` is unknown there.
pub(super) fn find(key: &ConfigKey<'_>) -> Option<&'static GuardedSection> {
    let is_it = |guarded: &&GuardedSection| guarded.section.as_bytes() == key.section.as_bytes();
    let guarded = GUARDED.iter().find(is_it)?;
    let variable = key.variable.as_bytes();
    let known = guarded
        .known
        .binary_search_by(|known| known.as_bytes().cmp(variable));
    known.is_err().then_some(guarded)
}

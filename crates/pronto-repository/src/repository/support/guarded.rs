//! Sections of the configuration whose settings protect the user.

use bstr::ByteSlice as _;

use super::operation::{Operation, Operations};
use crate::config::ConfigKey;

/// The reason for every refusal by this table.
pub(super) const REASON: &str = "it is unknown, and settings of this section protect their users";

/// A section whose settings protect the user: an unknown one is never ignored.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Guarded {
    /// The section, in lower case.
    pub section: &'static str,
    /// The operations that obey it.
    pub operations: Operations,
    /// Its variables in lower case, sorted.
    pub known: &'static [&'static str],
}

/// Both sides of Git's protocol.
const PROTOCOL: &[Operation] = &[
    Operation::Connect,
    Operation::ReceivePackIntoView,
    Operation::UploadArchive,
    Operation::UploadPack,
];

/// Sections of which no unknown variable is ignored, because it may protect the user.
pub static GUARDED: &[Guarded] = &[
    Guarded {
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
    Guarded {
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
    Guarded {
        section: "protocol",
        operations: Operations::of(&[Operation::Clone, Operation::Fetch, Operation::Sync]),
        known: &["allow", "version"],
    },
    Guarded {
        section: "safe",
        operations: Operations::of(&[Operation::Read]),
        known: &["barerepository", "directory"],
    },
    Guarded {
        section: "sideband",
        operations: Operations::of(&[Operation::Connect]),
        known: &["allowcontrolcharacters"],
    },
    Guarded {
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

/// Returns the section of `key`, if it is guarded and does not know the variable.
pub(super) fn find(key: &ConfigKey<'_>) -> Option<&'static Guarded> {
    let is_it = |guarded: &&Guarded| guarded.section.as_bytes() == key.section.as_bytes();
    let guarded = GUARDED.iter().find(is_it)?;
    let variable = key.variable.as_bytes();
    let known = guarded
        .known
        .binary_search_by(|known| known.as_bytes().cmp(variable));
    known.is_err().then_some(guarded)
}

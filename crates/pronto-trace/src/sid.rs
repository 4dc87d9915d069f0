//! Session ids: the ids of the parent sessions, followed by time, host and process id.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;

use sha1::{Digest, Sha1};

use crate::clock;

/// The ids of the parent sessions and of this session, separated by slashes.
#[derive(Debug)]
pub(crate) struct Sid {
    pub(crate) text: String,
    /// The number of ancestor processes that write traces.
    pub(crate) depth: usize,
}

impl Sid {
    pub(crate) fn new(parent: Option<&OsString>) -> Self {
        let own = own_component();
        match parent {
            Some(parent) => {
                let depth = 1 + parent
                    .as_bytes()
                    .iter()
                    .filter(|&&byte| byte == b'/')
                    .count();
                Sid {
                    text: format!("{}/{own}", parent.to_string_lossy()),
                    depth,
                }
            }
            None => Sid {
                text: own,
                depth: 0,
            },
        }
    }

    /// Returns the id of this session without its parents, which is also used as a file name.
    pub(crate) fn own(&self) -> &str {
        self.text.rsplit('/').next().unwrap_or_default()
    }
}

fn own_component() -> String {
    let system = rustix::system::uname();
    let host = system.nodename().to_bytes();
    let mut component = clock::utc_compact();
    component.push('-');
    if host.is_empty() {
        component.push_str("Localhost");
    } else {
        component.push('H');
        for byte in &Sha1::digest(host)[..4] {
            // Writing to a string does not fail.
            let _ = write!(component, "{byte:02x}");
        }
    }
    let _ = write!(component, "-P{:08x}", std::process::id());
    component
}

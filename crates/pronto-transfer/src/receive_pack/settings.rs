//! The settings of `receive-pack`: `receive.*` and `transfer.*`.

use std::time::Duration;

use bstr::{BStr, BString, ByteSlice};

use crate::config::{Config, ConfigEntry, value};
use crate::upload_pack::hidden::Hidden;
use crate::{Error, ErrorKind, Result};

/// The default of `receive.unpackLimit`, the number of objects from which on a pack is kept.
const UNPACK_LIMIT: i32 = 100;

/// The reaction to a change of a checked out branch (`receive.denyCurrentBranch`,
/// `receive.denyDeleteCurrent`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deny {
    /// The setting is unset: refuse the change, and explain the setting.
    Unconfigured,
    Ignore,
    Warn,
    Refuse,
    UpdateInstead,
}

/// All settings of one push.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) deny_deletes: bool,
    pub(super) deny_non_fast_forwards: bool,
    pub(super) deny_current_branch: Deny,
    pub(super) deny_delete_current: Deny,
    /// The number of objects below which a pack is unpacked (`receive.unpackLimit`).
    pub(super) unpack_limit: u32,
    pub(super) checks_objects: bool,
    pub(super) max_input_bytes: Option<u64>,
    pub(super) auto_gc: bool,
    pub(super) session_id: bool,
    pub(super) update_server_info: bool,
    pub(super) shallow_update: bool,
    pub(super) advertise_atomic: bool,
    pub(super) advertise_push_options: bool,
    /// The seed of nonces for signed pushes (`receive.certNonceSeed`).
    pub(super) cert_nonce_seed: Option<BString>,
    /// The age in seconds up to which nonces of earlier requests are accepted as current
    /// (`receive.certNonceSlop`).
    pub(super) cert_nonce_slop: u64,
    pub(super) offset_deltas: bool,
    pub(super) keep_alive: Option<Duration>,
    pub(super) hidden: Hidden,
    pub(super) proc_receive: Vec<ProcReceiveRefs>,
}

impl Settings {
    /// Reads the settings from `config`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if a setting has an invalid value.
    pub(super) fn of(config: &Config) -> Result<Self> {
        let bool = |key: &str, default| config.bool_or(key, default);
        let mut unpack_limit = UNPACK_LIMIT;
        for key in ["transfer.unpacklimit", "receive.unpacklimit"] {
            if let Some(set @ 0..) = config.i32(key)? {
                unpack_limit = set;
            }
        }
        let checks_objects = match config.bool("receive.fsckobjects")? {
            Some(set) => set,
            None => bool("transfer.fsckobjects", false)?,
        };
        let keep_alive = config.i32("receive.keepalive")?.unwrap_or(5);
        let keep_alive = u64::try_from(keep_alive).ok().filter(|set| *set > 0);
        let is_unset =
            |entry: &ConfigEntry<'_>| entry.value.is_none() && entry.key == "receive.fsck.skiplist";
        if let Some(entry) = config.iter().find(is_unset) {
            entry.path(None)?;
        }
        let proc_receive = config.strings("receive.procreceiverefs");
        Ok(Settings {
            deny_deletes: bool("receive.denydeletes", false)?,
            deny_non_fast_forwards: bool("receive.denynonfastforwards", false)?,
            deny_current_branch: deny(config, "receive.denycurrentbranch")?,
            deny_delete_current: deny(config, "receive.denydeletecurrent")?,
            unpack_limit: u32::try_from(unpack_limit).unwrap_or(0),
            checks_objects,
            max_input_bytes: config.u64("receive.maxinputsize")?.filter(|max| *max > 0),
            auto_gc: bool("receive.autogc", true)?,
            session_id: bool("transfer.advertisesid", false)?,
            update_server_info: bool("receive.updateserverinfo", false)?,
            shallow_update: bool("receive.shallowupdate", false)?,
            advertise_atomic: bool("receive.advertiseatomic", true)?,
            advertise_push_options: bool("receive.advertisepushoptions", false)?,
            cert_nonce_seed: config.string("receive.certnonceseed")?.map(BStr::to_owned),
            cert_nonce_slop: config.u64("receive.certnonceslop")?.unwrap_or(0),
            offset_deltas: bool("repack.usedeltabaseoffset", true)?,
            keep_alive: keep_alive.map(Duration::from_secs),
            hidden: Hidden::from_pushers(config),
            proc_receive: proc_receive.map(ProcReceiveRefs::parse).collect(),
        })
    }
}

impl Settings {
    /// Disables the steps that would only change a view of the repository.
    pub(super) fn limit_to_view(&mut self) {
        // Only a pack without objects is unpacked, because its files are useless.
        self.unpack_limit = 1;
        self.auto_gc = false;
        self.update_server_info = false;
        self.shallow_update = false;
    }
}

fn deny(config: &Config, key: &str) -> Result<Deny> {
    let Some(entry) = config.entry_of(key) else {
        return Ok(Deny::Unconfigured);
    };
    let text = entry.value.unwrap_or_default().to_ascii_lowercase();
    Ok(match text.as_slice() {
        b"ignore" => Deny::Ignore,
        b"warn" => Deny::Warn,
        b"refuse" => Deny::Refuse,
        b"updateinstead" => Deny::UpdateInstead,
        _ => match value::parse_bool(entry.value) {
            Some(true) => Deny::Refuse,
            Some(false) => Deny::Ignore,
            None => {
                let text = entry.value.unwrap_or_default();
                let message = format!("bad boolean config value '{text}' for '{key}'");
                return Err(Error::new(ErrorKind::ConfigValue, message));
            }
        },
    })
}

/// A pattern of refs whose commands the hook `proc-receive` executes (`receive.procReceiveRefs`).
#[derive(Clone, Debug)]
pub(super) struct ProcReceiveRefs {
    prefix: BString,
    adds: bool,
    deletes: bool,
    modifies: bool,
    /// Whether the pattern matches all refs without the prefix (`!`).
    negative: bool,
}

impl ProcReceiveRefs {
    fn parse(text: &BStr) -> Self {
        let (kinds, prefix) = match text.split_once_str(":") {
            Some((kinds, prefix)) => (Some(kinds), prefix),
            None => (None, text.as_bytes()),
        };
        let has = |kind: u8| kinds.is_none_or(|kinds| kinds.contains(&kind));
        ProcReceiveRefs {
            prefix: prefix.trim_end_with(|byte| byte == '/').into(),
            adds: has(b'a'),
            deletes: has(b'd'),
            modifies: has(b'm'),
            negative: kinds.is_some_and(|kinds| kinds.contains(&b'!')),
        }
    }

    /// Whether the hook executes a command for `name`, which creates, deletes or modifies the ref.
    pub(super) fn takes(&self, name: &BStr, creates: bool, deletes: bool) -> bool {
        let fits = match (creates, deletes) {
            (true, false) => self.adds,
            (_, true) => self.deletes,
            (false, false) => self.modifies,
        };
        let below = name.strip_prefix(self.prefix.as_slice());
        let below = below.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"));
        fits && below != self.negative
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refs_for_the_hook_are_chosen_by_prefix_and_kind() {
        let rule = |text: &str| ProcReceiveRefs::parse(text.into());
        let name = BStr::new("refs/for/main");
        assert!(rule("refs/for/").takes(name, true, false));
        assert!(!rule("refs/fo").takes(name, true, false));
        assert!(!rule("md:refs/for").takes(name, true, false));
        assert!(rule("d:refs/for").takes(name, false, true));
        assert!(rule("!:refs/heads").negative);
        assert!(rule("am!:refs/heads").takes(name, false, false));
        assert!(!rule("am!:refs/for").takes(name, false, false));
    }
}

//! The transports that the user allows (`protocol.allow`, `GIT_ALLOW_PROTOCOL`).

use std::collections::HashMap;

use crate::error::{Error, ErrorKind};

/// The condition under which a transport may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allow {
    /// Always (`always`).
    Always,
    /// Never (`never`).
    Never,
    /// If the user named the URL, but not if a repository did, as for a submodule or a redirect
    /// (`user`).
    User,
}

impl Allow {
    /// Parses a value of `protocol.allow`. Returns `None` if it is unknown.
    pub fn from_name(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "always" => Some(Allow::Always),
            "never" => Some(Allow::Never),
            "user" => Some(Allow::User),
            _ => None,
        }
    }
}

/// The user's settings for transports.
#[derive(Clone, Debug)]
pub struct TransportPolicy {
    /// The only allowed transports (`GIT_ALLOW_PROTOCOL`), which overrides all other settings.
    pub only: Option<Vec<String>>,
    /// The settings for single transports (`protocol.<name>.allow`).
    pub by_name: HashMap<String, Allow>,
    /// The default (`protocol.allow`).
    pub default: Option<Allow>,
    /// Whether the URL comes from the user (`GIT_PROTOCOL_FROM_USER`).
    pub from_user: bool,
}

impl Default for TransportPolicy {
    fn default() -> Self {
        TransportPolicy {
            only: None,
            by_name: HashMap::new(),
            default: None,
            from_user: true,
        }
    }
}

impl TransportPolicy {
    /// Returns whether the transport `name` may be used.
    pub fn allows(&self, name: &str) -> bool {
        self.allows_for(name, self.from_user)
    }

    fn allows_for(&self, name: &str, from_user: bool) -> bool {
        if let Some(only) = &self.only {
            return only.iter().any(|allowed| allowed == name);
        }
        let allow = self
            .by_name
            .get(name)
            .copied()
            .or(self.default)
            .unwrap_or(match name {
                "http" | "https" | "git" | "ssh" => Allow::Always,
                "ext" => Allow::Never,
                _ => Allow::User,
            });
        match allow {
            Allow::Always => true,
            Allow::Never => false,
            Allow::User => from_user,
        }
    }

    /// Checks that the transport `name` may be used.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Forbidden`] if the transport is not allowed.
    pub fn check(&self, name: &str) -> Result<(), Error> {
        match self.allows(name) {
            true => Ok(()),
            false => Err(forbidden(name)),
        }
    }

    /// Checks that a server may redirect to the transport `name`: only HTTP is possible, and a redirect
    /// does not count as requested by the user.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Forbidden`] if the redirect is not allowed.
    pub fn check_redirect(&self, name: &str) -> Result<(), Error> {
        match matches!(name, "http" | "https") && self.allows_for(name, false) {
            true => Ok(()),
            false => Err(forbidden(name)),
        }
    }
}

fn forbidden(name: &str) -> Error {
    let message = format!("transport '{name}' not allowed");
    Error::new(ErrorKind::Forbidden, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_overrules_settings_and_defaults() {
        let mut policy = TransportPolicy::default();
        assert!(policy.allows("file") && policy.allows("https") && !policy.allows("ext"));
        policy.from_user = false;
        assert!(!policy.allows("file") && policy.allows("ssh"));
        policy.default = Some(Allow::Never);
        policy.by_name.insert("git".into(), Allow::Always);
        assert!(!policy.allows("ssh") && policy.allows("git"));
        policy.only = Some(vec!["file".into()]);
        assert!(policy.allows("file") && !policy.allows("git"));
    }

    #[test]
    fn a_redirect_is_not_asked_for_by_the_user() {
        let mut policy = TransportPolicy::default();
        assert!(policy.check_redirect("https").is_ok());
        assert!(policy.check_redirect("file").is_err() && policy.check_redirect("ssh").is_err());
        policy.by_name.insert("http".into(), Allow::User);
        assert!(policy.allows("http") && policy.check_redirect("http").is_err());
        policy.only = Some(vec!["http".into()]);
        assert!(policy.check_redirect("http").is_ok() && policy.check_redirect("https").is_err());
    }
}

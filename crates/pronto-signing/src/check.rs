//! The result of checking a signature.

use bstr::BString;

/// The verdict of the program on a signature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// There is no signature, or it was not checked.
    #[default]
    None,
    /// The signature is good.
    Good,
    /// The signature is bad.
    Bad,
    /// The signature cannot be checked, for example without the key.
    Unknown,
    /// The signature is good, and has expired.
    Expired,
    /// The signature is good, and its key has expired.
    ExpiredKey,
    /// The signature is good, and its key is revoked.
    RevokedKey,
}

impl Status {
    /// Returns the letter that Git gives to hooks, and shows for `%G?`.
    pub fn letter(self) -> char {
        match self {
            Status::None => 'N',
            Status::Good => 'G',
            Status::Bad => 'B',
            Status::Unknown => 'E',
            Status::Expired => 'X',
            Status::ExpiredKey => 'Y',
            Status::RevokedKey => 'R',
        }
    }
}

/// The trust in the key of a signature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Trust {
    /// No trust is known.
    #[default]
    Undefined,
    /// The key is not trusted.
    Never,
    /// Marginal trust.
    Marginal,
    /// Full trust.
    Fully,
    /// The trust in a key of the user.
    Ultimate,
}

impl Trust {
    /// Returns the level of this name, in capital letters as gpg writes it.
    pub(crate) fn of_name(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"UNDEFINED" => Trust::Undefined,
            b"NEVER" => Trust::Never,
            b"MARGINAL" => Trust::Marginal,
            b"FULLY" => Trust::Fully,
            b"ULTIMATE" => Trust::Ultimate,
            _ => return None,
        })
    }
}

/// The result of checking a signature.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Check {
    /// The verdict of the program.
    pub status: Status,
    /// The trust in the key.
    pub trust: Trust,
    /// The name of the signer.
    pub signer: Option<BString>,
    /// The id of the key; its fingerprint for ssh.
    pub key: Option<BString>,
    /// The fingerprint of the key.
    pub fingerprint: Option<BString>,
    /// The fingerprint of the primary key.
    pub primary_fingerprint: Option<BString>,
    /// The text for the user.
    pub output: BString,
    /// The text for programs.
    pub raw_output: BString,
    /// Whether the program accepts the signature.
    pub(crate) is_accepted: bool,
    /// The file of revoked keys that is configured and does not exist.
    pub missing_revocation_file: Option<std::path::PathBuf>,
}

impl Check {
    /// Returns whether the signature is good, though its key may have expired.
    pub fn is_good(&self) -> bool {
        self.is_accepted && matches!(self.status, Status::Good | Status::ExpiredKey)
    }
}

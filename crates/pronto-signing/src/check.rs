//! The result of verifying a signature.

use bstr::BString;

/// The status of a signature, as the signing program reports it (`%G?`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SignatureStatus {
    /// There is no signature, or it was not verified (`N`).
    #[default]
    None,
    /// The signature is good (`G`).
    Good,
    /// The signature is bad (`B`).
    Bad,
    /// The signature cannot be verified, for example because the key is missing (`E`).
    Unknown,
    /// The signature is good but has expired (`X`).
    Expired,
    /// The signature is good but its key has expired (`Y`).
    ExpiredKey,
    /// The signature is good but its key was revoked (`R`).
    RevokedKey,
}

impl SignatureStatus {
    /// Returns the letter that Git passes to hooks (`GIT_PUSH_CERT_STATUS`) and prints for `%G?`.
    pub fn letter(self) -> char {
        match self {
            SignatureStatus::None => 'N',
            SignatureStatus::Good => 'G',
            SignatureStatus::Bad => 'B',
            SignatureStatus::Unknown => 'E',
            SignatureStatus::Expired => 'X',
            SignatureStatus::ExpiredKey => 'Y',
            SignatureStatus::RevokedKey => 'R',
        }
    }
}

/// The trust level of the key of a signature (`%GT`, `gpg.minTrustLevel`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum KeyTrust {
    /// The trust is unknown (`undefined`).
    #[default]
    Undefined,
    /// The key is not trusted (`never`).
    Never,
    /// The key is marginally trusted (`marginal`).
    Marginal,
    /// The key is fully trusted (`fully`).
    Fully,
    /// The key is ultimately trusted, like a key of the user (`ultimate`).
    Ultimate,
}

impl KeyTrust {
    /// Returns the trust level with this name, in upper case as gpg prints it.
    pub(crate) fn of_name(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"UNDEFINED" => KeyTrust::Undefined,
            b"NEVER" => KeyTrust::Never,
            b"MARGINAL" => KeyTrust::Marginal,
            b"FULLY" => KeyTrust::Fully,
            b"ULTIMATE" => KeyTrust::Ultimate,
            _ => return None,
        })
    }
}

/// The result of verifying a signature.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignatureCheck {
    /// The status of the signature.
    pub status: SignatureStatus,
    /// The trust level of the key.
    pub trust: KeyTrust,
    /// The name of the signer (`%GS`).
    pub signer: Option<BString>,
    /// The id of the key; for SSH, its fingerprint (`%GK`).
    pub key: Option<BString>,
    /// The fingerprint of the key (`%GF`).
    pub fingerprint: Option<BString>,
    /// The fingerprint of the primary key (`%GP`).
    pub primary_fingerprint: Option<BString>,
    /// The output of the program for the user (`git verify-commit -v`).
    pub output: BString,
    /// The output of the program for scripts (`git verify-commit --raw`).
    pub raw_output: BString,
    /// Whether the program accepted the signature (its exit code).
    pub(crate) is_accepted: bool,
    /// The configured revocation file (`gpg.ssh.revocationFile`), if it does not exist.
    pub missing_revocation_file: Option<std::path::PathBuf>,
}

impl SignatureCheck {
    /// Returns whether the signature is good. Its key may have expired.
    pub fn is_good(&self) -> bool {
        self.is_accepted
            && matches!(
                self.status,
                SignatureStatus::Good | SignatureStatus::ExpiredKey
            )
    }
}

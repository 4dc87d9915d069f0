//! Signature formats.

/// A signature format (`gpg.format`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SignatureFormat {
    /// OpenPGP, with gpg (`openpgp`).
    #[default]
    OpenPgp,
    /// X.509, with gpgsm (`x509`).
    X509,
    /// SSH, with ssh-keygen (`ssh`).
    Ssh,
}

impl SignatureFormat {
    /// All formats.
    pub const ALL: [SignatureFormat; 3] = [
        SignatureFormat::OpenPgp,
        SignatureFormat::X509,
        SignatureFormat::Ssh,
    ];

    /// Returns the name of the format in `gpg.format`.
    pub fn name(self) -> &'static str {
        match self {
            SignatureFormat::OpenPgp => "openpgp",
            SignatureFormat::X509 => "x509",
            SignatureFormat::Ssh => "ssh",
        }
    }

    /// Returns the format with this name in `gpg.format`.
    pub fn of_name(name: &[u8]) -> Option<Self> {
        SignatureFormat::ALL
            .into_iter()
            .find(|format| format.name().as_bytes() == name)
    }

    /// Returns the format of the signature at the start of `text`, or `None` if there is no
    /// signature.
    pub fn of_signature(text: &[u8]) -> Option<Self> {
        SignatureFormat::ALL.into_iter().find(|format| {
            let mut beginnings = format.beginnings().iter();
            beginnings.any(|beginning| text.starts_with(beginning))
        })
    }

    /// Returns the default program for the format (`gpg.program`, `gpg.<format>.program`).
    pub(crate) fn program(self) -> &'static str {
        match self {
            SignatureFormat::OpenPgp => "gpg",
            SignatureFormat::X509 => "gpgsm",
            SignatureFormat::Ssh => "ssh-keygen",
        }
    }

    fn beginnings(self) -> &'static [&'static [u8]] {
        match self {
            SignatureFormat::OpenPgp => &[
                b"-----BEGIN PGP SIGNATURE-----",
                b"-----BEGIN PGP MESSAGE-----",
            ],
            SignatureFormat::X509 => &[b"-----BEGIN SIGNED MESSAGE-----"],
            SignatureFormat::Ssh => &[b"-----BEGIN SSH SIGNATURE-----"],
        }
    }
}

/// Returns the offset of the signature in a signed text: the start of the last line that begins a
/// signature, as in Git, or the length of the text if there is no signature. Reads the text once.
pub fn signature_start(text: &[u8]) -> usize {
    let mut found = text.len();
    let mut at = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        if SignatureFormat::of_signature(line).is_some() {
            found = at;
        }
        at += line.len();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_signature_counts() {
        let one = "-----BEGIN PGP SIGNATURE-----\nx\n";
        let two = "-----BEGIN SSH SIGNATURE-----\ny\n";
        let text = format!("a\n{one}{two}");
        assert_eq!(signature_start(text.as_bytes()), text.len() - two.len());
        assert_eq!(signature_start(b"a\nb"), 3);
        assert_eq!(signature_start(b""), 0);
        let inner = b"a -----BEGIN SSH SIGNATURE-----\n";
        assert_eq!(signature_start(inner), inner.len());
        assert_eq!(
            SignatureFormat::of_signature(two.as_bytes()),
            Some(SignatureFormat::Ssh)
        );
        assert_eq!(
            SignatureFormat::of_name(b"x509"),
            Some(SignatureFormat::X509)
        );
        assert_eq!(SignatureFormat::of_name(b"X509"), None);
    }
}

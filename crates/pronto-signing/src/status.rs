//! Parses the output of gpg and ssh-keygen about a signature. The output may contain text from the
//! author of the signature.

use bstr::{BString, ByteSlice};

use crate::{KeyTrust, SignatureCheck, SignatureStatus};

const PREFIX: &[u8] = b"[GNUPG:] ";

/// The number of fields between the fingerprint of a key and that of its primary key.
const FIELDS_BETWEEN: usize = 8;

/// A status line that determines the status of a signature.
struct StatusLine {
    keyword: &'static [u8],
    status: SignatureStatus,
    has_signer: bool,
}

/// The status lines of which a valid output contains exactly one for each signature.
const VERDICTS: [StatusLine; 6] = [
    verdict(b"GOODSIG ", SignatureStatus::Good),
    verdict(b"BADSIG ", SignatureStatus::Bad),
    StatusLine {
        keyword: b"ERRSIG ",
        status: SignatureStatus::Unknown,
        has_signer: false,
    },
    verdict(b"EXPSIG ", SignatureStatus::Expired),
    verdict(b"EXPKEYSIG ", SignatureStatus::ExpiredKey),
    verdict(b"REVKEYSIG ", SignatureStatus::RevokedKey),
];

const fn verdict(keyword: &'static [u8], status: SignatureStatus) -> StatusLine {
    StatusLine {
        keyword,
        status,
        has_signer: true,
    }
}

/// Parses the status lines of gpg or gpgsm (`doc/DETAILS` of GnuPG) into `check`. Several
/// signatures count as a signature that cannot be verified.
pub(crate) fn read_gpg(lines: &[u8], check: &mut SignatureCheck) {
    if read_gpg_lines(lines, check).is_none() {
        *check = SignatureCheck {
            status: SignatureStatus::Unknown,
            trust: check.trust,
            output: std::mem::take(&mut check.output),
            raw_output: std::mem::take(&mut check.raw_output),
            ..SignatureCheck::default()
        };
    }
}

/// Returns `None` if the lines contradict one another.
fn read_gpg_lines(lines: &[u8], check: &mut SignatureCheck) -> Option<()> {
    let mut is_judged = false;
    for line in lines.split(|byte| *byte == b'\n') {
        let Some(line) = line.strip_prefix(PREFIX) else {
            continue;
        };
        let verdict = VERDICTS
            .iter()
            .find_map(|verdict| Some((verdict, line.strip_prefix(verdict.keyword)?)));
        if let Some((verdict, rest)) = verdict {
            if std::mem::replace(&mut is_judged, true) {
                return None;
            }
            check.status = verdict.status;
            let (key, signer) = match rest.split_once_str(" ") {
                Some((key, signer)) => (key, Some(signer)),
                None => (rest, None),
            };
            check.key = Some(key.into());
            if let Some(signer) = signer.filter(|_| verdict.has_signer) {
                check.signer = Some(signer.into());
            }
        } else if let Some(rest) = line.strip_prefix(b"VALIDSIG ") {
            let mut fields = rest.split(|byte| *byte == b' ');
            check.fingerprint = fields.next().map(BString::from);
            check.primary_fingerprint = fields.nth(FIELDS_BETWEEN).map(BString::from);
        } else if let Some(rest) = line.strip_prefix(b"TRUST_") {
            let name = rest.split(|byte| *byte == b' ').next()?;
            check.trust = KeyTrust::of_name(name)?;
        }
    }
    Some(())
}

/// Parses the first line of the output of ssh-keygen into `check`:
/// `Good "git" signature [for PRINCIPAL ]with TYPE key FINGERPRINT`.
pub(crate) fn read_ssh(printed: &[u8], check: &mut SignatureCheck) {
    (check.status, check.trust) = (SignatureStatus::Bad, KeyTrust::Never);
    let line = printed.lines().next().unwrap_or_default();
    let (signer, trust, rest) = match line.strip_prefix(br#"Good "git" signature for "#) {
        Some(rest) => match rest.rsplit_once_str(" with ") {
            Some((principal, rest)) => (Some(principal), KeyTrust::Fully, rest),
            None => return,
        },
        None => match line.strip_prefix(br#"Good "git" signature with "#) {
            // The signature is good, but the key is not in the allowed signers file.
            Some(rest) => (None, KeyTrust::Undefined, rest),
            None => return,
        },
    };
    check.trust = trust;
    check.signer = signer.map(BString::from);
    if let Some((_, key)) = rest.split_once_str("key ") {
        check.status = SignatureStatus::Good;
        check.fingerprint = Some(key.into());
        check.key = Some(key.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpg(lines: &str) -> SignatureCheck {
        let mut check = SignatureCheck::default();
        read_gpg(lines.as_bytes(), &mut check);
        check
    }

    #[test]
    fn the_lines_of_gpg_are_read() {
        let check = gpg("[GNUPG:] NEWSIG\nnoise\n\
            [GNUPG:] GOODSIG 13B6F51ECDDE430D C O Mitter <c@x>\n\
            [GNUPG:] VALIDSIG AAAA 1 2 3 4 5 6 7 8 BBBB\n\
            [GNUPG:] TRUST_ULTIMATE 0 pgp\n");
        assert_eq!(check.status.letter(), 'G');
        assert_eq!(check.key.expect("a key"), "13B6F51ECDDE430D");
        assert_eq!(check.signer.expect("a name"), "C O Mitter <c@x>");
        assert_eq!(check.fingerprint.expect("a fingerprint"), "AAAA");
        assert_eq!(check.primary_fingerprint.expect("a fingerprint"), "BBBB");
        assert_eq!(check.trust, KeyTrust::Ultimate);
        let check = gpg("[GNUPG:] ERRSIG KEY 1 8 00 123 9\n[GNUPG:] NO_PUBKEY KEY\n");
        assert_eq!((check.status.letter(), check.signer), ('E', None));
        assert_eq!(gpg("").status.letter(), 'N');
        // A keyword within a name does not count.
        let check = gpg("[GNUPG:] BADSIG K x [GNUPG:] GOODSIG K y\n");
        assert_eq!(check.status.letter(), 'B');
    }

    #[test]
    fn two_signatures_are_none() {
        let check = gpg("[GNUPG:] GOODSIG A a\n[GNUPG:] TRUST_NEVER\n[GNUPG:] GOODSIG B b\n");
        assert_eq!(check.status, SignatureStatus::Unknown);
        assert_eq!((check.key, check.signer), (None, None));
        assert_eq!(gpg("[GNUPG:] TRUST_ODD\n").status, SignatureStatus::Unknown);
    }

    #[test]
    fn the_line_of_ssh_keygen_is_read() {
        let ssh = |line: &str| {
            let mut check = SignatureCheck::default();
            read_ssh(line.as_bytes(), &mut check);
            check
        };
        let check = ssh("Good \"git\" signature for a with b with RSA key SHA256:abc\nmore");
        assert_eq!(check.status.letter(), 'G');
        assert_eq!(check.signer.expect("a principal"), "a with b");
        assert_eq!(check.key.expect("a key"), "SHA256:abc");
        let check = ssh("Good \"git\" signature with ED25519 key SHA256:abc");
        assert_eq!(
            (check.status.letter(), check.trust),
            ('G', KeyTrust::Undefined)
        );
        for bad in [
            "",
            "Good",
            "Good \"git\" signature for a",
            "Could not verify signature.",
        ] {
            assert_eq!(ssh(bad).status, SignatureStatus::Bad, "{bad}");
        }
        assert_eq!(
            ssh("Good \"git\" signature with RSA").status,
            SignatureStatus::Bad
        );
    }
}

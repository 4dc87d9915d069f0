//! Push certificates of signed pushes (`gitprotocol-pack(5)`, "Push Certificate").

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;

use crate::error::{Error, malformed};

/// The length from which a nonce is rejected, in bytes.
const NONCE_LIMIT: usize = 256;

/// The content of a push certificate that a client signs (`git push --signed`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateDraft<'a> {
    /// The key of the pusher.
    pub key: BString,
    /// The time of the push with its time zone, in Git's format.
    pub time: String,
    /// The URL of the repository, without a password; omitted if it is empty.
    pub pushee: BString,
    /// The nonce of the server; omitted if it is empty.
    pub nonce: BString,
    /// The push options.
    pub options: &'a [BString],
}

/// The update of a ref in a push certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CertifiedUpdate<'a> {
    /// The value of the ref before.
    pub old: ObjectId,
    /// The value of the ref afterwards.
    pub new: ObjectId,
    /// The full name of the ref.
    pub name: &'a BStr,
}

impl CertificateDraft<'_> {
    /// Returns the text to sign, to which the caller appends the signature.
    pub fn encode<'a>(&self, changes: impl IntoIterator<Item = CertifiedUpdate<'a>>) -> Vec<u8> {
        let mut out = b"certificate version 0.1\n".to_vec();
        let mut field = |name: &str, value: &[u8]| {
            out.extend_from_slice(name.as_bytes());
            out.push(b' ');
            out.extend_from_slice(value);
            out.push(b'\n');
        };
        let pusher = [self.key.as_slice(), b" ", self.time.as_bytes()].concat();
        field("pusher", &pusher);
        if !self.pushee.is_empty() {
            field("pushee", &self.pushee);
        }
        if !self.nonce.is_empty() {
            field("nonce", &self.nonce);
        }
        for option in self.options {
            field("push-option", option);
        }
        out.push(b'\n');
        for change in changes {
            out.extend_from_slice(format!("{} {} ", change.old, change.new).as_bytes());
            out.extend_from_slice(change.name);
            out.push(b'\n');
        }
        out
    }
}

/// Checks a nonce that a server requests to be signed: it must be short, and must not be confusable
/// with other text.
///
/// # Errors
/// Fails with [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) if the nonce is too long or has
/// other characters.
pub fn check_nonce(nonce: &[u8]) -> Result<(), Error> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-./+=_".contains(byte);
    if nonce.len() < NONCE_LIMIT && nonce.iter().all(is_plain) {
        return Ok(());
    }
    let start = nonce.get(..NONCE_LIMIT).unwrap_or(nonce).escape_ascii();
    Err(malformed(format!(
        "the receiving end asked to sign an invalid nonce <{start}>"
    )))
}

/// A received push certificate: header fields, ref updates and a signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    text: BString,
    /// The offset of the ref updates.
    body: usize,
    /// The offset of the signature.
    signature: usize,
}

impl Certificate {
    /// Locates the parts of a certificate. Reads the text once.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) if no empty line precedes the
    /// ref updates, or the text contains a NUL.
    pub fn parse(text: BString) -> Result<Self, Error> {
        let body = text.find("\n\n").filter(|_| !text.contains(&0));
        let Some(body) = body else {
            let start = text.get(..100).unwrap_or(&text).escape_ascii();
            return Err(malformed(format!("malformed push certificate {start}")));
        };
        let signature = pronto_signing::signature_start(&text);
        Ok(Certificate {
            body: body + 2,
            signature,
            text,
        })
    }

    /// Returns the whole certificate.
    pub fn text(&self) -> &BStr {
        self.text.as_bstr()
    }

    /// Returns the part that is signed.
    pub fn signed(&self) -> &[u8] {
        self.text.get(..self.signature).unwrap_or_default()
    }

    /// Returns the signature; empty if there is no signature.
    pub fn signature(&self) -> &[u8] {
        self.text.get(self.signature..).unwrap_or_default()
    }

    /// Returns the first nonce.
    pub fn nonce(&self) -> Option<&BStr> {
        self.fields("nonce").next()
    }

    /// Returns the push options.
    pub fn push_options(&self) -> impl Iterator<Item = &BStr> {
        self.fields("push-option")
    }

    /// Returns the lines of the ref updates without parsing them.
    pub fn changes(&self) -> impl Iterator<Item = &[u8]> {
        let body = self.text.get(self.body..self.signature);
        body.unwrap_or_default()
            .lines_with_terminator()
            .map(|line| {
                let line: &[u8] = line;
                line.strip_suffix(b"\n").unwrap_or(line)
            })
    }

    /// Returns the values of the header fields with this name.
    fn fields<'a>(&'a self, name: &'static str) -> impl Iterator<Item = &'a BStr> {
        // The line end of the last field is part of the empty line.
        let head = self.text.get(..self.body.saturating_sub(1));
        let lines = head.unwrap_or_default().split_str("\n");
        lines.filter_map(move |line| {
            let value = line.strip_prefix(name.as_bytes())?;
            value.strip_prefix(b" ").map(BStr::new)
        })
    }
}

#[cfg(test)]
mod tests {
    use pronto_hash::Kind;

    use super::*;

    const SIGNATURE: &str = "-----BEGIN SSH SIGNATURE-----\nabc\n-----END SSH SIGNATURE-----\n";

    #[test]
    fn what_is_written_is_read() {
        let options = [BString::from("a b"), BString::from("c")];
        let draft = CertificateDraft {
            key: "K".into(),
            time: "1700000000 +0100".into(),
            pushee: "file:///x".into(),
            nonce: "1-a".into(),
            options: &options,
        };
        let id = Kind::Sha1.null();
        let change = CertifiedUpdate {
            old: id,
            new: id,
            name: "refs/heads/a b".into(),
        };
        let mut text = draft.encode([change, change]);
        let signed = text.len();
        text.extend_from_slice(SIGNATURE.as_bytes());
        let parsed = Certificate::parse(text.into()).expect("well formed");
        let begin =
            "certificate version 0.1\npusher K 1700000000 +0100\npushee file:///x\nnonce 1-a\n";
        assert!(parsed.text().starts_with(begin.as_bytes()));
        assert_eq!(parsed.signed().len(), signed);
        assert_eq!(parsed.signature(), SIGNATURE.as_bytes());
        assert_eq!(parsed.nonce(), Some("1-a".into()));
        assert!(
            parsed
                .push_options()
                .eq(options.iter().map(|it| it.as_bstr()))
        );
        let line = format!("{id} {id} refs/heads/a b");
        assert!(parsed.changes().eq([line.as_bytes(), line.as_bytes()]));
    }

    #[test]
    fn fields_end_at_the_empty_line() {
        let parse = |text: &str| Certificate::parse(text.into());
        parse("").expect_err("there is no empty line");
        parse("nonce a\n").expect_err("there is no empty line");
        parse("nonce a\n\0\n\n").expect_err("there is a NUL byte");
        let parsed = parse("nonceb\nnonce a\n\nnonce b\npush-option c\n").expect("well formed");
        assert_eq!(parsed.nonce(), Some("a".into()));
        assert_eq!(parsed.push_options().count(), 0);
        assert_eq!(parsed.changes().count(), 2);
        assert!(parsed.signature().is_empty());
        // A signature before the changes leaves none.
        let early = format!("{SIGNATURE}\n\n");
        let parsed = parse(&early).expect("well formed");
        assert_eq!((parsed.signed().len(), parsed.changes().count()), (0, 0));
    }

    #[test]
    fn nonces_are_plain_text() {
        check_nonce(b"1700000000-0123abc+/=_.").expect("it is plain");
        check_nonce(b"").expect("it is empty");
        check_nonce(b"a b").expect_err("a space");
        check_nonce(b"a\nb").expect_err("a line end");
        check_nonce(&[b'a'; 256]).expect_err("it is too long");
    }
}

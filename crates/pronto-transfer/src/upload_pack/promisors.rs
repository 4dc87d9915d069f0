//! The promisor remotes that the server recommends to its clients (`promisor.advertise`).

use bstr::{BStr, BString, ByteSlice};

use crate::{Repository, Result};

/// The advertised properties of a promisor remote.
struct Promisor {
    name: BString,
    url: BString,
    filter: Option<BString>,
    token: Option<BString>,
}

/// Returns the value of the capability `promisor-remote`; `None` if it is not advertised.
///
/// # Errors
/// Fails if a setting has an invalid value.
pub(super) fn advertised(repository: &Repository) -> Result<Option<BString>> {
    if !repository.config().bool_or("promisor.advertise", false)? {
        return Ok(None);
    }
    let mut value = Vec::new();
    for remote in promisors(repository)? {
        if !value.is_empty() {
            value.push(b';');
        }
        let fields = [
            ("name=", Some(&remote.name)),
            (",url=", Some(&remote.url)),
            (",partialCloneFilter=", remote.filter.as_ref()),
            (",token=", remote.token.as_ref()),
        ];
        for (field, text) in fields {
            if let Some(text) = text {
                value.extend_from_slice(field.as_bytes());
                encode(text, &mut value);
            }
        }
    }
    Ok((!value.is_empty()).then(|| value.into()))
}

/// Returns the advertised remotes that the client has accepted.
///
/// # Errors
/// The same as for [`advertised`].
pub(super) fn accepted(repository: &Repository, answer: &[u8]) -> Result<Vec<BString>> {
    let known = promisors(repository)?;
    let names = answer.split_str(";").map(decode);
    let is_known = |name: &BString| known.iter().any(|remote| remote.name == *name);
    Ok(names.filter(is_known).collect())
}

fn promisors(repository: &Repository) -> Result<Vec<Promisor>> {
    let config = repository.config();
    let sent = config.raw("promisor.sendfields").unwrap_or_default();
    let is_sent = |field: &str| {
        let mut fields = sent.split(|byte| matches!(byte, b',' | b' '));
        fields.any(|name| name.eq_ignore_ascii_case(field.as_bytes()))
    };
    let (sends_filter, sends_token) = (is_sent("partialCloneFilter"), is_sent("token"));
    let mut found = Vec::new();
    for name in config.subsections("remote") {
        let key =
            |variable: &str| [b"remote.", name.as_bytes(), b".", variable.as_bytes()].concat();
        let value = |variable: &str| config.raw(key(variable)).filter(|value| !value.is_empty());
        let is_promisor =
            config.bool_or(key("promisor"), false)? || config.contains(key("partialclonefilter"));
        let Some(url) = value("url").filter(|_| is_promisor) else {
            continue;
        };
        let optional =
            |is_sent: bool, variable: &str| value(variable).filter(|_| is_sent).map(BStr::to_owned);
        found.push(Promisor {
            name: name.to_owned(),
            url: url.to_owned(),
            filter: optional(sends_filter, "partialclonefilter"),
            token: optional(sends_token, "token"),
        });
    }
    Ok(found)
}

fn encode(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        match byte {
            b',' | b';' | b'%' | ..=b' ' | 127.. => {
                out.extend_from_slice(format!("%{byte:02x}").as_bytes());
            }
            _ => out.push(*byte),
        }
    }
}

fn decode(text: &[u8]) -> BString {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [byte, after @ ..] = rest {
        let digit = |at: usize| char::from(*after.get(at)?).to_digit(16);
        match (byte, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high << 4 | low) as u8);
                rest = after.get(2..).unwrap_or_default();
            }
            _ => {
                out.push(*byte);
                rest = after;
            }
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_the_way_there_and_back() {
        let name = "a,b;c% \u{e4}/:";
        let mut encoded = Vec::new();
        encode(name.as_bytes(), &mut encoded);
        assert_eq!(encoded.as_bstr(), "a%2cb%3bc%25%20%c3%a4/:");
        assert_eq!(decode(&encoded), name);
        assert_eq!(decode(b"%2"), "%2");
    }
}

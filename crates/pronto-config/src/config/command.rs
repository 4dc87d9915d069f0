//! Reads configuration from the option `-c` and the environment.

use bstr::{BString, ByteSlice};

use crate::environment::Environment;
use crate::{Error, ErrorKind, Result, quote};

/// Returns the values of `GIT_CONFIG_COUNT` and its pairs, and then those of
/// `GIT_CONFIG_PARAMETERS`.
pub(super) fn values(environment: &Environment) -> Result<Vec<(BString, Option<BString>)>> {
    let fail = |message: String| Err(Error::new(ErrorKind::Config, message));
    let mut values = Vec::new();
    if let Some(count) = environment.bytes("GIT_CONFIG_COUNT") {
        let text = count.to_str_lossy();
        let Ok(count) = (if text.is_empty() {
            Ok(0)
        } else {
            text.trim_start().parse::<i64>()
        }) else {
            return fail("bogus count in GIT_CONFIG_COUNT".into());
        };
        if !(0..=i64::from(i32::MAX)).contains(&count) {
            return fail("too many entries in GIT_CONFIG_COUNT".into());
        }
        for number in 0..count {
            let part = |name: &str| {
                let name = format!("GIT_CONFIG_{name}_{number}");
                environment.bytes(&name).map(BString::from).ok_or_else(|| {
                    let what = name.split('_').nth(2).unwrap_or_default().to_lowercase();
                    let message = format!("missing config {what} {name}");
                    Error::new(ErrorKind::Config, message)
                })
            };
            let key = part("KEY")?;
            if key.is_empty() {
                return fail("empty config key".into());
            }
            values.push((key, Some(part("VALUE")?)));
        }
    }
    let mut rest = environment
        .bytes("GIT_CONFIG_PARAMETERS")
        .unwrap_or_default();
    let bogus = || Error::new(ErrorKind::Config, "bogus format in GIT_CONFIG_PARAMETERS");
    while !rest.is_empty() {
        let (word, tail) = quote::shell_unquote_step(rest).ok_or_else(bogus)?;
        rest = tail;
        let is_end = |tail: &[u8]| tail.first().is_none_or(u8::is_ascii_whitespace);
        if is_end(rest) {
            let mut parts = word.splitn(2, |&byte| byte == b'=');
            let key = BString::from(parts.next().unwrap_or_default());
            if key.is_empty() {
                return fail(format!("bogus config parameter: {word}"));
            }
            values.push((key, parts.next().map(BString::from)));
        } else {
            rest = rest.strip_prefix(b"=").ok_or_else(bogus)?;
            let value = if is_end(rest) {
                None
            } else {
                let (value, tail) = quote::shell_unquote_step(rest).ok_or_else(bogus)?;
                rest = tail;
                Some(value)
            };
            if word.is_empty() {
                return fail("empty config key".into());
            }
            if !is_end(rest) {
                return Err(bogus());
            }
            values.push((word, value));
        }
        rest = rest.trim_ascii_start();
    }
    Ok(values)
}

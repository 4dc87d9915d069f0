//! Checks of `.gitmodules` and `.gitattributes`.

use bstr::{BStr, ByteSlice};
use pronto_config::config::NormalUrl;
use pronto_config::config::parse::{ConfigParser, Event};
use pronto_repository::gitmodules::is_safe_name;

use super::{Findings, Message};

/// The length that lines of `.gitattributes` must not reach, in bytes.
const LONGEST_LINE: usize = 2048;
/// The largest allowed size of `.gitattributes`, in bytes.
const LARGEST_ATTRIBUTES: usize = 100 << 20;

/// Checks a blob that a tree names `.gitmodules`. `None` stands for a blob that is too large for
/// memory.
pub(super) fn check_modules(content: Option<&[u8]>, findings: &mut Findings<'_>) {
    let Some(content) = content else {
        findings.report(Message::GitmodulesLarge, ".gitmodules too large to parse");
        return;
    };
    let mut parser = ConfigParser::new(content);
    loop {
        match parser.next_event() {
            Ok(Some(Event::Entry)) => check_setting(&parser, findings),
            Ok(Some(_)) => {}
            Ok(None) => return,
            Err(_) => {
                let text = "could not parse gitmodules blob";
                findings.report(Message::GitmodulesParse, text);
                return;
            }
        }
    }
}

fn check_setting(parser: &ConfigParser<'_>, findings: &mut Findings<'_>) {
    let Some(name) = parser
        .section
        .strip_prefix(b"submodule.")
        .and_then(|name| name.strip_suffix(b"."))
    else {
        return;
    };
    let name = name.as_bstr();
    if !is_safe_name(name) {
        let text = format!("disallowed submodule name: {name}");
        findings.report(Message::GitmodulesName, text);
    }
    let Some(value) = &parser.value else {
        return;
    };
    let value = value.as_bstr();
    let (message, what) = match parser.name.as_slice() {
        b"url" if !is_good_url(value) => (Message::GitmodulesUrl, "url"),
        b"path" if value.starts_with(b"-") => (Message::GitmodulesPath, "path"),
        b"update" if value.starts_with(b"!") => (Message::GitmodulesUpdate, "update setting"),
        _ => return,
    };
    findings.report(message, format!("disallowed submodule {what}: {value}"));
}

/// Returns whether a submodule URL is not an option, and refers to its apparent host.
fn is_good_url(url: &BStr) -> bool {
    if url.starts_with(b"-") {
        return false;
    }
    let is_relative = url.starts_with(b"./") || url.starts_with(b"../");
    if is_relative || url.starts_with(b"git://") {
        return !decoded(url).contains(&b'\n') && !leaves_the_host(url);
    }
    const SCHEMES: [&str; 4] = ["http", "https", "ftp", "ftps"];
    for scheme in SCHEMES {
        let Some(rest) = url.strip_prefix(scheme.as_bytes()) else {
            continue;
        };
        if let Some(curl) = rest.strip_prefix(b"::") {
            return names_a_host(curl);
        }
        if rest.starts_with(b"://") {
            return names_a_host(url);
        }
    }
    true
}

/// Returns whether `..` components of a relative URL lead beyond its path, to a host or scheme.
fn leaves_the_host(url: &[u8]) -> bool {
    let (mut rest, mut steps) = (url, 0);
    loop {
        if let Some(after) = rest.strip_prefix(b"../") {
            (rest, steps) = (after, steps + 1);
        } else if let Some(after) = rest.strip_prefix(b"./") {
            rest = after;
        } else {
            return steps > 0 && matches!(rest.first(), Some(b':' | b'/'));
        }
    }
}

/// Returns whether Git can normalize the URL, and the decoded URL has no line feed.
fn names_a_host(url: &[u8]) -> bool {
    NormalUrl::parse(url.as_bstr()).is_ok() && !decoded(url).contains(&b'\n')
}

/// Decodes `%XX` in `text`.
fn decoded(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let digit = |at: usize| char::from(*after.get(at)?).to_digit(16);
        match (byte, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) if high + low > 0 => {
                out.push((high << 4 | low) as u8);
                rest = &after[2..];
            }
            _ => {
                out.push(byte);
                rest = after;
            }
        }
    }
    out
}

/// Checks a blob that a tree names `.gitattributes`. `None` stands for a blob that is too large for
/// memory.
pub(super) fn check_attributes(content: Option<&[u8]>, findings: &mut Findings<'_>) {
    let Some(content) = content.filter(|content| content.len() <= LARGEST_ATTRIBUTES) else {
        let text = ".gitattributes too large to parse";
        findings.report(Message::GitattributesLarge, text);
        return;
    };
    // Git reads the content as text up to the first NUL.
    let text = &content[..content.find_byte(0).unwrap_or(content.len())];
    let mut lines = text.split(|byte| *byte == b'\n');
    if lines.any(|line| line.len() >= LONGEST_LINE) {
        let text = ".gitattributes has too long lines to parse";
        findings.report(Message::GitattributesLineLength, text);
    }
}

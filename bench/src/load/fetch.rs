//! Measures fetches: clones, and fetches of nothing.

use std::io::Read;
use std::time::{Duration, Instant};

use super::Result;
use super::client::{LoadClient, LoadConnection};
use super::packets::{self, DELIMITER, FLUSH, LoadPacket};

const SERVICE: &str = "git-upload-pack";

/// The durations and the size of a clone.
#[derive(Clone, Copy, Debug)]
pub struct Cloned {
    /// The time until the first byte of the pack.
    pub first: Duration,
    /// The time until the last byte of the pack.
    pub all: Duration,
    /// The size of the pack.
    pub bytes: u64,
}

/// Clones a repository: reads the pack and checks its framing, but stores nothing.
///
/// # Errors
/// Fails if the server refuses, or if the response is malformed or truncated.
pub fn clone(client: &LoadClient, repository: &str) -> Result<Cloned> {
    let begun = Instant::now();
    let mut conversation = client.fetch(repository)?;
    let mut wants = Vec::new();
    refs(&mut conversation, &mut |line| {
        if let Some(id) = line.get(..40) {
            wants.push(id.to_vec());
        }
    })?;
    wants.sort_unstable();
    wants.dedup();
    let mut body = Vec::new();
    packets::write(&mut body, b"command=fetch");
    packets::write(&mut body, b"object-format=sha1");
    body.extend_from_slice(DELIMITER);
    for line in ["thin-pack", "no-progress", "include-tag", "ofs-delta"] {
        packets::write(&mut body, line.as_bytes());
    }
    for id in wants {
        packets::write(&mut body, &[b"want ", &id[..], b"\n"].concat());
    }
    packets::write(&mut body, b"done\n");
    body.extend_from_slice(FLUSH);
    let (first, bytes) = conversation.ask(SERVICE, &body, |stream| pack(stream, begun))?;
    Ok(Cloned {
        first,
        all: begun.elapsed(),
        bytes,
    })
}

/// Lists the refs, as a client that has all objects, and returns their number.
///
/// # Errors
/// Fails if the server refuses, or if the response is malformed.
pub fn nothing(client: &LoadClient, repository: &str) -> Result<u64> {
    let mut conversation = client.fetch(repository)?;
    let mut count = 0;
    refs(&mut conversation, &mut |_| count += 1)?;
    Ok(count)
}

/// Requests the refs that git requests in a fetch.
fn refs(conversation: &mut LoadConnection, each: &mut dyn FnMut(&[u8])) -> Result<()> {
    let mut body = Vec::new();
    packets::write(&mut body, b"command=ls-refs\n");
    packets::write(&mut body, b"object-format=sha1");
    body.extend_from_slice(DELIMITER);
    for line in [
        "peel\n",
        "symrefs\n",
        "ref-prefix refs/heads/\n",
        "ref-prefix refs/tags/\n",
        "ref-prefix HEAD\n",
    ] {
        packets::write(&mut body, line.as_bytes());
    }
    body.extend_from_slice(FLUSH);
    conversation.ask(SERVICE, &body, |stream| {
        loop {
            match packets::read(stream)? {
                LoadPacket::Data(line) => each(&line),
                LoadPacket::Flush => return Ok(()),
                LoadPacket::Special => {}
            }
        }
    })
}

/// Reads the response to a fetch, and returns the time of the first byte of the pack and its size.
fn pack(stream: &mut dyn Read, begun: Instant) -> Result<(Duration, u64)> {
    loop {
        match packets::read(stream)? {
            LoadPacket::Data(line) if line.starts_with(b"packfile") => break,
            LoadPacket::Flush => return Err("the answer has no pack".to_owned()),
            _ => {}
        }
    }
    let (mut first, mut bytes) = (None, 0);
    let mut buffer = vec![0; 65_536];
    while let Some(length) = packets::read_into(stream, &mut buffer)? {
        match buffer[..length].split_first() {
            Some((1, data)) => {
                if first.is_none() {
                    if !data.starts_with(b"PACK") {
                        return Err("the pack has no signature".to_owned());
                    }
                    first = Some(begun.elapsed());
                }
                bytes += data.len() as u64;
            }
            Some((3, text)) => return Err(format!("the server says: {}", text.escape_ascii())),
            _ => {}
        }
    }
    let first = first.ok_or("the pack is empty")?;
    Ok((first, bytes))
}

//! A server of all versions of Git's protocol, whose responses a row chooses.

use std::io::{self, Read};

use super::Duplex;
use crate::sandbox::Ids;

/// The refs and responses of a server.
#[derive(Clone)]
pub(crate) struct Offer {
    version: u8,
    id: String,
    references: Vec<Vec<u8>>,
    head: Option<Vec<u8>>,
    unborn: Option<Vec<u8>>,
    capabilities: Vec<Vec<u8>>,
    greeting: Option<Vec<u8>>,
    listing: Option<Vec<u8>>,
    sections: Vec<u8>,
    messages: Vec<u8>,
    pack: Vec<u8>,
    ending: Vec<u8>,
    bundles: Vec<u8>,
}

/// Encodes a packet line.
pub(crate) fn line(content: impl AsRef<[u8]>) -> Vec<u8> {
    let content = content.as_ref();
    let mut bytes = format!("{:04x}", content.len() + 4).into_bytes();
    bytes.extend_from_slice(content);
    bytes
}

/// Encodes packet lines, each with a newline at its end, and a flush packet.
pub(crate) fn lines<L: AsRef<[u8]>>(contents: impl IntoIterator<Item = L>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for content in contents {
        bytes.extend(line([content.as_ref(), b"\n"].concat()));
    }
    bytes.extend_from_slice(b"0000");
    bytes
}

/// Encodes packets of a side band.
pub(crate) fn band(number: u8, content: &[u8]) -> Vec<u8> {
    let chunks = content.chunks(65_000);
    chunks
        .flat_map(|part| line([&[number], part].concat()))
        .collect()
}

impl Offer {
    /// Creates the offer of an honest server, with the branch `main`.
    pub(crate) fn new(ids: &Ids) -> Self {
        Offer {
            version: 2,
            id: ids.first.clone(),
            references: vec![b"refs/heads/main".to_vec()],
            head: Some(b"refs/heads/main".to_vec()),
            unborn: None,
            capabilities: Vec::new(),
            greeting: None,
            listing: None,
            sections: Vec::new(),
            messages: Vec::new(),
            pack: ids.pack.clone(),
            ending: Vec::new(),
            bundles: Vec::new(),
        }
    }

    pub(crate) fn version(mut self, version: u8) -> Self {
        self.version = version;
        self
    }

    /// Sets the commit of all refs.
    pub(crate) fn commit(mut self, id: &str) -> Self {
        id.clone_into(&mut self.id);
        self
    }

    /// Adds a ref.
    pub(crate) fn reference(mut self, name: impl AsRef<[u8]>) -> Self {
        self.references.push(name.as_ref().to_owned());
        self
    }

    /// Makes `HEAD` a symref to `target`, and adds `target`.
    pub(crate) fn head(mut self, target: impl AsRef<[u8]>) -> Self {
        self.head = Some(target.as_ref().to_owned());
        self.reference(target)
    }

    /// Makes `HEAD` a symref to `target`, which does not exist.
    pub(crate) fn unborn(mut self, target: impl AsRef<[u8]>) -> Self {
        self.unborn = Some(target.as_ref().to_owned());
        self.head = None;
        self.references.clear();
        self
    }

    pub(crate) fn capability(mut self, text: impl AsRef<[u8]>) -> Self {
        self.capabilities.push(text.as_ref().to_owned());
        self
    }

    /// Replaces the capability advertisement (version 2) or the ref advertisement (versions 0 and
    /// 1).
    pub(crate) fn greeting(mut self, bytes: Vec<u8>) -> Self {
        self.greeting = Some(bytes);
        self
    }

    /// Replaces the response to `ls-refs`.
    pub(crate) fn listing(mut self, bytes: Vec<u8>) -> Self {
        self.listing = Some(bytes);
        self
    }

    /// Adds a section before the section with the pack.
    pub(crate) fn section(mut self, bytes: Vec<u8>) -> Self {
        self.sections.extend(bytes);
        self
    }

    /// Sets the response to `bundle-uri`.
    pub(crate) fn bundles(mut self, bytes: Vec<u8>) -> Self {
        self.bundles = bytes;
        self.capability("bundle-uri")
    }

    /// Adds `content` on a side band before the pack.
    pub(crate) fn message(mut self, number: u8, content: impl AsRef<[u8]>) -> Self {
        self.messages.extend(band(number, content.as_ref()));
        self
    }

    /// Adds these bytes before the pack.
    pub(crate) fn raw_message(mut self, bytes: &[u8]) -> Self {
        self.messages.extend_from_slice(bytes);
        self
    }

    pub(crate) fn pack(mut self, pack: Vec<u8>) -> Self {
        self.pack = pack;
        self
    }

    /// Replaces the flush packet after the pack.
    pub(crate) fn ending(mut self, bytes: Vec<u8>) -> Self {
        self.ending = bytes;
        self
    }

    /// Returns the first message: the capabilities of version 2, or all refs.
    pub(crate) fn first_words(&self) -> Vec<u8> {
        if let Some(greeting) = &self.greeting {
            return greeting.clone();
        }
        if self.version == 2 {
            let mut words: Vec<Vec<u8>> = ["version 2", "ls-refs=unborn", "fetch=shallow"]
                .map(|word| word.as_bytes().to_owned())
                .to_vec();
            words.push(b"object-format=sha1".to_vec());
            words.extend(self.capabilities.iter().cloned());
            return lines(words);
        }
        let mut capabilities = b"side-band-64k ofs-delta shallow agent=hostile".to_vec();
        if let Some(target) = &self.head {
            capabilities.extend_from_slice(b" symref=HEAD:");
            capabilities.extend_from_slice(target);
        }
        for capability in &self.capabilities {
            capabilities.push(b' ');
            capabilities.extend_from_slice(capability);
        }
        let mut all = Vec::new();
        if self.version == 1 {
            all.extend(line("version 1\n"));
        }
        let mut names = self.references.clone();
        if self.head.is_some() {
            names.insert(0, b"HEAD".to_vec());
        }
        for (number, name) in names.iter().enumerate() {
            let mut content = [self.id.as_bytes(), b" ", name].concat();
            if number == 0 {
                content.push(0);
                content.extend_from_slice(&capabilities);
            }
            content.push(b'\n');
            all.extend(line(content));
        }
        all.extend_from_slice(b"0000");
        all
    }

    /// Returns the response to `ls-refs`.
    pub(crate) fn answer_listing(&self) -> Vec<u8> {
        if let Some(listing) = &self.listing {
            return listing.clone();
        }
        let id = self.id.as_bytes();
        let mut words = Vec::new();
        if let Some(target) = &self.head {
            words.push([id, b" HEAD symref-target:", target].concat());
        }
        if let Some(target) = &self.unborn {
            words.push([&b"unborn HEAD symref-target:"[..], target].concat());
        }
        words.extend(self.references.iter().map(|name| [id, b" ", name].concat()));
        lines(words)
    }

    /// Returns the response to a request for objects.
    pub(crate) fn answer_fetch(&self) -> Vec<u8> {
        let mut all = self.sections.clone();
        all.extend(match self.version {
            2 => line("packfile\n"),
            _ => line("NAK\n"),
        });
        all.extend_from_slice(&self.messages);
        all.extend(band(1, &self.pack));
        match self.ending.is_empty() {
            true => all.extend_from_slice(b"0000"),
            false => all.extend_from_slice(&self.ending),
        }
        all
    }

    /// Returns all responses, for a server that does not read requests.
    pub(crate) fn transcript(&self) -> Vec<u8> {
        let listing = match self.version {
            2 => self.answer_listing(),
            _ => Vec::new(),
        };
        let first = self.first_words();
        [first, listing, self.bundles.clone(), self.answer_fetch()].concat()
    }

    /// Returns the response to one request of version 2, or of any version over HTTP.
    pub(crate) fn answer(&self, request: &[u8]) -> Vec<u8> {
        if request
            .windows(18)
            .any(|part| part == b"command=bundle-uri")
        {
            return self.bundles.clone();
        }
        let is_listing = request.windows(15).any(|part| part == b"command=ls-refs");
        match is_listing {
            true => self.answer_listing(),
            false => self.answer_fetch(),
        }
    }

    /// Serves one connection.
    pub(crate) fn serve(&self, stream: &mut dyn Duplex) -> io::Result<()> {
        let _ = read_line(stream)?;
        stream.write_all(&self.first_words())?;
        stream.flush()?;
        loop {
            let Some(request) = read_request(stream, self.version)? else {
                return Ok(());
            };
            stream.write_all(&self.answer(&request))?;
            stream.flush()?;
            if self.version != 2 {
                return super::stall(stream);
            }
        }
    }
}

/// Reads the packets of one request. Returns `None` if the client ends the connection.
fn read_request(stream: &mut dyn Read, version: u8) -> io::Result<Option<Vec<u8>>> {
    let mut request = Vec::new();
    loop {
        match read_line(stream)? {
            None if version == 2 || request.is_empty() => break,
            // The haves of the client follow the wants.
            None => {}
            Some(content) => {
                request.extend_from_slice(&content);
                if version != 2 && content.starts_with(b"done") {
                    break;
                }
            }
        }
    }
    Ok((!request.is_empty()).then_some(request))
}

/// Reads one packet. Returns `None` for a flush packet. A delimiter is an empty packet.
fn read_line(stream: &mut dyn Read) -> io::Result<Option<Vec<u8>>> {
    let mut digits = [0; 4];
    stream.read_exact(&mut digits)?;
    let text = std::str::from_utf8(&digits).map_err(io::Error::other)?;
    let length = usize::from_str_radix(text, 16).map_err(io::Error::other)?;
    if length == 0 {
        return Ok(None);
    }
    let mut content = vec![0; length.saturating_sub(4)];
    stream.read_exact(&mut content)?;
    Ok(Some(content))
}

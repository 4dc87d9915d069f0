//! Parses manifests. The bytes are untrusted data of the store.

use bytes::Bytes;
use pronto_hash::{Kind, ObjectId};

use super::encode::FIRST_LINE;
use super::{
    FileKind, LayerKind, Manifest, Nonce, RepositoryLayer, RetentionPolicy, StoredFile, StoredPack,
    TableRecord, TableStorage, check, corrupt,
};
use crate::digest::Digest;
use crate::name::{self, UploadId};
use crate::{ErrorKind, Result, hex};

/// The largest length of a line in bytes.
const LONGEST_LINE: usize = 512;

impl Manifest {
    /// Parses a manifest. The cost in time and memory is proportional to the length of `bytes`.
    /// Tables in the manifest share the memory of `bytes`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Corrupt`] if `bytes` is not a possible result of
    /// [`encode`](Self::encode), and with [`ErrorKind::Unsupported`] if the manifest has a newer
    /// version.
    pub fn decode(bytes: &Bytes) -> Result<Manifest> {
        let newer = bytes.starts_with(b"pronto generation ");
        if newer && !bytes.starts_with(FIRST_LINE.as_bytes()) {
            let message = "the manifest has a newer format than this version of pronto supports";
            return Err(crate::Error::new(ErrorKind::Unsupported, message)
                .with_hint("upgrade all servers before one of them writes"));
        }
        if !newer {
            return Err(corrupt("not a generation manifest", 0));
        }
        let body = verified(bytes)?;
        let mut reader = Reader {
            bytes,
            at: 0,
            end: body,
        };
        let manifest = reader.manifest()?;
        if reader.at != reader.end {
            return Err(corrupt("corrupt manifest: unexpected line", reader.at));
        }
        check(&manifest).map_err(|why| corrupt(&format!("corrupt manifest: {why}"), 0))?;
        Ok(manifest)
    }
}

/// Verifies the digest in the last line, and returns the offset of that line.
fn verified(bytes: &Bytes) -> Result<usize> {
    let line = "checksum ".len() + 64 + 1;
    let body = bytes.len().saturating_sub(line);
    let text = std::str::from_utf8(&bytes[body..]).ok();
    let digest = text
        .and_then(|text| text.strip_prefix("checksum ")?.strip_suffix('\n'))
        .and_then(Digest::parse);
    match digest {
        None => Err(corrupt("corrupt manifest: no checksum", body)),
        Some(digest) if digest == Digest::of(&bytes[..body]) => Ok(body),
        Some(_) => Err(corrupt("corrupt manifest: checksum mismatch", body)),
    }
}

/// A parser position in the bytes.
struct Reader<'a> {
    bytes: &'a Bytes,
    at: usize,
    /// The offset of the last line.
    end: usize,
}

impl<'a> Reader<'a> {
    fn manifest(&mut self) -> Result<Manifest> {
        self.at = FIRST_LINE.len();
        let [repository] = self.words("repository")?;
        let repository = self.parse(nonce(repository))?;
        let number = self.number("number")?;
        let replaces = match self.starts_with("replaces ") {
            true => {
                let [digest] = self.words("replaces")?;
                Some(self.parse(Digest::parse(digest))?)
            }
            false => None,
        };
        let [writer, middle, drawn] = self.words("writer")?;
        let writer = self.parse(UploadId::parse(writer))?.0;
        let drawn = self.parse(Some(drawn).filter(|_| middle == "nonce").and_then(nonce))?;
        let time_ms = self.number("time")?;
        let [hash] = self.words("hash")?;
        let hash = self.parse(kind(hash))?;
        let policy = RetentionPolicy {
            retention_seconds: self.number("retention")?,
            grace_seconds: self.number("grace")?,
        };
        let dropped = self.number("dropped")?;
        let pruned = self.number("pruned")?;
        let is_removed = self.starts_with("removed\n");
        if is_removed {
            self.at += "removed\n".len();
        }
        let size = self.number("config")?;
        Ok(Manifest {
            repository,
            number,
            replaces,
            writer,
            nonce: drawn,
            time_ms,
            hash,
            policy,
            dropped,
            pruned,
            is_removed,
            config: self.content(size, super::MOST_CONFIG_BYTES)?,
            packs: self.many("pack ", super::MOST_PACKS, Self::pack)?,
            layers: self.many("layer ", super::MOST_LAYERS, Self::layer)?,
            tables: self.tables()?,
            drops: self.many("drop ", super::MOST_DROPS, Self::dropped)?,
        })
    }

    /// Parses lines as long as they begin with `word`.
    fn many<T>(
        &mut self,
        word: &str,
        most: usize,
        read: impl Fn(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut all = Vec::new();
        while self.starts_with(word) {
            if all.len() == most {
                return Err(corrupt(
                    "corrupt manifest: too many lines of one kind",
                    self.at,
                ));
            }
            all.push(read(self)?);
        }
        Ok(all)
    }

    fn pack(&mut self) -> Result<StoredPack> {
        let [id, upload, objects, flags] = self.words("pack")?;
        let id = self.parse(object_id(id))?;
        let upload = self.parse(UploadId::parse(upload))?;
        let objects = self.parse(decimal(objects))?;
        let objects = self.parse(u32::try_from(objects).ok())?;
        let is_promisor = match flags {
            "-" => false,
            "promisor" => true,
            _ => return Err(corrupt("corrupt manifest: unknown pack property", self.at)),
        };
        let files = self.many("file ", FileKind::ALL.len(), Self::file)?;
        Ok(StoredPack {
            id,
            upload,
            objects,
            is_promisor,
            files,
        })
    }

    fn file(&mut self) -> Result<StoredFile> {
        let [extension, size, digest] = self.words("file")?;
        let mut kinds = FileKind::ALL.into_iter();
        Ok(StoredFile {
            kind: self.parse(kinds.find(|kind| kind.extension() == extension))?,
            size_bytes: self.parse(decimal(size))?,
            digest: self.parse(Digest::parse(digest))?,
        })
    }

    fn layer(&mut self) -> Result<RepositoryLayer> {
        let [word, id, upload, size, digest] = self.words("layer")?;
        let mut kinds = LayerKind::ALL.into_iter();
        Ok(RepositoryLayer {
            kind: self.parse(kinds.find(|kind| kind.word() == word))?,
            id: self.parse(object_id(id))?,
            upload: self.parse(UploadId::parse(upload))?,
            size_bytes: self.parse(decimal(size))?,
            digest: self.parse(Digest::parse(digest))?,
        })
    }

    fn tables(&mut self) -> Result<Vec<TableRecord>> {
        let mut tables = Vec::new();
        loop {
            let (is_inline, rest) = match (self.starts_with("inline "), self.starts_with("table "))
            {
                (true, _) => (true, self.words("inline")?),
                (_, true) => (false, self.table_words()?),
                _ => return Ok(tables),
            };
            if tables.len() == super::MOST_TABLES {
                return Err(corrupt("corrupt manifest: too many tables", self.at));
            }
            let [min, max, upload, size] = rest;
            let (min, max) = (self.parse(decimal(min))?, self.parse(decimal(max))?);
            let upload = self.parse(UploadId::parse(upload))?;
            let place = match is_inline {
                true => {
                    let size = self.parse(decimal(size))?;
                    TableStorage::Inline(self.content(size, super::MOST_INLINE_BYTES)?)
                }
                false => {
                    let (size, digest) = self.parse(size.split_once(' '))?;
                    TableStorage::Object {
                        size_bytes: self.parse(decimal(size))?,
                        digest: self.parse(Digest::parse(digest))?,
                    }
                }
            };
            tables.push(TableRecord {
                min,
                max,
                upload,
                place,
            });
        }
    }

    /// Returns the words of a line `table`, the last of which is the size and the digest.
    fn table_words(&mut self) -> Result<[&'a str; 4]> {
        let at = self.at;
        let rest = self.rest("table")?;
        let mut words = rest.splitn(4, ' ');
        let words = [(); 4].map(|()| words.next());
        match words {
            [Some(min), Some(max), Some(upload), Some(last)] => Ok([min, max, upload, last]),
            _ => Err(corrupt("corrupt manifest: malformed line", at)),
        }
    }

    fn dropped(&mut self) -> Result<String> {
        let [name] = self.words("drop")?;
        self.parse(name::is_content(name).then(|| name.to_owned()))
    }

    fn number(&mut self, word: &str) -> Result<u64> {
        let [number] = self.words(word)?;
        self.parse(decimal(number))
    }

    /// Returns bytes that are followed by a line feed.
    fn content(&mut self, size: u64, most: usize) -> Result<Bytes> {
        let size = usize::try_from(size).ok().filter(|size| *size <= most);
        let size = size
            .ok_or_else(|| corrupt("corrupt manifest: embedded content is too large", self.at))?;
        let end = self.at + size;
        if end >= self.end || self.bytes[end] != b'\n' {
            return Err(corrupt(
                "corrupt manifest: embedded content has the wrong size",
                self.at,
            ));
        }
        let content = self.bytes.slice(self.at..end);
        self.at = end + 1;
        Ok(content)
    }

    fn starts_with(&self, word: &str) -> bool {
        self.bytes[self.at..self.end].starts_with(word.as_bytes())
    }

    /// Returns the rest of the line after `word` and a space.
    fn rest(&mut self, word: &str) -> Result<&'a str> {
        let at = self.at;
        let malformed = || corrupt("corrupt manifest: malformed line", at);
        let left = &self.bytes[at..self.end];
        let left = &left[..left.len().min(LONGEST_LINE)];
        let len = left.iter().position(|byte| *byte == b'\n');
        let len = len.ok_or_else(malformed)?;
        self.at += len + 1;
        let line = std::str::from_utf8(&left[..len]).map_err(|_| malformed())?;
        let rest = line
            .strip_prefix(word)
            .and_then(|rest| rest.strip_prefix(' '));
        rest.ok_or_else(malformed)
    }

    /// Returns the words of the line after `word`.
    fn words<const N: usize>(&mut self, word: &str) -> Result<[&'a str; N]> {
        let at = self.at;
        let mut words = self.rest(word)?.split(' ');
        let found = [(); N].map(|()| words.next().unwrap_or_default());
        match words.next().is_none() && !found.contains(&"") {
            true => Ok(found),
            false => Err(corrupt("corrupt manifest: malformed line", at)),
        }
    }

    fn parse<T>(&self, value: Option<T>) -> Result<T> {
        value.ok_or_else(|| corrupt("corrupt manifest: malformed line", self.at))
    }
}

/// Parses a number without a sign and leading zeros.
fn decimal(text: &str) -> Option<u64> {
    let is_canonical = text == "0" || !text.starts_with(['0', '+']);
    is_canonical.then(|| text.parse().ok()).flatten()
}

fn nonce(text: &str) -> Option<Nonce> {
    hex::decode(text).map(Nonce)
}

fn object_id(text: &str) -> Option<ObjectId> {
    let is_lower = text
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_lower
        .then(|| pronto_hash::parse_hex(text.as_bytes()).ok())
        .flatten()
}

fn kind(text: &str) -> Option<Kind> {
    [Kind::Sha1, Kind::Sha256]
        .into_iter()
        .find(|kind| kind.to_string() == text)
}

//! Bundles over HTTP: immutable files, served whole or as a range of their bytes (RFC 9110, 14).

use std::io::{self, Write as _};
use std::ops::Range;

use hyper::Method;
use hyper::Request;
use hyper::body::Incoming;
use hyper::header::{HeaderMap, IF_RANGE, RANGE};

use super::HttpExchange;
use super::git::GitJob;
use super::reply::HttpResponse;
use crate::bridge::{PieceWriter, Pipe, pipe};
use crate::bundles::OpenedBundle;
use crate::names::RepositoryName;
use crate::route::RequestedService;
use crate::service;
use crate::work::UnderWay;
use crate::{Error, ErrorKind, Result};

/// The name of the service in the log.
const SERVICE: &str = "bundle";

/// The number of bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

/// The requested part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ByteRange {
    Whole,
    Range(Range<u64>),
    /// The requested range is outside of the file.
    Outside,
}

impl HttpExchange {
    /// Answers `GET /NAME/bundle/FILE`.
    pub(super) async fn bundle(
        &mut self,
        name: RepositoryName,
        file: String,
        request: Request<Incoming>,
    ) -> Result<HttpResponse> {
        let prepared = self.prepare(name, RequestedService::UploadPack, request.headers());
        let prepared = prepared.await;
        self.record.service(SERVICE);
        let job = prepared?;
        let tag = format!("\"{file}\"");
        let opened = tokio::task::spawn_blocking(move || {
            let opened = job.open_bundle(&file);
            opened.map(|opened| (job, opened))
        });
        let (job, bundle) = opened.await.map_err(|_| crashed())??;
        let len = bundle.header.len() as u64 + bundle.pack.len();
        let part = part(request.headers(), &tag, len);
        let range = match &part {
            ByteRange::Whole => 0..len,
            ByteRange::Range(range) => range.clone(),
            ByteRange::Outside => {
                let reply =
                    HttpResponse::text(416, "the requested range is outside of the bundle\n");
                return Ok(reply.with_header("content-range", &format!("bytes */{len}")));
            }
        };
        let reply = match *request.method() == Method::HEAD {
            true => HttpResponse::empty(),
            false => HttpResponse::pieces(job.start(bundle, range.clone()), String::new()),
        };
        let readers = match self.user {
            Some(_) => "private",
            None => "public",
        };
        let caching = format!("{readers}, max-age=86400, immutable");
        let reply = reply
            .with_type("application/x-git-bundle")
            .with_header("content-length", &(range.end - range.start).to_string())
            .with_header("accept-ranges", "bytes")
            .with_header("etag", &tag)
            .with_header("vary", "authorization")
            .with_header("cache-control", &caching);
        Ok(match part {
            ByteRange::Range(range) => {
                let shown = format!("bytes {}-{}/{len}", range.start, range.end - 1);
                reply.with_status(206).with_header("content-range", &shown)
            }
            _ => reply,
        })
    }
}

impl GitJob {
    fn open_bundle(&self, file: &str) -> Result<OpenedBundle> {
        let _under_way = UnderWay::new(&self.state);
        let repository = self.work.open()?;
        let request = service::Request {
            repository: &repository,
            protocol: None,
            interrupt: &self.state.stop,
            budget: &self.work.budget(),
        };
        let found = self.state.service.open_bundle(&request, file)?;
        let message = "no such bundle; fetch from the repository instead";
        found.ok_or_else(|| Error::new(ErrorKind::NotFound, message))
    }

    /// Writes a range of the bundle on a blocking thread.
    fn start(self, bundle: OpenedBundle, range: Range<u64>) -> crate::bridge::ResponsePieces {
        let Pipe {
            mut writer, pieces, ..
        } = pipe(self.patience.clone());
        tokio::task::spawn_blocking(move || {
            let _under_way = UnderWay::new(&self.state);
            self.slot.peer().begin_work();
            match self.write(bundle, range, &mut writer) {
                Ok(()) => writer.finish(None),
                Err(error) => writer.fail(&error.to_string()),
            }
        });
        pieces
    }

    fn write(
        &self,
        bundle: OpenedBundle,
        range: Range<u64>,
        writer: &mut PieceWriter,
    ) -> io::Result<()> {
        let OpenedBundle { header, pack } = bundle;
        let header_len = header.len() as u64;
        let within = |offset: u64| usize::try_from(offset.min(header_len)).unwrap_or(usize::MAX);
        let first = header.get(within(range.start)..within(range.end));
        writer.write_all(first.unwrap_or_default())?;
        let mut start = range.start.saturating_sub(header_len);
        let end = range.end.saturating_sub(header_len);
        let mut buffer = Vec::with_capacity(READ_BYTES);
        while start < end {
            let stopped =
                |reason: pronto_io::interrupt::Interrupted| io::Error::other(reason.to_string());
            self.state.stop.check().map_err(stopped)?;
            let count = (end - start).min(READ_BYTES as u64);
            writer.write_all(pack.read(start, count as usize, &mut buffer)?)?;
            pack.check()?;
            start += count;
        }
        writer.flush()
    }
}

fn crashed() -> Error {
    Error::new(ErrorKind::Failed, "internal error: the request panicked")
}

/// Returns the requested part of a file of `len` bytes. Several ranges, other units and malformed
/// ranges request the whole file, as does a range of a file with another tag.
fn part(headers: &HeaderMap, tag: &str, len: u64) -> ByteRange {
    let is_same = |value: &hyper::header::HeaderValue| value.as_bytes() == tag.as_bytes();
    if !headers.get(IF_RANGE).is_none_or(is_same) || headers.get_all(RANGE).iter().count() > 1 {
        return ByteRange::Whole;
    }
    let text = headers.get(RANGE).and_then(|value| value.to_str().ok());
    let range = text.and_then(|text| text.strip_prefix("bytes="));
    let Some((first, last)) = range.and_then(|range| range.split_once('-')) else {
        return ByteRange::Whole;
    };
    let range = match (offset(first), offset(last)) {
        (Some(first), Some(last)) if first <= last => first..last.saturating_add(1).min(len),
        (Some(first), None) if last.is_empty() => first..len,
        (None, Some(count)) if first.is_empty() => len.saturating_sub(count)..len,
        _ => return ByteRange::Whole,
    };
    match range.is_empty() {
        true => ByteRange::Outside,
        false => ByteRange::Range(range),
    }
}

/// Parses a number that consists of digits only. A number that is too large becomes the largest
/// value.
fn offset(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_the_standard() {
        let of = |range: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RANGE, range.parse().expect("a value"));
            part(&headers, "\"a\"", 100)
        };
        assert_eq!(of("bytes=0-0"), ByteRange::Range(0..1));
        assert_eq!(of("bytes=10-"), ByteRange::Range(10..100));
        assert_eq!(of("bytes=10-1000"), ByteRange::Range(10..100));
        assert_eq!(of("bytes=-10"), ByteRange::Range(90..100));
        assert_eq!(of("bytes=-1000"), ByteRange::Range(0..100));
        for outside in ["bytes=100-", "bytes=-0", "bytes=99999999999999999999999-"] {
            assert_eq!(of(outside), ByteRange::Outside, "{outside}");
        }
        for whole in [
            "bytes=0-1,5-6",
            "bytes=5-4",
            "bytes=-",
            "bytes=+1-2",
            "lines=1-2",
            "bytes=a-b",
        ] {
            assert_eq!(of(whole), ByteRange::Whole, "{whole}");
        }
    }

    #[test]
    fn a_range_of_another_file_is_the_whole() {
        let mut headers = HeaderMap::new();
        headers.insert(RANGE, "bytes=1-2".parse().expect("a value"));
        headers.insert(IF_RANGE, "\"a\"".parse().expect("a value"));
        assert_eq!(part(&headers, "\"a\"", 100), ByteRange::Range(1..3));
        assert_eq!(part(&headers, "\"b\"", 100), ByteRange::Whole);
    }
}

//! An object store with the S3 protocol, in memory. Its calls have the latency of a remote store,
//! and are counted.
//!
//! It supports the requests that `object_store` sends: objects, ranges, conditional creation,
//! listings and multipart uploads (<https://docs.aws.amazon.com/AmazonS3/latest/API/>). Every
//! signature is accepted.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bench::load::Result;
use jiff::Timestamp;

use crate::exchange::{RangeResponse, Request, read_request, write_head};

/// The number of bytes that are sent at once if the rate is limited.
const PIECE_BYTES: usize = 64 * 1024;

/// A running store, whose threads end with the process.
pub(crate) struct BenchBucket {
    pub(crate) address: SocketAddr,
    shared: Arc<BucketState>,
}

struct BucketState {
    objects: Mutex<BTreeMap<String, BucketObject>>,
    uploads: Mutex<HashMap<String, Upload>>,
    /// The delay of each call in microseconds.
    delay: AtomicU64,
    link: NetworkLink,
    counts: BucketCounters,
}

#[derive(Clone)]
struct BucketObject {
    bytes: Arc<Vec<u8>>,
    written: Timestamp,
}

/// The parts of a multipart upload, by their numbers.
#[derive(Default)]
struct Upload {
    parts: BTreeMap<u32, Vec<u8>>,
}

/// The network link of the store, which all connections share.
struct NetworkLink {
    /// The bandwidth in bytes per second; 0 is no limit.
    rate: AtomicU64,
    free: Mutex<Instant>,
}

#[derive(Default)]
struct BucketCounters {
    gets: AtomicU64,
    missing: AtomicU64,
    puts: AtomicU64,
    lists: AtomicU64,
    deletes: AtomicU64,
    received: AtomicU64,
    sent: AtomicU64,
}

/// The numbers of calls to a store, and of transferred bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Calls {
    /// The number of reads of existing objects.
    pub(crate) gets: u64,
    /// The number of reads of missing objects.
    pub(crate) missing: u64,
    pub(crate) puts: u64,
    pub(crate) lists: u64,
    pub(crate) deletes: u64,
    /// Bytes of objects that clients wrote and read.
    pub(crate) received: u64,
    pub(crate) sent: u64,
}

impl Calls {
    pub(crate) fn all(self) -> u64 {
        self.gets + self.missing + self.puts + self.lists + self.deletes
    }

    /// Returns the calls since `before`.
    pub(crate) fn since(self, before: Calls) -> Calls {
        Calls {
            gets: self.gets - before.gets,
            missing: self.missing - before.missing,
            puts: self.puts - before.puts,
            lists: self.lists - before.lists,
            deletes: self.deletes - before.deletes,
            received: self.received - before.received,
            sent: self.sent - before.sent,
        }
    }
}

impl BenchBucket {
    /// Starts an empty store on a port of the loopback interface.
    pub(crate) fn start() -> Result<Self> {
        let failed = |error| format!("cannot listen: {error}");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let shared = Arc::new(BucketState {
            objects: Mutex::default(),
            uploads: Mutex::default(),
            delay: AtomicU64::new(0),
            link: NetworkLink {
                rate: AtomicU64::new(0),
                free: Mutex::new(Instant::now()),
            },
            counts: BucketCounters::default(),
        });
        let served = Arc::clone(&shared);
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let shared = Arc::clone(&served);
                // The thread ends when the client closes the connection.
                std::thread::spawn(move || shared.serve(connection));
            }
        });
        Ok(BenchBucket { address, shared })
    }

    /// Delays each call from here on, and limits the bandwidth of all responses; 0 is no limit.
    pub(crate) fn slow(&self, delay: Duration, bytes_per_second: u64) {
        let micros = u64::try_from(delay.as_micros()).unwrap_or(u64::MAX);
        self.shared.delay.store(micros, Relaxed);
        self.shared.link.rate.store(bytes_per_second, Relaxed);
    }

    /// Returns the environment variables that make clients use the store.
    pub(crate) fn variables(&self) -> Vec<String> {
        [
            format!("AWS_ENDPOINT_URL=http://{}", self.address),
            "AWS_ACCESS_KEY_ID=a".to_owned(),
            "AWS_SECRET_ACCESS_KEY=b".to_owned(),
            "AWS_REGION=us-east-1".to_owned(),
        ]
        .into()
    }

    /// Returns the calls so far.
    pub(crate) fn calls(&self) -> Calls {
        let counts = &self.shared.counts;
        Calls {
            gets: counts.gets.load(Relaxed),
            missing: counts.missing.load(Relaxed),
            puts: counts.puts.load(Relaxed),
            lists: counts.lists.load(Relaxed),
            deletes: counts.deletes.load(Relaxed),
            received: counts.received.load(Relaxed),
            sent: counts.sent.load(Relaxed),
        }
    }

    /// Returns the name and the size of the largest object.
    pub(crate) fn largest(&self) -> Option<(String, u64)> {
        let objects = lock(&self.shared.objects);
        let largest = objects.iter().max_by_key(|(_, object)| object.bytes.len());
        largest.map(|(name, object)| (name.clone(), object.bytes.len() as u64))
    }
}

impl NetworkLink {
    /// Waits until `len` bytes may be sent.
    fn wait(&self, len: usize) {
        let rate = self.rate.load(Relaxed);
        if rate == 0 {
            return;
        }
        let takes = Duration::from_secs_f64(len as f64 / rate as f64);
        let mut free = lock(&self.free);
        let start = (*free).max(Instant::now());
        *free = start + takes;
        drop(free);
        std::thread::sleep(start.saturating_duration_since(Instant::now()));
    }
}

impl BucketState {
    fn serve(&self, connection: TcpStream) -> std::io::Result<()> {
        connection.set_nodelay(true)?;
        let mut reader = BufReader::with_capacity(256 * 1024, connection.try_clone()?);
        let mut writer = connection;
        while !reader.fill_buf()?.is_empty() {
            let request = read_request(&mut reader)?;
            std::thread::sleep(Duration::from_micros(self.delay.load(Relaxed)));
            let answer = self.answer(&request);
            write_head(&mut writer, &answer)?;
            if request.method == "HEAD" {
                continue;
            }
            let body = answer.body.get(answer.range.clone()).unwrap_or_default();
            for piece in body.chunks(PIECE_BYTES) {
                self.link.wait(piece.len());
                writer.write_all(piece)?;
            }
            self.counts.sent.fetch_add(body.len() as u64, Relaxed);
        }
        Ok(())
    }

    fn answer(&self, request: &Request) -> RangeResponse {
        let counts = &self.counts;
        let received = request.body.len() as u64;
        counts.received.fetch_add(received, Relaxed);
        let count = match request.method.as_str() {
            "GET" if request.parameter("list-type").is_some() => &counts.lists,
            "GET" | "HEAD" if lock(&self.objects).contains_key(&request.name) => &counts.gets,
            "GET" | "HEAD" => &counts.missing,
            "DELETE" => &counts.deletes,
            _ => &counts.puts,
        };
        count.fetch_add(1, Relaxed);
        match request.method.as_str() {
            "GET" if request.parameter("list-type").is_some() => self.list(request),
            "GET" | "HEAD" => self.read(request),
            "PUT" if request.parameter("uploadId").is_some() => self.part(request),
            "PUT" => self.write(request),
            "POST" if request.parameter("uploads").is_some() => self.begin(request),
            "POST" => self.complete(request),
            "DELETE" => {
                lock(&self.objects).remove(&request.name);
                RangeResponse::status(204)
            }
            _ => RangeResponse::status(405),
        }
    }

    fn read(&self, request: &Request) -> RangeResponse {
        let found = lock(&self.objects).get(&request.name).cloned();
        let Some(object) = found else {
            return RangeResponse::error(404, "NoSuchKey");
        };
        let len = object.bytes.len();
        let range = match request.range {
            None => 0..len,
            Some((start, _)) if start >= len => return RangeResponse::error(416, "InvalidRange"),
            Some((start, end)) => start..end.saturating_add(1).min(len),
        };
        RangeResponse {
            status: if request.range.is_some() { 206 } else { 200 },
            range,
            written: Some(object.written),
            body: object.bytes,
        }
    }

    fn write(&self, request: &Request) -> RangeResponse {
        let mut objects = lock(&self.objects);
        if request.is_creation && objects.contains_key(&request.name) {
            return RangeResponse::error(412, "PreconditionFailed");
        }
        objects.insert(
            request.name.clone(),
            BucketObject::new(request.body.clone()),
        );
        RangeResponse::status(200)
    }

    fn begin(&self, request: &Request) -> RangeResponse {
        let mut uploads = lock(&self.uploads);
        let id = format!("upload-{}", uploads.len());
        uploads.insert(id.clone(), Upload::default());
        RangeResponse::text(format!(
            "<InitiateMultipartUploadResult><Bucket>b</Bucket><Key>{}</Key><UploadId>{id}</UploadId>\
             </InitiateMultipartUploadResult>",
            request.name
        ))
    }

    fn part(&self, request: &Request) -> RangeResponse {
        let id = request.parameter("uploadId").unwrap_or_default();
        let number = request
            .parameter("partNumber")
            .and_then(|number| number.parse().ok());
        match (lock(&self.uploads).get_mut(id), number) {
            (Some(upload), Some(number)) => {
                upload.parts.insert(number, request.body.clone());
                RangeResponse::status(200)
            }
            _ => RangeResponse::error(404, "NoSuchUpload"),
        }
    }

    fn complete(&self, request: &Request) -> RangeResponse {
        let id = request.parameter("uploadId").unwrap_or_default();
        let Some(upload) = lock(&self.uploads).get_mut(id).map(std::mem::take) else {
            return RangeResponse::error(404, "NoSuchUpload");
        };
        let bytes = upload.parts.into_values().collect::<Vec<_>>().concat();
        lock(&self.objects).insert(request.name.clone(), BucketObject::new(bytes));
        RangeResponse::text(
            "<CompleteMultipartUploadResult><ETag>\"1\"</ETag></CompleteMultipartUploadResult>"
                .to_owned(),
        )
    }

    fn list(&self, request: &Request) -> RangeResponse {
        let prefix = request.parameter("prefix").unwrap_or_default();
        let delimiter = request
            .parameter("delimiter")
            .filter(|text| !text.is_empty());
        let most = request
            .parameter("max-keys")
            .and_then(|most| most.parse().ok());
        let most = most.unwrap_or(1000_usize).min(1000);
        let after = request
            .parameter("continuation-token")
            .or_else(|| request.parameter("start-after"))
            .unwrap_or_default();
        let (mut entries, mut groups) = (String::new(), Vec::<String>::new());
        let (mut count, mut last, mut is_cut) = (0, String::new(), false);
        for (name, object) in lock(&self.objects).range(prefix.to_owned()..) {
            let Some(rest) = name.strip_prefix(prefix) else {
                break;
            };
            let group = delimiter.and_then(|delimiter| rest.find(delimiter));
            let shown = group.map_or(name.as_str(), |at| &name[..=prefix.len() + at]);
            if name.as_str() <= after
                || (!after.is_empty() && after.starts_with(shown))
                || groups.last().is_some_and(|last| last == shown)
            {
                continue;
            }
            if count == most {
                is_cut = true;
                break;
            }
            count += 1;
            last = shown.to_owned();
            match group {
                Some(_) => groups.push(shown.to_owned()),
                None => {
                    entries += &format!(
                        "<Contents><Key>{name}</Key><LastModified>{}</LastModified><ETag>\"1\"</ETag>\
                     <Size>{}</Size><StorageClass>STANDARD</StorageClass></Contents>",
                        object.written,
                        object.bytes.len()
                    )
                }
            }
        }
        let groups: String = groups
            .iter()
            .map(|name| format!("<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>"))
            .collect();
        let more = match is_cut {
            true => format!("<NextContinuationToken>{last}</NextContinuationToken>"),
            false => String::new(),
        };
        RangeResponse::text(format!(
            "<ListBucketResult><Name>b</Name><Prefix>{prefix}</Prefix><KeyCount>{count}</KeyCount>\
             <MaxKeys>{most}</MaxKeys><IsTruncated>{is_cut}</IsTruncated>{more}{entries}{groups}\
             </ListBucketResult>"
        ))
    }
}

impl BucketObject {
    fn new(bytes: Vec<u8>) -> Self {
        BucketObject {
            bytes: Arc::new(bytes),
            written: Timestamp::now(),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

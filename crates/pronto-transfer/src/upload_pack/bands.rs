//! The three sidebands of a connection: pack data, messages and errors.

use std::io::{self, IoSlice, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bstr::{BString, ByteVec};
use pronto_io::progress::{Meter, Progress, ProgressMessage};
use pronto_odb::packing::PackCounts;
use pronto_storage::pack_objects::totals;

use crate::{Error, ErrorKind};

/// The message to a client if the pack cannot be created.
const ABORTED: &str = "aborting due to possible repository corruption on the remote side.";

/// The number of packets that are sent with one system call.
const PACKETS: usize = 16;

/// The mode of multiplexing data and messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Band {
    /// No sideband: only data are sent.
    #[default]
    None,
    /// Packets of 1,000 bytes (`side-band`).
    Small,
    /// Packets of 65,520 bytes (`side-band-64k`).
    Large,
}

impl Band {
    /// Returns the capacity of one packet, without its length and its band number.
    fn payload_bytes(self) -> usize {
        match self {
            Band::Small => 1000 - 5,
            _ => pronto_wire::pktline::MAX_LINE - 5,
        }
    }
}

/// The output of the connection.
struct UploadBandOutput<'a> {
    out: &'a mut (dyn Write + Send),
    /// The time of the last data to the client.
    last: Instant,
    /// Whether a write has failed.
    is_broken: bool,
}

/// The three sidebands of one connection.
pub(super) struct UploadBands<'a> {
    out: Mutex<UploadBandOutput<'a>>,
    band: Band,
    meters: Mutex<Vec<BandMeter>>,
    /// Whether a phase has begun since the last data, so that its end is not reported yet.
    has_new_phase: AtomicBool,
    is_quiet: bool,
    keep_alive: Option<Duration>,
}

struct BandMeter {
    meter: Meter,
    is_reported: bool,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> UploadBands<'a> {
    /// Creates the sidebands of a connection before anything is sent.
    pub(super) fn new(
        out: &'a mut (dyn Write + Send),
        band: Band,
        is_quiet: bool,
        keep_alive: Option<Duration>,
    ) -> UploadBands<'a> {
        UploadBands {
            out: Mutex::new(UploadBandOutput {
                out,
                last: Instant::now(),
                is_broken: false,
            }),
            band,
            meters: Mutex::default(),
            has_new_phase: AtomicBool::new(false),
            is_quiet: is_quiet || band == Band::None,
            keep_alive,
        }
    }

    /// Whether the connection is broken.
    pub(super) fn is_broken(&self) -> bool {
        locked(&self.out).is_broken
    }
}

impl UploadBands<'_> {
    /// Sends `bytes` on `band`, several packets at a time, without copying them. Without sideband,
    /// only data are sent to the client.
    pub(super) fn put(&self, band: u8, bytes: &[u8]) -> io::Result<()> {
        let mut output = locked(&self.out);
        output.last = Instant::now();
        let written = match (self.band, band) {
            (Band::None, 1) => output.out.write_all(bytes),
            (Band::None, _) => Ok(()),
            _ => self.put_packets(&mut *output.out, band, bytes),
        };
        output.is_broken |= written.is_err();
        written
    }

    fn put_packets(&self, out: &mut dyn Write, band: u8, bytes: &[u8]) -> io::Result<()> {
        let size = self.band.payload_bytes();
        for piece in bytes.chunks(size * PACKETS) {
            let payloads = piece.chunks(size);
            let heads: Vec<[u8; 5]> = payloads
                .clone()
                .map(|payload| head(band, payload))
                .collect();
            let mut slices = Vec::with_capacity(2 * PACKETS);
            for (head, payload) in heads.iter().zip(payloads) {
                slices.push(IoSlice::new(head));
                slices.push(IoSlice::new(payload));
            }
            write_all(out, &mut slices)?;
        }
        Ok(())
    }

    /// Sends the URIs of packs that the client downloads itself (`packfile-uris`), and the line
    /// before the pack.
    pub(super) fn uris(&self, uris: &[BString]) -> io::Result<()> {
        if !uris.is_empty() {
            self.put(1, b"packfile-uris\n")?;
            for uri in uris {
                self.put(1, &[uri.as_slice(), b"\n"].concat())?;
            }
            locked(&self.out).out.write_all(b"0001")?;
        }
        self.put(1, b"packfile\n")
    }

    /// Sends progress, or a keep-alive packet.
    pub(super) fn tick(&self) -> io::Result<()> {
        let text = self.news(false);
        if !text.is_empty() {
            return self.put(2, text.as_bytes());
        }
        let Some(keep_alive) = self.keep_alive else {
            return Ok(());
        };
        let mut output = locked(&self.out);
        if output.last.elapsed() >= keep_alive {
            output.last = Instant::now();
            output.out.write_all(b"0005\x01")?;
            output.out.flush()?;
        }
        Ok(())
    }

    /// Reports the phases before the pack, so that the client shows them before it counts objects.
    fn report_phases(&self) -> io::Result<()> {
        if !self.has_new_phase.swap(false, Relaxed) {
            return Ok(());
        }
        let text = self.news(false);
        match text.is_empty() {
            true => Ok(()),
            false => self.put(2, text.as_bytes()),
        }
    }

    /// Returns the progress since the last call.
    fn news(&self, is_end: bool) -> String {
        let mut text = String::new();
        if self.is_quiet {
            return text;
        }
        let mut meters = locked(&self.meters);
        let count = meters.len();
        for (number, shown) in meters.iter_mut().enumerate() {
            let meter = &shown.meter;
            let is_over = meter.is_finished() || is_end;
            if shown.is_reported || !is_over && number + 1 < count {
                continue;
            }
            let done = meter.done();
            let (title, end) = (meter.title(), if is_over { ", done.\n" } else { "\r" });
            match meter.total() {
                Some(total) => {
                    let done = if is_over { total } else { done };
                    let percent = (done * 100).checked_div(total).unwrap_or(100);
                    text.push_str(&format!("{title}: {percent:3}% ({done}/{total}){end}"));
                }
                None => text.push_str(&format!("{title}: {done}{end}")),
            }
            shown.is_reported = is_over;
        }
        text
    }

    pub(super) fn end(&self, counts: Option<&PackCounts>) -> io::Result<()> {
        if let Some(counts) = counts.filter(|_| !self.is_quiet) {
            let mut text = self.news(true);
            text.push_str(&totals(counts));
            text.push('\n');
            self.put(2, text.as_bytes())?;
        }
        let mut output = locked(&self.out);
        if self.band != Band::None {
            output.out.write_all(b"0000")?;
        }
        output.out.flush()
    }

    /// Sends the error that the pack cannot be created. Returns Git's message.
    pub(super) fn abort(&self, error: &Error) -> io::Result<BString> {
        let mut here = BString::default();
        // The messages of the hook were sent already.
        let reason = match error.kind() {
            ErrorKind::Hook => String::new(),
            _ => format!("fatal: {}\n", error.message()),
        };
        if self.band == Band::None {
            here.push_str(&reason);
        } else {
            self.put(2, reason.as_bytes())?;
        }
        here.push_str("error: git upload-pack: git-pack-objects died with error.\n");
        if self.band == Band::None {
            here.push_str(ABORTED);
        } else {
            self.put(3, ABORTED.as_bytes())?;
        }
        locked(&self.out).out.flush()?;
        here.push_str(format!("fatal: git upload-pack: {ABORTED}\n"));
        Ok(here)
    }
}

impl Progress for UploadBands<'_> {
    fn begin(&self, title: &'static str, total: Option<u64>) -> Meter {
        let meter = Meter::new(title, total);
        // The client counts the objects that it receives.
        if title != "Writing objects" {
            locked(&self.meters).push(BandMeter {
                meter: meter.clone(),
                is_reported: false,
            });
            self.has_new_phase.store(true, Relaxed);
        }
        meter
    }

    fn message(&self, message: ProgressMessage<'_>) {
        let line = format!("{}{message}\n", message.prefix());
        let _ = self.put(2, line.as_bytes());
    }
}

/// A writer to the sideband of the pack.
pub(super) struct DataBand<'a, 'b>(pub(super) &'a UploadBands<'b>);

impl Write for DataBand<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.report_phases()?;
        self.0.put(1, bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        locked(&self.0.out).out.flush()
    }
}

fn head(band: u8, payload: &[u8]) -> [u8; 5] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let length = payload.len() + 5;
    let digit = |shift: usize| DIGITS[length >> shift & 15];
    [digit(12), digit(8), digit(4), digit(0), band]
}

fn write_all(out: &mut dyn Write, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
    while !slices.is_empty() {
        match out.write_vectored(slices) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut slices, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

//! Sends the pack and the progress.

use pronto_io::watch::Watch;
use std::io::{self, IoSlice, Write};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pronto_hash::ObjectId;
use pronto_io::progress::{Meter, Progress};
use pronto_odb::packing::Counts;

use super::{Session, unwritable};
use crate::pack_objects::Select;
use crate::{Error, ErrorKind, Result};

/// The message to the other side if an object that it needs is damaged here.
pub const CORRUPTION: &str = "aborting due to possible repository corruption on the remote side.";

/// The interval of progress messages to the other side.
const TICK: Duration = Duration::from_secs(1);

/// After this time without data the other side might assume that the connection is dead
/// (`uploadpack.keepAlive`).
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// The number of packets that are sent with one system call.
const PACKETS: usize = 16;

/// Whether data and messages are multiplexed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Band {
    /// There are no messages.
    #[default]
    None,
    /// In packets of 1,000 bytes.
    Small,
    /// In packets of 65,520 bytes.
    Large,
}

impl Band {
    /// Returns the capacity of one packet, besides its length and its band.
    fn payload_bytes(self) -> usize {
        match self {
            Band::Small => 1000 - 5,
            _ => pronto_wire::pktline::MAX_LINE - 5,
        }
    }
}

/// The request of the other side, and its options.
#[derive(Clone, Debug, Default)]
pub(super) struct Wish {
    pub(super) wants: Vec<ObjectId>,
    pub(super) haves: Vec<ObjectId>,
    pub(super) thin: bool,
    pub(super) offset_deltas: bool,
    pub(super) include_tags: bool,
    pub(super) no_progress: bool,
    pub(super) band: Band,
}

impl Session<'_> {
    /// Sends a pack of what is wanted, and ends the side band.
    pub(super) fn send(&mut self, wish: &Wish) -> Result<()> {
        let bands = Bands {
            out: Mutex::new(Output {
                out: &mut *self.out,
                last: Instant::now(),
            }),
            band: wish.band,
            meters: Mutex::default(),
            is_quiet: wish.no_progress || wish.band == Band::None,
        };
        let (stop, stopped) = channel::<()>();
        let sent = std::thread::scope(|scope| {
            let bands = &bands;
            let ticker = move || {
                while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(TICK) {
                    // A broken connection is detected when data are sent.
                    let _ = bands.tick();
                }
            };
            // Without it there is only less to see.
            let ticking = match wish.band {
                Band::None => None,
                _ => std::thread::Builder::new().spawn_scoped(scope, ticker).ok(),
            };
            let sent = pack(self.repository, wish, bands, self.watch);
            drop(stop);
            drop(ticking);
            sent
        });
        match sent {
            Ok(counts) => bands.end(&counts).map_err(unwritable),
            Err(error) => {
                // It may be gone, too.
                let _ = bands.fail(&error);
                Err(error)
            }
        }
    }
}

fn pack(
    repository: &crate::Repository,
    wish: &Wish,
    bands: &Bands<'_>,
    watch: &Watch<'_>,
) -> Result<Counts> {
    let select = Select {
        thin: wish.thin && !wish.haves.is_empty(),
        sparse: repository.config().bool_or("pack.usesparse", true)?,
        bitmaps: true,
        unpacked: false,
    };
    let (wants, haves) = (&wish.wants, &wish.haves);
    let watch = watch.quiet().with_progress(bands);
    let mut selection = repository.select_objects(wants, haves, &select, &watch)?;
    if wish.include_tags {
        repository.include_tags(&mut selection)?;
    }
    let count = (selection.members.len() + selection.bases.len()) as u64;
    let meter = bands.begin("Counting objects", Some(count));
    meter.add(count);
    meter.finish();
    let mut options = repository.packing_options()?;
    options.offset_deltas = wish.offset_deltas;
    let mut data = Data(bands);
    let sent = repository.send_pack(&selection, &options, &mut data, &watch);
    sent.map(|(_, counts)| counts)
}

struct Output<'a> {
    out: &'a mut (dyn Write + Send),
    /// The time of the last data to the other side.
    last: Instant,
}

/// The three bands of one connection.
struct Bands<'a> {
    out: Mutex<Output<'a>>,
    band: Band,
    meters: Mutex<Vec<Shown>>,
    is_quiet: bool,
}

struct Shown {
    meter: Meter,
    is_told: bool,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Bands<'_> {
    /// Sends `bytes` on `band`, several packets at a time, without copying them.
    fn put(&self, band: u8, bytes: &[u8]) -> io::Result<()> {
        let mut output = locked(&self.out);
        output.last = Instant::now();
        if self.band == Band::None {
            return output.out.write_all(bytes);
        }
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
            write_all(&mut *output.out, &mut slices)?;
        }
        Ok(())
    }

    /// Sends progress, or a sign of life.
    fn tick(&self) -> io::Result<()> {
        let text = self.news(false);
        if !text.is_empty() {
            return self.put(2, text.as_bytes());
        }
        let is_long_ago = locked(&self.out).last.elapsed() >= KEEP_ALIVE;
        if is_long_ago {
            let mut output = locked(&self.out);
            output.last = Instant::now();
            output.out.write_all(b"0005\x01")?;
            output.out.flush()?;
        }
        Ok(())
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
            if shown.is_told || !is_over && number + 1 < count {
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
            shown.is_told = is_over;
        }
        text
    }

    fn end(&self, counts: &Counts) -> io::Result<()> {
        let Counts {
            objects,
            deltas,
            reused,
            reused_deltas,
            whole_pack,
            ..
        } = counts;
        let mut text = self.news(true);
        if !self.is_quiet {
            text.push_str(&format!(
                "Total {objects} (delta {deltas}), reused {reused} (delta {reused_deltas}), \
                 pack-reused {whole_pack} (from {})\n",
                u32::from(*whole_pack > 0)
            ));
            self.put(2, text.as_bytes())?;
        }
        let mut output = locked(&self.out);
        if self.band != Band::None {
            output.out.write_all(b"0000")?;
        }
        output.out.flush()
    }

    fn fail(&self, error: &Error) -> io::Result<()> {
        match self.band {
            Band::None => Ok(()),
            // What is damaged here does not concern the other side.
            _ if *error.kind() == ErrorKind::Object => self.put(3, CORRUPTION.as_bytes()),
            _ => self.put(3, format!("upload-pack: {}\n", error.message()).as_bytes()),
        }
    }
}

impl Progress for Bands<'_> {
    fn begin(&self, title: &'static str, total: Option<u64>) -> Meter {
        let meter = Meter::new(title, total);
        // Who receives counts what comes by himself.
        if title != "Writing objects" {
            locked(&self.meters).push(Shown {
                meter: meter.clone(),
                is_told: false,
            });
        }
        meter
    }

    fn message(&self, text: &str) {
        let _ = self.put(2, format!("{text}\n").as_bytes());
    }
}

/// The band of the pack.
struct Data<'a, 'b>(&'a Bands<'b>);

impl Write for Data<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
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

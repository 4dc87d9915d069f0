//! The model of a file system: the cost of calls, injected faults, and counters.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::Duration;

use fuser::{Errno, INodeNo};

use crate::names::Folding;

/// The kinds of file system calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of the calls say it")]
pub enum FsCall {
    Lookup,
    Getattr,
    Setattr,
    Readlink,
    Mkdir,
    Unlink,
    Rmdir,
    Symlink,
    Rename,
    Link,
    Open,
    Create,
    Opendir,
    Readdir,
    Statfs,
    Fsync,
    Read,
    Write,
    Flush,
    Release,
}

impl FsCall {
    /// All kinds.
    pub const ALL: [FsCall; 20] = [
        FsCall::Lookup,
        FsCall::Getattr,
        FsCall::Setattr,
        FsCall::Readlink,
        FsCall::Mkdir,
        FsCall::Unlink,
        FsCall::Rmdir,
        FsCall::Symlink,
        FsCall::Rename,
        FsCall::Link,
        FsCall::Open,
        FsCall::Create,
        FsCall::Opendir,
        FsCall::Readdir,
        FsCall::Statfs,
        FsCall::Fsync,
        FsCall::Read,
        FsCall::Write,
        FsCall::Flush,
        FsCall::Release,
    ];

    /// Returns the name on command lines and in counts: the variant in lower case.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// Returns the kind with this name.
    pub fn from_name(name: &str) -> Option<FsCall> {
        FsCall::ALL.into_iter().find(|call| call.name() == name)
    }

    /// Returns whether the call reaches the disk. Closing a file and `statfs` do not.
    fn moves_the_arm(self) -> bool {
        !matches!(self, FsCall::Flush | FsCall::Release | FsCall::Statfs)
    }

    /// Returns whether the call concerns names and attributes and not content.
    pub fn is_metadata(self) -> bool {
        !matches!(
            self,
            FsCall::Read | FsCall::Write | FsCall::Flush | FsCall::Release
        )
    }
}

/// The effect of a fault on one call.
#[derive(Clone, Copy, Debug)]
pub enum CallFault {
    /// The call fails with this error number.
    Error(i32),
    /// The call reads or writes only one byte.
    Short,
    /// The call takes this additional time.
    Late(Duration),
    /// The file is created, but the call fails with this error number (for [`FsCall::Create`]).
    MadeAndLost(i32),
}

/// The completion of a call that does not fail immediately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallEnd {
    /// The call completes normally.
    Whole,
    /// The call ends after one byte.
    Short,
    /// The call fails with this error number after its effect.
    Lost(i32),
}

/// The calls to which a fault applies: the call with this `number` among the calls of its kind, or
/// of all kinds, counted from 1 since the last [reset](Model::reset). 0 means every call.
#[derive(Clone, Copy, Debug)]
struct FaultTime {
    call: Option<FsCall>,
    number: u64,
    fault: CallFault,
}

/// The behaviour of the file system. The default forwards all calls without delay.
#[derive(Debug)]
pub struct Model {
    delays: [Duration; FsCall::ALL.len()],
    counts: [AtomicU64; FsCall::ALL.len()],
    faults: RwLock<Vec<FaultTime>>,
    total: AtomicU64,
    last_fault: Mutex<Option<FsCall>>,
    /// The bandwidth in bytes per second, for `Read` and `Write` together.
    pub bandwidth: Option<u64>,
    /// The seek time of a disk with one arm: the time in which the arm moves over a million inodes.
    /// With a seek time, calls are served one at a time, each at the position of its inode. A call
    /// at the current position of the arm costs nothing.
    pub seek: Option<Duration>,
    /// The comparison of names.
    pub folding: Folding,
    /// The time for which the kernel may cache names and attributes.
    pub cache: Duration,
    /// Whether directory listings include attributes (`READDIRPLUS`), as with NFS.
    pub lists_attributes: bool,
    arm: Mutex<Arm>,
    waiting: AtomicU64,
    most_waiting: AtomicU64,
}

/// The distance that the arm moves in the time [`Model::seek`]: the range of inode numbers in a
/// file system of a few GiB. File systems for such disks allocate the inodes of one directory, and
/// the contents of its files, close together.
const FULL_STROKE_INODES: u64 = 1 << 20;

/// The duration of the shortest move, as a fraction of the longest one.
const SHORTEST_MOVE: f64 = 0.1;

/// The shortest sleep. Shorter delays are collected, because short sleeps are inaccurate.
const LEAST_SLEEP: Duration = Duration::from_millis(1);

/// The position of the arm of a disk.
#[derive(Debug, Default)]
struct Arm {
    at: u64,
    /// The collected delay that has not been slept yet.
    owed: Duration,
}

impl Arm {
    /// Moves the arm to `to`, and waits for the time of the move.
    fn seek(&mut self, to: u64, stroke: Duration) {
        let distance = self.at.abs_diff(to);
        self.at = to;
        if distance == 0 {
            return;
        }
        let part = (distance as f64 / FULL_STROKE_INODES as f64).sqrt();
        self.owed += stroke.mul_f64(part.clamp(SHORTEST_MOVE, 1.0));
        if self.owed >= LEAST_SLEEP {
            sleep(std::mem::take(&mut self.owed));
        }
    }
}

impl Default for Model {
    fn default() -> Self {
        Model {
            delays: [Duration::ZERO; FsCall::ALL.len()],
            counts: Default::default(),
            faults: RwLock::default(),
            total: AtomicU64::new(0),
            last_fault: Mutex::default(),
            bandwidth: None,
            seek: None,
            folding: Folding::None,
            cache: Duration::from_secs(1),
            lists_attributes: false,
            arm: Mutex::default(),
            waiting: AtomicU64::new(0),
            most_waiting: AtomicU64::new(0),
        }
    }
}

impl Model {
    /// Makes every `call` take `delay` longer.
    pub fn delay(&mut self, call: FsCall, delay: Duration) {
        self.delays[call as usize] = delay;
    }

    /// Makes every metadata call take `delay` longer.
    pub fn delay_metadata(&mut self, delay: Duration) {
        FsCall::ALL
            .into_iter()
            .filter(|call| call.is_metadata())
            .for_each(|c| self.delay(c, delay));
    }

    /// Injects `fault` into the `number`th `call`, counted from 1. 0 means every call.
    pub fn fault(&self, call: FsCall, number: u64, fault: CallFault) {
        self.add_fault(Some(call), number, fault);
    }

    /// Injects `fault` into the `number`th call of any kind, counted from 1.
    pub fn fault_at(&self, number: u64, fault: CallFault) {
        self.add_fault(None, number, fault);
    }

    fn add_fault(&self, call: Option<FsCall>, number: u64, fault: CallFault) {
        let mut faults = self.faults.write().unwrap_or_else(PoisonError::into_inner);
        faults.push(FaultTime {
            call,
            number,
            fault,
        });
    }

    /// Removes all faults.
    pub fn clear_faults(&self) {
        let mut faults = self.faults.write().unwrap_or_else(PoisonError::into_inner);
        faults.clear();
    }

    /// Returns the kind of the call that the last fault applied to.
    pub fn last_fault(&self) -> Option<FsCall> {
        let last = self.last_fault.lock();
        *last.unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of calls.
    pub fn total(&self) -> u64 {
        self.total.load(Relaxed)
    }

    /// Returns the number of calls of this kind.
    pub fn count(&self, call: FsCall) -> u64 {
        self.counts[call as usize].load(Relaxed)
    }

    /// Returns the number of metadata calls.
    pub fn metadata_count(&self) -> u64 {
        FsCall::ALL
            .into_iter()
            .filter(|call| call.is_metadata())
            .map(|call| self.count(call))
            .sum()
    }

    /// Returns the largest number of calls that waited for their delay at the same time.
    pub fn most_in_flight(&self) -> u64 {
        self.most_waiting.load(Relaxed)
    }

    /// Resets all counters to zero.
    pub fn reset(&self) {
        self.total.store(0, Relaxed);
        self.counts.iter().for_each(|count| count.store(0, Relaxed));
    }

    /// Formats a line `NAME COUNT` for each kind of call that occurred.
    pub fn summary(&self) -> String {
        let mut text = String::new();
        for call in FsCall::ALL {
            if self.count(call) > 0 {
                let _ = writeln!(text, "{} {}", call.name(), self.count(call));
            }
        }
        text
    }

    /// Counts a call on `inode`, waits for its delay, and returns whether it fails or is cut short.
    pub(crate) fn enter(&self, call: FsCall, inode: INodeNo) -> Result<CallEnd, Errno> {
        let number = self.counts[call as usize].fetch_add(1, Relaxed) + 1;
        let total = self.total.fetch_add(1, Relaxed) + 1;
        let mut delay = self.delays[call as usize];
        let mut ending = Ok(CallEnd::Whole);
        let faults = self.faults.read().unwrap_or_else(PoisonError::into_inner);
        for when in faults.iter() {
            let (is_it, counted) = match when.call {
                Some(which) => (which == call, number),
                None => (true, total),
            };
            if is_it && (when.number == counted || when.number == 0) {
                let mut last = self
                    .last_fault
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                *last = Some(call);
                match when.fault {
                    CallFault::Error(number) => ending = Err(Errno::from_i32(number)),
                    CallFault::Short => ending = Ok(CallEnd::Short),
                    CallFault::MadeAndLost(number) => ending = Ok(CallEnd::Lost(number)),
                    CallFault::Late(more) => delay += more,
                }
            }
        }
        drop(faults);
        let waiting = self.waiting.fetch_add(1, Relaxed) + 1;
        self.most_waiting.fetch_max(waiting, Relaxed);
        if let (Some(stroke), true) = (self.seek, call.moves_the_arm()) {
            let mut arm = self.arm.lock().unwrap_or_else(PoisonError::into_inner);
            arm.seek(inode.0, stroke);
        }
        sleep(delay);
        self.waiting.fetch_sub(1, Relaxed);
        ending
    }

    /// Waits for the time in which `size_bytes` bytes are transferred.
    pub(crate) fn transfer(&self, size_bytes: u64) {
        if let Some(rate) = self.bandwidth {
            sleep(Duration::from_secs_f64(
                size_bytes as f64 / rate.max(1) as f64,
            ));
        }
    }
}

fn sleep(time: Duration) {
    if !time.is_zero() {
        std::thread::sleep(time);
    }
}

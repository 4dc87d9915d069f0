//! What calls cost, which of them fail, and how many there were.

use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use fuser::Errno;

use crate::names::Folding;

/// The kinds of call a file system answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of the calls say it")]
pub enum Call {
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

impl Call {
    /// All of them.
    pub const ALL: [Call; 20] = [
        Call::Lookup,
        Call::Getattr,
        Call::Setattr,
        Call::Readlink,
        Call::Mkdir,
        Call::Unlink,
        Call::Rmdir,
        Call::Symlink,
        Call::Rename,
        Call::Link,
        Call::Open,
        Call::Create,
        Call::Opendir,
        Call::Readdir,
        Call::Statfs,
        Call::Fsync,
        Call::Read,
        Call::Write,
        Call::Flush,
        Call::Release,
    ];

    /// The name on command lines and in counts: the variant in lower case.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// The call of that name.
    pub fn from_name(name: &str) -> Option<Call> {
        Call::ALL.into_iter().find(|call| call.name() == name)
    }

    /// Whether it is about names and attributes rather than about content.
    pub fn is_metadata(self) -> bool {
        !matches!(self, Call::Read | Call::Write | Call::Flush | Call::Release)
    }
}

/// What happens to one call instead of success.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// It fails with this error number.
    Error(i32),
    /// It reads or writes one byte only.
    Short,
    /// It takes this much longer.
    Late(Duration),
}

/// How the file system behaves. The default passes everything through at full speed.
#[derive(Debug)]
pub struct Model {
    delays: [Duration; Call::ALL.len()],
    counts: [AtomicU64; Call::ALL.len()],
    /// `(call, its number among calls of its kind counted from 1, what happens)`.
    faults: Vec<(Call, u64, Fault)>,
    /// Bytes per second through `Read` and `Write` together.
    pub bandwidth: Option<u64>,
    /// What it costs to read or write anywhere but where the last such call ended; only one such
    /// call is served at a time then, as there is one arm.
    pub seek: Option<Duration>,
    /// How names are compared.
    pub folding: Folding,
    /// How long the kernel may believe names and attributes without asking again.
    pub cache: Duration,
    arm: Mutex<(u64, u64)>,
    waiting: AtomicU64,
    most_waiting: AtomicU64,
}

impl Default for Model {
    fn default() -> Self {
        Model {
            delays: [Duration::ZERO; Call::ALL.len()],
            counts: Default::default(),
            faults: Vec::new(),
            bandwidth: None,
            seek: None,
            folding: Folding::None,
            cache: Duration::from_secs(1),
            arm: Mutex::new((0, 0)),
            waiting: AtomicU64::new(0),
            most_waiting: AtomicU64::new(0),
        }
    }
}

impl Model {
    /// Every `call` takes `delay` longer.
    pub fn delay(&mut self, call: Call, delay: Duration) {
        self.delays[call as usize] = delay;
    }

    /// Every metadata call takes `delay` longer.
    pub fn delay_metadata(&mut self, delay: Duration) {
        Call::ALL
            .into_iter()
            .filter(|call| call.is_metadata())
            .for_each(|c| self.delay(c, delay));
    }

    /// The `number`th `call` (counted from 1) ends as `fault` says; 0 means each of them.
    pub fn fault(&mut self, call: Call, number: u64, fault: Fault) {
        self.faults.push((call, number, fault));
    }

    /// How many calls of this kind there were.
    pub fn count(&self, call: Call) -> u64 {
        self.counts[call as usize].load(Relaxed)
    }

    /// How many metadata calls there were.
    pub fn metadata_count(&self) -> u64 {
        Call::ALL
            .into_iter()
            .filter(|call| call.is_metadata())
            .map(|call| self.count(call))
            .sum()
    }

    /// How many calls were waiting for their delay at the same time, at most.
    pub fn most_in_flight(&self) -> u64 {
        self.most_waiting.load(Relaxed)
    }

    /// Starts counting from zero again.
    pub fn reset(&self) {
        self.counts.iter().for_each(|count| count.store(0, Relaxed));
    }

    /// One line `NAME COUNT` for each kind of call that there was.
    pub fn summary(&self) -> String {
        let mut text = String::new();
        for call in Call::ALL {
            if self.count(call) > 0 {
                let _ = writeln!(text, "{} {}", call.name(), self.count(call));
            }
        }
        text
    }

    /// Counts a call, lets its time pass, and says if it fails or is cut short.
    pub(crate) fn enter(&self, call: Call) -> Result<bool, Errno> {
        let number = self.counts[call as usize].fetch_add(1, Relaxed) + 1;
        let mut delay = self.delays[call as usize];
        let mut ending = Ok(false);
        for (which, when, fault) in &self.faults {
            if *which == call && (*when == number || *when == 0) {
                match fault {
                    Fault::Error(number) => ending = Err(Errno::from_i32(*number)),
                    Fault::Short => ending = Ok(true),
                    Fault::Late(more) => delay += *more,
                }
            }
        }
        let waiting = self.waiting.fetch_add(1, Relaxed) + 1;
        self.most_waiting.fetch_max(waiting, Relaxed);
        sleep(delay);
        self.waiting.fetch_sub(1, Relaxed);
        ending
    }

    /// Lets the time of moving `size_bytes` at `offset` of file `inode` pass.
    pub(crate) fn transfer(&self, inode: u64, offset: u64, size_bytes: u64) {
        let moving = self.bandwidth.map_or(Duration::ZERO, |rate| {
            Duration::from_secs_f64(size_bytes as f64 / rate.max(1) as f64)
        });
        let Some(seek) = self.seek else {
            return sleep(moving);
        };
        let mut arm = self
            .arm
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let there = *arm == (inode, offset);
        *arm = (inode, offset + size_bytes);
        sleep(if there { moving } else { moving + seek });
    }
}

fn sleep(time: Duration) {
    if !time.is_zero() {
        std::thread::sleep(time);
    }
}

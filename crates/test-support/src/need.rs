//! The needs of tests in addition to programs: privileges, devices and other users.

use std::fmt::{self, Display};
use std::io::Write as _;

use crate::may_mount;

/// The environment variable with the path of a file to which tests append their needs. `.ci/run`
/// counts the lines.
const VARIABLE: &str = "PRONTO_TEST_NEEDS";

/// A need of a test. [`need!`](crate::need) skips a test whose need is not met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The tests run as root.
    Root,
    /// The process may mount file systems.
    Mount,
    /// The process may mount a FUSE file system: the device and `fusermount3` exist.
    Fuse,
    /// A file can be mounted through a loop device.
    LoopDevice,
    /// The process can run programs as another user.
    OtherUser,
    /// A file system can be marked with fanotify.
    Fanotify,
    /// `/dev/shm` is a tmpfs.
    SharedMemory,
    /// The file system for temporary files supports unnamed files (`O_TMPFILE`).
    NamelessFiles,
}

impl Need {
    /// Records that a test has this need, if `PRONTO_TEST_NEEDS` is set.
    ///
    /// # Panics
    /// Panics if the file cannot be written.
    pub fn note(self) {
        let Some(path) = std::env::var_os(VARIABLE) else {
            return;
        };
        let mut file = std::fs::File::options()
            .append(true)
            .create(true)
            .open(&path)
            .expect("the file of needs can be opened");
        // One write, because other tests append at the same time.
        file.write_all(format!("{self}\n").as_bytes())
            .expect("the file of needs can be written");
    }

    /// Records the need, and returns whether the machine meets the need, as far as this can be
    /// determined without an attempt.
    ///
    /// # Panics
    /// Panics if the need cannot be recorded, or if `/proc` does not contain the capabilities.
    #[must_use]
    pub fn is_met(self) -> bool {
        self.note();
        match self {
            Need::Root | Need::OtherUser => rustix::process::geteuid().is_root(),
            Need::Mount | Need::LoopDevice => may_mount(),
            Need::SharedMemory => std::path::Path::new("/dev/shm").is_dir(),
            Need::Fuse | Need::Fanotify | Need::NamelessFiles => true,
        }
    }

    /// Returns advice on meeting the need.
    #[must_use]
    pub fn advice(self) -> &'static str {
        match self {
            Need::Root | Need::Mount | Need::OtherUser => "run the tests as root",
            Need::Fuse => "load the module fuse, install fuse3",
            Need::LoopDevice => "run the tests as root, with btrfs-progs and xfsprogs",
            Need::SharedMemory => "mount a tmpfs there",
            Need::Fanotify => {
                "run the tests as root, and set TMPDIR to a directory on ext4, XFS, btrfs or tmpfs"
            }
            Need::NamelessFiles => "set TMPDIR to a directory on ext4, XFS, btrfs or tmpfs",
        }
    }
}

impl Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Need::Root => "the user root",
            Need::Mount => "the right to mount",
            Need::Fuse => "FUSE",
            Need::LoopDevice => "a loop device",
            Need::OtherUser => "a process of another user",
            Need::Fanotify => "a file system that fanotify marks",
            Need::SharedMemory => "a tmpfs at /dev/shm",
            Need::NamelessFiles => "nameless temporary files",
        })
    }
}

/// Returns from the calling function, with the default value of its result, if the machine does not
/// meet a [`Need`].
///
/// # Panics
/// Panics if the need is not met and the environment variable `CI` is set.
///
/// ```
/// fn mounts() {
///     test_support::need!(test_support::Need::Mount);
/// }
/// mounts();
/// ```
#[macro_export]
macro_rules! need {
    ($need:expr) => {{
        let need: $crate::Need = $need;
        if !need.is_met() {
            $crate::lacks!(need, "this machine does not give it");
        }
    }};
}

/// Returns from the calling function, with the default value of its result, because a [`Need`] is
/// not met. The second argument describes the evidence.
///
/// # Panics
/// Panics if the environment variable `CI` is set.
#[macro_export]
macro_rules! lacks {
    ($need:expr, $reason:expr $(,)?) => {{
        let need: $crate::Need = $need;
        $crate::skip!(format!("the test needs {need}: {}", $reason), need.advice())
    }};
}

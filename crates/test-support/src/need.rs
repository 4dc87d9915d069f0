//! Needs of tests besides programs: privileges, devices, other users.

use std::fmt::{self, Display};
use std::io::Write as _;

use crate::may_mount;

/// The variable that names a file to which tests append what they need. `.ci/run` counts the lines.
const VARIABLE: &str = "PRONTO_TEST_NEEDS";

/// A need of a test. [`need!`](crate::need) ends a test whose need is not met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The user is root.
    Root,
    /// The process may mount file systems.
    Mount,
    /// The process may mount a FUSE file system: the device and `fusermount3` are there.
    Fuse,
    /// A file can be mounted as a block device.
    LoopDevice,
    /// A process can run as another user.
    OtherUser,
    /// A file system can be marked with fanotify.
    Fanotify,
    /// There is a tmpfs at `/dev/shm`.
    SharedMemory,
    /// The file system of temporary files creates files without a name (`O_TMPFILE`).
    NamelessFiles,
}

impl Need {
    /// Records that a test has this need, if `PRONTO_TEST_NEEDS` names a file.
    ///
    /// # Panics
    /// If the file cannot be written.
    pub fn note(self) {
        let Some(path) = std::env::var_os(VARIABLE) else {
            return;
        };
        let mut file = std::fs::File::options()
            .append(true)
            .create(true)
            .open(&path)
            .expect("the file of needs can be opened");
        // In one write, because other tests append at the same time.
        file.write_all(format!("{self}\n").as_bytes())
            .expect("the file of needs can be written");
    }

    /// Records the need, and returns whether the machine meets it, as far as that can be known without
    /// trying.
    ///
    /// # Panics
    /// If the need cannot be recorded, or `/proc` does not show the capabilities.
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
    pub fn way_out(self) -> &'static str {
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

/// Ends the calling function if the machine does not meet a [`Need`], with the default value of its result.
///
/// # Panics
/// If the need is not met and the variable `CI` is set.
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

/// Ends the calling function because a [`Need`] is not met, with the default value of its result. The second
/// argument says how that showed.
///
/// # Panics
/// If the variable `CI` is set.
#[macro_export]
macro_rules! lacks {
    ($need:expr, $reason:expr $(,)?) => {{
        let need: $crate::Need = $need;
        $crate::skip!(
            format!("the test needs {need}: {}", $reason),
            need.way_out()
        )
    }};
}

//! A FUSE file system over a directory that behaves like a network file system or a spinning disk.
//! Each kind of call has its own delay, reading and writing have a bandwidth, seeks cost time,
//! names may be folded, and any call can be made to fail. All calls are counted.
//!
//! ```no_run
//! let mut model = slowfs::Model::default();
//! model.delay_metadata(std::time::Duration::from_millis(1));
//! let mount = slowfs::SlowMount::new("/srv/real", "/mnt/slow", model)?;
//! println!("{} lookups", mount.model().count(slowfs::FsCall::Lookup));
//! # std::io::Result::Ok(())
//! ```

mod attributes;
mod filesystem;
mod handles;
mod listing;
mod model;
mod names;
mod nodes;
mod reply;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fuser::{BackgroundSession, Config, MountOption, SessionACL};
use rustix::mount::UnmountFlags;

pub use model::{CallFault, FsCall, Model};
pub use names::Folding;

/// The maximum number of concurrent calls. Their delays overlap, as on a network.
const CALLS_IN_FLIGHT: usize = 64;

/// A mounted file system. Dropping the value unmounts it. If a process uses the file system, it is
/// detached from the directory tree immediately, and ends with its last user.
#[derive(Debug)]
pub struct SlowMount {
    model: Arc<Model>,
    at: PathBuf,
    session: Option<BackgroundSession>,
}

impl SlowMount {
    /// Mounts the directory `real` at `at` with the behaviour of `model`.
    ///
    /// # Errors
    /// Fails if the kernel or the permissions refuse the mount.
    pub fn new(
        real: impl AsRef<Path>,
        at: impl AsRef<Path>,
        model: Model,
    ) -> std::io::Result<Self> {
        let model = Arc::new(model);
        let filesystem = filesystem::Slow::new(&real.as_ref().canonicalize()?, model.clone())?;
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName("slowfs".to_owned()),
            MountOption::DefaultPermissions,
        ];
        config.acl = SessionACL::All;
        config.n_threads = Some(CALLS_IN_FLIGHT);
        let at = at.as_ref().canonicalize()?;
        let session = fuser::spawn_mount(filesystem, &at, &config)?;
        Ok(SlowMount {
            model,
            at,
            session: Some(session),
        })
    }

    /// Returns the model with its counters.
    pub fn model(&self) -> &Model {
        &self.model
    }
}

impl Drop for SlowMount {
    fn drop(&mut self) {
        let Some(session) = self.session.take() else {
            return;
        };
        if session.umount_and_join().is_err() {
            // A process uses the file system, for example a process that another thread has just
            // forked.
            let _ = rustix::mount::unmount(&self.at, UnmountFlags::DETACH);
        }
    }
}

//! Temporary file systems for measurements: a tmpfs, or an image in a file. Mounting needs root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ValueEnum;

/// The type of the file system that runs write to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// tmpfs.
    Tmpfs,
    /// ext4 in an image on a loop device.
    Ext4,
    /// XFS in an image on a loop device.
    Xfs,
    /// Btrfs in an image on a loop device.
    Btrfs,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Tmpfs => "tmpfs",
            Kind::Ext4 => "ext4",
            Kind::Xfs => "xfs",
            Kind::Btrfs => "btrfs",
        }
    }

    /// Returns the command that creates the file system, without the name of the image.
    fn make(self) -> &'static [&'static str] {
        match self {
            Kind::Tmpfs => &[],
            // The whole file system is initialised here, because initialisation in the background
            // would distort the first runs.
            Kind::Ext4 => &[
                "mkfs.ext4",
                "-q",
                "-F",
                "-E",
                "lazy_itable_init=0,lazy_journal_init=0",
            ],
            Kind::Xfs => &["mkfs.xfs", "-q", "-f"],
            Kind::Btrfs => &["mkfs.btrfs", "-q", "-f"],
        }
    }
}

/// A mounted file system. Dropping the value unmounts and removes it.
pub(crate) struct Volume {
    pub(crate) at: PathBuf,
    image: Option<PathBuf>,
}

impl Volume {
    /// Creates a file system of `size_gib` GiB with its image below `data`, and mounts it there.
    pub(crate) fn new(kind: Kind, data: &Path, size_gib: u64) -> Result<Volume, String> {
        let at = data.join(format!("{}-{}", kind.name(), std::process::id()));
        fs::create_dir_all(&at).map_err(|error| error.to_string())?;
        let mut volume = Volume { at, image: None };
        let mut mount = Command::new("mount");
        if kind == Kind::Tmpfs {
            mount.args(["-t", "tmpfs", "-o", &format!("size={size_gib}g"), "none"]);
        } else {
            let image = volume.at.with_extension("image");
            let file = fs::File::create(&image).map_err(|error| error.to_string())?;
            volume.image = Some(image.clone());
            file.set_len(size_gib << 30)
                .map_err(|error| error.to_string())?;
            let words = kind.make();
            run(Command::new(words[0]).args(&words[1..]).arg(&image))?;
            mount.args(["-o", "loop,noatime"]).arg(&image);
        }
        run(mount.arg(&volume.at))?;
        Ok(volume)
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        if run(Command::new("umount").arg(&self.at)).is_err() {
            // A busy file system is detached, and disappears with its last user.
            let _ = run(Command::new("umount").arg("-l").arg(&self.at));
        }
        let _ = fs::remove_dir(&self.at);
        if let Some(image) = &self.image {
            let _ = fs::remove_file(image);
        }
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let shown = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|error| format!("cannot run {shown}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{shown} failed (it needs root): {}", said.trim()))
}

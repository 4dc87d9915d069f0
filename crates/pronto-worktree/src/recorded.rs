//! Converts file system metadata to the stat data of the index.

use pronto_index::{IndexTime, Stat};
use pronto_io::dir::Metadata;

/// Returns the stat data of a file as the index records them.
pub fn recorded(metadata: &Metadata) -> Stat {
    let time = |time: pronto_io::dir::FileTime| IndexTime {
        seconds: time.seconds as u32,
        nanoseconds: time.nanoseconds,
    };
    Stat {
        ctime: time(metadata.changed),
        mtime: time(metadata.modified),
        device: metadata.device as u32,
        inode: metadata.inode as u32,
        uid: metadata.user,
        gid: metadata.group,
        size_bytes: Stat::recorded_size(metadata.size_bytes),
    }
}

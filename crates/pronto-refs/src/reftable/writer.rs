//! Writes reftables.

mod block;
mod objects;
mod table;
mod value;

pub use table::{TableWriter, WrittenTable};

/// Options to write a table. The defaults are those of Git.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableWriteOptions {
    /// The size of a block in bytes, at most 16,777,215 (`reftable.blockSize`); 0 means 4096.
    pub block_size: u32,
    /// The number of records after which a key is written in full (`reftable.restartInterval`); 0
    /// means 16.
    pub restart_interval: u16,
    /// Whether large tables get object blocks (`reftable.indexObjects`).
    pub index_objects: bool,
    /// Whether blocks are padded to multiples of the block size. Git always pads blocks.
    pub is_padded: bool,
}

impl Default for TableWriteOptions {
    fn default() -> Self {
        TableWriteOptions {
            block_size: 4096,
            restart_interval: 16,
            index_objects: true,
            is_padded: true,
        }
    }
}

//! Reads reftables.

mod block;
mod index;
mod keys;
mod logs;
mod objects;
mod refs;
mod search;
mod table;
mod values;

pub use logs::LogCursor;
pub use objects::ObjectCursor;
pub use refs::RefCursor;
pub use table::RefTable;

pub(super) use block::common_prefix;

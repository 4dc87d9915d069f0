//! Output on a terminal: colours, columns, the editor and the pager, progress, and text that is safe to print.

pub(crate) mod colors;
pub(crate) mod columns;
pub(crate) mod editor;
pub(crate) mod pager;
pub mod progress;
pub(crate) mod text;
pub(crate) mod transferred;

//! Output on a terminal: colours, columns, progress, and text that is safe to print.

pub(crate) mod colors;
pub(crate) mod columns;
pub mod progress;
pub(crate) mod text;

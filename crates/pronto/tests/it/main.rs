//! The library against repositories that stock git made.

mod discovery;
mod init;
mod references;
mod support;
mod transactions;

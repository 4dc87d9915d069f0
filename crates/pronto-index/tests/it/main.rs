//! Stock git is the oracle: what it writes is read, and what is written here it reads.

mod broken;
mod caches;
mod lengths;
mod reading;
mod support;
mod writing;

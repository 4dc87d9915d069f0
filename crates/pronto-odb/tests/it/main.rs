//! Stores that stock git made, read and written here; git is the oracle.

mod bulk;
mod damage;
mod large;
mod many;
mod numbered;
mod reading;
mod shortened;
mod support;
mod together;
mod unpacking;
mod writing;

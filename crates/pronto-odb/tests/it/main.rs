//! Tests on object stores of stock git, which is the oracle.

mod blocks;
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

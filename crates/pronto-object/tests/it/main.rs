//! Compares dates with git.

mod dates;

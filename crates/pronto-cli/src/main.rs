//! The command line of pronto.
fn main() {}

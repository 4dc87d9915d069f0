//! Skipping a test: it is always reported, and an error in CI.

#![expect(clippy::print_stdout, reason = "a test says what it skips")]
use std::fmt::Display;

use crate::git::{NO_REFERENCE, beside};

/// Advice if a program is missing.
pub const INSTALL: &str = "'.ci/run install' installs what the tests need (Debian)";

/// Whether tests may be skipped: not if the variable `CI` is set.
#[must_use]
pub fn may_skip() -> bool {
    std::env::var_os("CI").is_none()
}

/// Prints what is missing and how to get it. Call [`skip!`](crate::skip) in a test; a harness and a
/// test that continues without a part of its checks call this function.
///
/// # Panics
/// If the variable `CI` is set.
pub fn report_skip(missing: &dyn Display, way_out: &dyn Display) {
    assert!(
        may_skip(),
        "{missing}, and CI may not skip a test: {way_out}"
    );
    println!("SKIPPED: {missing}: {way_out}");
}

/// Prints that the test needs `what`, which requires git 2.55.
///
/// # Panics
/// If the variable `CI` is set and the directory `git-suite`, which holds that git, is beside the
/// workspace.
pub fn report_missing_reference(what: &dyn Display) {
    assert!(
        may_lack_reference(),
        "{what}, and CI may not skip a test: {NO_REFERENCE}"
    );
    println!("SKIPPED: {what}: {NO_REFERENCE}");
}

/// Whether tests that need git 2.55 may be skipped: not in CI where that git is beside the
/// workspace.
#[must_use]
pub fn may_lack_reference() -> bool {
    may_skip() || beside().is_empty()
}

/// Ends the calling function because something is missing, with the default value of its result
/// (`()`, `None`, `false`). Prints the first argument (what is missing) and the second one (how to
/// get it; by default [`INSTALL`]).
///
/// # Panics
/// If the variable `CI` is set.
///
/// ```
/// fn needs_a_program() {
///     if !std::path::Path::new("/bin/sh").exists() {
///         test_support::skip!("there is no shell");
///     }
/// }
/// needs_a_program();
/// ```
#[macro_export]
macro_rules! skip {
    ($missing:expr $(,)?) => {
        $crate::skip!($missing, $crate::INSTALL)
    };
    ($missing:expr, $way_out:expr $(,)?) => {{
        $crate::report_skip(&$missing, &$way_out);
        return ::core::default::Default::default();
    }};
}

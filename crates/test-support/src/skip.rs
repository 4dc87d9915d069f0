//! Skipping a test: it is always reported, and an error in CI.

#![expect(clippy::print_stdout, reason = "a test says what it skips")]
use std::fmt::Display;

/// Advice if a program is missing.
pub const INSTALL: &str = "'.ci/run install' installs what the tests need (Debian)";

/// Advice if there is no git 2.55.
pub const NO_REFERENCE: &str =
    "'cargo xtask reference-git' builds git 2.55; PRONTO_TEST_GIT names another one";

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
/// If the variable `CI` is set.
pub fn report_missing_reference(what: &dyn Display) {
    report_skip(what, &NO_REFERENCE);
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

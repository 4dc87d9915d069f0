//! Skips tests. Each skip is reported, and is an error in CI.

#![expect(clippy::print_stdout, reason = "a test says what it skips")]
use std::fmt::Display;

/// The advice if a program is missing.
pub const INSTALL: &str = "'.ci/run install' installs what the tests need (Debian)";

/// The advice if git 2.55 is missing.
pub const NO_REFERENCE: &str =
    "'cargo xtask reference-git' builds git 2.55; PRONTO_TEST_GIT names another one";

/// Returns whether tests may be skipped: only if the environment variable `CI` is not set.
#[must_use]
pub fn may_skip() -> bool {
    std::env::var_os("CI").is_none()
}

/// Prints a missing requirement and advice. Tests call [`skip!`](crate::skip) instead. Test
/// harnesses, and tests that continue without a part of their checks, call this function.
///
/// # Panics
/// Panics if the environment variable `CI` is set.
pub fn report_skip(missing: &dyn Display, advice: &dyn Display) {
    assert!(
        may_skip(),
        "{missing}, and CI may not skip a test: {advice}"
    );
    println!("SKIPPED: {missing}: {advice}");
}

/// Prints that the test needs `what`, which requires git 2.55.
///
/// # Panics
/// Panics if the environment variable `CI` is set.
pub fn report_missing_reference(what: &dyn Display) {
    report_skip(what, &NO_REFERENCE);
}

/// Returns from the calling function, with the default value of its result (`()`, `None`, `false`),
/// because something is missing. Prints the first argument (the missing requirement) and the second
/// one (advice; by default [`INSTALL`]).
///
/// # Panics
/// Panics if the environment variable `CI` is set.
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
    ($missing:expr, $advice:expr $(,)?) => {{
        $crate::report_skip(&$missing, &$advice);
        return ::core::default::Default::default();
    }};
}

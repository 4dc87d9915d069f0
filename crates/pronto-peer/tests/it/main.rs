//! Tests of the synchronisation of repositories of stock git.

mod dishonest;
#[expect(dead_code, reason = "the tests of crate pronto need more of it")]
#[path = "../../../pronto/tests/it/support.rs"]
mod support;

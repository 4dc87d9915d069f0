//! Tests of pronto-pack against stock git.

mod broken;
mod indexer;
mod support;
mod thin;

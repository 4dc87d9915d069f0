//! Runs the target `commit_graph` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::commit_graph(data));

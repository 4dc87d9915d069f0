//! Runs the target `ref_name` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::run("ref_name", data));

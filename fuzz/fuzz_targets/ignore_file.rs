//! Runs the target `ignore_file` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::run("ignore_file", data));

//! Runs the target `ignore_file` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::ignore_file(data));

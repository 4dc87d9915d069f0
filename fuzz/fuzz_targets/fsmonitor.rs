//! Runs the target `fsmonitor` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::fsmonitor(data));

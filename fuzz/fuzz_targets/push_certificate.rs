//! Runs the target `push_certificate` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::push_certificate(data));

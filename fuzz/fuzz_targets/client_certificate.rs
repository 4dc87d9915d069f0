//! Runs the target `client_certificate` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::client_certificate(data));

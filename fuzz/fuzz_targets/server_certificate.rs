//! Runs the target `server_certificate` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::server_certificate(data));

//! Runs the target `bundle_header` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::bundle_header(data));

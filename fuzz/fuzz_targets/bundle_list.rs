//! Runs the target `bundle_list` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::bundle_list(data));

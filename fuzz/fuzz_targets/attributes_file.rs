//! Runs the target `attributes_file` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::attributes_file(data));

//! Runs the target `reverse_index` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::reverse_index(data));

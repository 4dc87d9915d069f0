//! Runs the target `compressed_bitmap` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::compressed_bitmap(data));

//! Runs the target `pack_ahead` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::pack_ahead(data));

//! Runs the target `multi_pack_index` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::multi_pack_index(data));

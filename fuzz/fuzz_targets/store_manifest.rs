//! Runs the target `store_manifest` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::store_manifest(data));

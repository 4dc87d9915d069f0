//! Runs the target `pack_entry` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::pack_entry(data));

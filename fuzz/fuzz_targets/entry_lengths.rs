//! Runs the target `entry_lengths` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::entry_lengths(data));

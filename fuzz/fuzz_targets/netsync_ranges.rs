//! Runs the target `netsync_ranges` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::netsync_ranges(data));

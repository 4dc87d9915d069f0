//! Runs the target `netsync_frames` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::netsync_frames(data));

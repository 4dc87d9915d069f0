//! Runs the target `monitor_events` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::monitor_events(data));

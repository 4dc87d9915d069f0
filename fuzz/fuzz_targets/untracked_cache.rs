//! Runs the target `untracked_cache` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::untracked_cache(data));

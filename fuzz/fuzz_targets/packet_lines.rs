//! Runs the target `packet_lines` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::packet_lines(data));

//! Runs the target `ssh_command` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::ssh_command(data));

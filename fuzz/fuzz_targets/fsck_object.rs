//! Runs the target `fsck_object` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::fsck_object(data));

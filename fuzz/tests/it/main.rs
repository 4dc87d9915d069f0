//! Runs each fuzz target with random bytes. libFuzzer finds more errors. This test finds obvious
//! ones.

use std::panic::catch_unwind;

use test_support::{Random, Seed};

/// The number of inputs of each target.
const INPUTS: u64 = 2_000;

/// The length of the longest input, in bytes.
const LONGEST_BYTES: u64 = 600;

/// Returns bytes in which small numbers, letters and line ends are as frequent as in the input of
/// parsers.
fn input(random: &mut Random) -> Vec<u8> {
    let len = random.below(LONGEST_BYTES) as usize;
    let kind = random.below(4);
    let byte = |random: &mut Random| match (kind, random.below(8)) {
        (0, _) => random.number() as u8,
        (1, 0) => b'\n',
        (1, 1) => b' ',
        (1, _) => b' ' + random.below(95) as u8,
        (2, 0) => random.number() as u8,
        (2, _) => random.below(4) as u8,
        (_, 0..=4) => b"0123456789abcdef"[random.index(16)],
        (_, 5) => *random.one_of(b"\0\n\t /:=\"[]{}"),
        _ => random.number() as u8,
    };
    (0..len).map(|_| byte(random)).collect()
}

#[test]
fn every_target_takes_random_bytes() {
    let seed = Seed::new("every_target_takes_random_bytes");
    let failed: Vec<&str> = std::thread::scope(|scope| {
        let runs: Vec<_> = fuzz_targets::TARGETS
            .iter()
            .map(|&(name, target)| {
                let seed = seed.number();
                let run = scope.spawn(move || {
                    let mut random = Random::new(seed);
                    for _ in 0..INPUTS {
                        let data = input(&mut random);
                        if catch_unwind(|| target(&data)).is_err() {
                            panic!(
                                "target '{name}' fails with {:?}",
                                data.escape_ascii().to_string()
                            );
                        }
                    }
                });
                (name, run)
            })
            .collect();
        let failed = runs
            .into_iter()
            .filter_map(|(name, run)| run.join().err().map(|_| name));
        failed.collect()
    });
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn targets_are_sorted_and_are_programs() {
    let names: Vec<&str> = fuzz_targets::TARGETS
        .iter()
        .map(|(name, _)| *name)
        .collect();
    assert!(names.is_sorted());
    let manifest = include_str!("../../Cargo.toml");
    for name in names {
        assert!(manifest.contains(&format!("name = \"{name}\"\n")), "{name}");
    }
}

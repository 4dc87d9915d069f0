//! Sync of large changing files: stored deltas are sent as deltas.

use super::netsync::Pair;

/// Returns lines of pseudo-random text of at least `len` bytes.
fn lines(seed: u64, len: usize) -> Vec<String> {
    let mut noise = seed;
    let mut next = move || {
        noise = noise
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(seed | 1);
        noise >> 24
    };
    let mut lines = Vec::new();
    let mut bytes = 0;
    while bytes < len {
        let line = format!("{:x} {:x} {:x}\n", next(), next(), next());
        bytes += line.len();
        lines.push(line);
    }
    lines
}

/// Changes some lines and adds others.
fn change(lines: &mut Vec<String>, version: usize) {
    for at in (version * 131..lines.len()).step_by(9_001) {
        lines[at] = format!("version {version} changes line {at}\n");
    }
    lines.extend((0..500).map(|line| format!("version {version} adds line {line}\n")));
}

/// Returns the number of received bytes.
fn received(reported: &str) -> u64 {
    let (_, after) = reported
        .split_once("\"received_bytes\":")
        .expect("it is told");
    let (count, _) = after.split_once(',').expect("a number ends");
    count.parse().expect("a number")
}

#[test]
fn large_deltas_are_sent_as_stored() {
    let pair = Pair::new();
    pair.git("other", &["config", "core.compression", "1"]);
    // One whose base the receiver has in memory, one that is built in a file, and one that is not a
    // delta.
    let mut files = [lines(1, 9 << 20), lines(3, 17 << 20)];
    let write = |files: &[Vec<String>; 2]| {
        for (number, file) in files.iter().enumerate() {
            let path = pair.path("other").join(format!("text{number}"));
            std::fs::write(path, file.concat()).expect("a file");
        }
    };
    std::fs::write(pair.path("other").join("zeros"), vec![0; 20 << 20]).expect("a file");
    for version in 0..4 {
        files.iter_mut().for_each(|file| change(file, version));
        write(&files);
        pair.commit("other", "version", &version.to_string());
    }
    pair.git("other", &["repack", "-adfq"]);
    let size = |name: &str| {
        let reported = pair.git(name, &["count-objects", "-v"]);
        let line = reported
            .lines()
            .find_map(|line| line.strip_prefix("size-pack: "));
        line.expect("it is told").parse::<u64>().expect("a number") << 10
    };
    let all = size("other");
    let reported = pair.synced(&["--json", "--name", "laptop", "../other"]);
    let count = received(&reported);
    assert!(count < all + all / 20, "{count} of {all}");
    let tree = "main^{tree}";
    assert_eq!(
        pair.git("one", &["rev-parse", &format!("laptop/{tree}")]),
        pair.git("other", &["rev-parse", tree])
    );
    assert_eq!(pair.git("one", &["fsck", "--full", "--strict"]), "");
    assert!(size("one") < all + all / 20);

    // Only new objects are received: one whole file, because git stores the older one as a delta of
    // it.
    change(&mut files[0], 5);
    write(&files);
    pair.commit("other", "version", "5");
    pair.git("other", &["repack", "-adfq"]);
    let reported = pair.synced(&["--json", "--name", "laptop", "../other"]);
    assert!(received(&reported) < all / 2, "{reported}");
    assert_eq!(
        pair.git("one", &["rev-parse", &format!("laptop/{tree}")]),
        pair.git("other", &["rev-parse", tree])
    );
    assert_eq!(pair.git("one", &["fsck", "--full", "--strict"]), "");
}

//! Tests of merges.

use super::*;

fn merged(ours: &str, base: &str, theirs: &str, options: &Options) -> (String, usize) {
    let merged = merge(ours.as_bytes(), base.as_bytes(), theirs.as_bytes(), options);
    let text = String::from_utf8(merged.text).expect("it was text");
    (text, merged.conflicts)
}

#[test]
fn changes_in_different_places_come_together() {
    let base = "a\nb\nc\nd\ne\n";
    let plain = Options::default();
    assert_eq!(
        merged("A\nb\nc\nd\ne\n", base, "a\nb\nc\nd\nE\nf\n", &plain),
        ("A\nb\nc\nd\nE\nf\n".into(), 0)
    );
    assert_eq!(merged(base, base, "", &plain), (String::new(), 0));
    assert_eq!(merged("", base, base, &plain), (String::new(), 0));
    let same = "a\nX\nc\nd\ne\n";
    assert_eq!(merged(same, base, same, &plain), (same.into(), 0));
}

#[test]
fn conflicts_are_shown_as_is_asked_for() {
    let (ours, base, theirs) = ("a\nx\nour\nz\n", "a\nb\n", "a\nx\ntheir\nz\n");
    let mut options = Options {
        names: [Some("one".into()), Some("old".into()), Some("two".into())],
        ..Options::default()
    };
    let shown = |options: &Options| merged(ours, base, theirs, options);
    assert_eq!(
        shown(&options),
        (
            "a\nx\n<<<<<<< one\nour\n=======\ntheir\n>>>>>>> two\nz\n".into(),
            1
        )
    );
    options.style = ConflictStyle::Diff3;
    options.marker_len = 3;
    assert_eq!(
        shown(&options).0,
        "a\n<<< one\nx\nour\nz\n||| old\nb\n===\nx\ntheir\nz\n>>> two\n"
    );
    options.style = ConflictStyle::ZealousDiff3;
    assert_eq!(
        shown(&options).0,
        "a\nx\n<<< one\nour\n||| old\nb\n===\ntheir\n>>> two\nz\n"
    );
    options.favor = Favor::Union;
    options.style = ConflictStyle::Merge;
    assert_eq!(shown(&options), ("a\nx\nour\ntheir\nz\n".into(), 0));
}

#[test]
fn overlapping_changes_of_which_one_goes_further_are_one_conflict() {
    let base = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
    let ours = "3\n4\n5\nx\n7\n8\n9\n";
    let theirs = "1\nz\n";
    let (text, conflicts) = merged(ours, base, theirs, &Options::default());
    assert_eq!(conflicts, 1);
    assert!(
        text.starts_with("<<<<<<<\n3\n") && text.ends_with("z\n>>>>>>>\n"),
        "{text}"
    );
}

#[test]
fn line_ends_of_markers_are_those_around_them() {
    let lines = |text: &str| text.replace('\n', "\r\n");
    let (text, _) = merged(
        &lines("a\nx"),
        &lines("a\nb\n"),
        &lines("a\ny\n"),
        &Options::default(),
    );
    assert_eq!(text, lines("a\n<<<<<<<\nx\n=======\ny\n>>>>>>>\n"));
}

#[test]
fn costly_pairs_end() {
    // Both texts have few distinct lines in common, which occur often, so the search reaches its
    // limit.
    let text = |seed: u32| -> String {
        let mut state = seed;
        let mut line = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            format!("{}\n", (state >> 16) % 300)
        };
        (0..4000).map(|_| line()).collect()
    };
    let merged = merge(
        text(1).as_bytes(),
        text(2).as_bytes(),
        text(3).as_bytes(),
        &Options::default(),
    );
    assert!(merged.conflicts > 0);
}

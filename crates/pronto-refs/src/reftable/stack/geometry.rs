//! Selects the tables to compact, so that each is larger than all newer ones together.

use std::ops::Range;

/// Returns the range of tables to compact, given the weights of all tables, oldest first. With a
/// factor of 2, each table should be twice as large as the next; tables that are not are merged,
/// together with older tables until the merged table satisfies the condition. Returns `None` if no
/// merge is necessary.
pub(super) fn segment(weights: &[u64], factor: u8) -> Option<Range<usize>> {
    let factor = if factor == 0 { 2 } else { u64::from(factor) };
    let is_small = |older: u64, newer: u64| older < newer.saturating_mul(factor);
    let last = (1..weights.len())
        .rev()
        .find(|&at| is_small(weights[at - 1], weights[at]))?;
    let mut sum = weights[last];
    let mut first = last;
    for at in (0..last).rev() {
        if is_small(weights[at], sum) {
            first = at;
        }
        sum = sum.saturating_add(weights[at]);
    }
    Some(first..last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_geometric_sequence_is_left_alone() {
        assert_eq!(segment(&[], 2), None);
        assert_eq!(segment(&[5], 2), None);
        assert_eq!(segment(&[64, 32, 16, 8, 4, 2, 1], 2), None);
        assert_eq!(segment(&[100, 10, 1], 10), None);
    }

    #[test]
    fn what_breaks_the_sequence_is_merged_with_what_is_in_the_way() {
        assert_eq!(segment(&[1, 1], 2), Some(0..2));
        assert_eq!(segment(&[64, 32, 16, 8, 4, 3, 1], 2), Some(0..6));
        assert_eq!(segment(&[128, 32, 16, 8, 4, 3, 1], 2), Some(1..6));
        assert_eq!(
            segment(&[512, 64, 17, 16, 9, 9, 9, 16, 2, 16], 2),
            Some(1..10)
        );
        assert_eq!(segment(&[100, 11, 1], 0), None);
        assert_eq!(segment(&[100, 11, 1], 200), Some(0..3));
    }
}

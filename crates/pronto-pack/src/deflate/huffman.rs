//! Huffman codes of limited length.

/// The largest length of a code in bits.
pub(super) const LONGEST_CODE: usize = 15;

/// Computes the lengths of a prefix code for symbols with the frequencies `counts`, each at most
/// `limit` bits. If fewer than two symbols occur, two symbols get codes anyway, because some
/// decoders require this.
///
/// The lengths are computed in place (Moffat and Katajainen, "In-place calculation of
/// minimum-redundancy codes", 1995). Codes that are too long are shortened by lengthening the
/// longest codes within the limit, which is nearly optimal.
pub(super) fn code_lengths(counts: &[u32], limit: usize, lengths: &mut [u8]) {
    lengths.fill(0);
    let mut room = [(0, 0); 288];
    let mut len = 0;
    for (symbol, &count) in counts.iter().enumerate() {
        if count > 0 {
            room[len] = (count, symbol as u16);
            len += 1;
        }
    }
    if len < 2 {
        let only = room[..len]
            .first()
            .map_or(0, |(_, symbol)| usize::from(*symbol));
        lengths[only] = 1;
        lengths[usize::from(only == 0)] = 1;
        return;
    }
    let used = &mut room[..len];
    used.sort_unstable();
    let mut nodes = [0; 288];
    let nodes = &mut nodes[..len];
    nodes
        .iter_mut()
        .zip(&*used)
        .for_each(|(node, (count, _))| *node = *count);
    depths(nodes);
    let mut of_length = [0; LONGEST_CODE + 1];
    for depth in nodes {
        of_length[(*depth as usize).min(limit)] += 1;
    }
    shorten(&mut of_length[..=limit]);
    let longest_first = (1..=limit).rev();
    let in_order = longest_first.flat_map(|length| (0..of_length[length]).map(move |_| length));
    for ((_, symbol), length) in used.iter().zip(in_order) {
        lengths[usize::from(*symbol)] = length as u8;
    }
}

/// Converts at least two weights in ascending order to the lengths of their codes.
fn depths(nodes: &mut [u32]) {
    let len = nodes.len();
    // Each inner node replaces a weight, and then becomes the number of its parent node.
    let (mut root, mut leaf) = (0, 0);
    for next in 0..len - 1 {
        let mut weight = 0;
        for _ in 0..2 {
            if root < next && (leaf >= len || nodes[root] < nodes[leaf]) {
                weight += nodes[root];
                nodes[root] = next as u32;
                root += 1;
            } else {
                weight += nodes[leaf];
                leaf += 1;
            }
        }
        nodes[next] = weight;
    }
    // The root is the last but one; from there downwards, parent numbers become depths.
    nodes[len - 2] = 0;
    for at in (0..len - 2).rev() {
        nodes[at] = nodes[nodes[at] as usize] + 1;
    }
    let mut inner = len as isize - 2;
    let (mut available, mut depth) = (1, 0);
    let mut next = len;
    while available > 0 {
        let mut used = 0;
        while inner >= 0 && nodes[inner as usize] == depth {
            (used, inner) = (used + 1, inner - 1);
        }
        for _ in used..available {
            next -= 1;
            nodes[next] = depth;
        }
        (available, depth) = (2 * used, depth + 1);
    }
}

/// Restores a valid prefix code after codes that are too long were cut to the limit. `of_length` is
/// the number of codes of each length.
fn shorten(of_length: &mut [usize]) {
    let limit = of_length.len() - 1;
    let taken = |of_length: &[usize]| -> usize {
        (1..=limit)
            .map(|length| of_length[length] << (limit - length))
            .sum()
    };
    let mut over = taken(of_length).saturating_sub(1 << limit);
    while over > 0 {
        let longest = (1..limit).rev().find(|length| of_length[*length] > 0);
        let Some(length) = longest else { return };
        // One code becomes one bit longer, and its sibling takes the place of one of the longest
        // codes.
        of_length[length] -= 1;
        of_length[length + 1] += 2;
        of_length[limit] -= 1;
        over -= 1;
    }
}

/// Computes the words of a canonical code (RFC 1951, 3.2.2), with their bits in the order of
/// writing.
pub(super) fn code_words(lengths: &[u8], words: &mut [u16]) {
    let mut of_length = [0; LONGEST_CODE + 1];
    lengths
        .iter()
        .for_each(|length| of_length[usize::from(*length)] += 1);
    of_length[0] = 0;
    let mut next = [0; LONGEST_CODE + 1];
    for length in 1..=LONGEST_CODE {
        next[length] = (next[length - 1] + of_length[length - 1]) << 1;
    }
    for (&length, word) in lengths.iter().zip(words) {
        if length > 0 {
            let next: &mut u16 = &mut next[usize::from(length)];
            *word = next.reverse_bits() >> (16 - length);
            *next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the used share of the code space, in words of the longest code.
    fn taken(lengths: &[u8]) -> u32 {
        let used = lengths.iter().filter(|len| **len > 0);
        used.map(|len| 1 << (LONGEST_CODE - usize::from(*len)))
            .sum()
    }

    /// Returns the smallest sum of frequencies times lengths, by joining the two lightest nodes
    /// repeatedly.
    fn least_cost(counts: &[u32]) -> u64 {
        let mut weights: Vec<u64> = counts.iter().map(|count| u64::from(*count)).collect();
        weights.retain(|weight| *weight > 0);
        let mut cost = 0;
        while weights.len() > 1 {
            weights.sort_unstable_by(|a, b| b.cmp(a));
            let joined = weights.pop().unwrap_or(0) + weights.pop().unwrap_or(0);
            cost += joined;
            weights.push(joined);
        }
        cost
    }

    #[test]
    fn codes_are_the_best_where_no_limit_is_met() {
        let mut state = 1u64;
        for symbols in 2..287 {
            let counts: Vec<u32> = std::iter::repeat_with(|| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
                (state >> 33) as u32 % 50
            })
            .take(symbols)
            .chain([3, 4])
            .collect();
            let mut lengths = vec![0; counts.len()];
            code_lengths(&counts, LONGEST_CODE, &mut lengths);
            let pairs = counts.iter().zip(&lengths);
            let cost: u64 = pairs
                .map(|(count, len)| u64::from(count * u32::from(*len)))
                .sum();
            assert_eq!(cost, least_cost(&counts), "{symbols}");
            assert_eq!(taken(&lengths), 1 << LONGEST_CODE);
        }
    }

    #[test]
    fn codes_that_would_be_too_long_are_not() {
        let mut counts = vec![1, 1];
        for at in 2..40 {
            counts.push(counts[at - 1] + counts[at - 2]);
        }
        for limit in [6, 7, 9, LONGEST_CODE] {
            let mut lengths = vec![0; counts.len()];
            code_lengths(&counts, limit, &mut lengths);
            assert!(
                lengths
                    .iter()
                    .all(|len| (1..=limit).contains(&usize::from(*len)))
            );
            assert_eq!(taken(&lengths), 1 << LONGEST_CODE, "{limit}");
            assert!(lengths.is_sorted_by(|a, b| a >= b), "{lengths:?}");
        }
    }

    #[test]
    fn there_are_two_codes_always() {
        for counts in [[0, 0, 0], [0, 9, 0], [9, 0, 0], [0, 0, 9]] {
            let mut lengths = [9; 3];
            code_lengths(&counts, 7, &mut lengths);
            assert_eq!(lengths.iter().filter(|len| **len == 1).count(), 2);
            assert_eq!(lengths.iter().sum::<u8>(), 2);
            assert!(
                counts
                    .iter()
                    .zip(lengths)
                    .all(|(count, len)| *count == 0 || len == 1)
            );
        }
    }

    #[test]
    fn words_are_those_of_the_standard() {
        // The example of RFC 1951, 3.2.2: ABCDEFGH.
        let mut words = [0; 8];
        code_words(&[3, 3, 3, 3, 3, 2, 4, 4], &mut words);
        let reversed = |bits: u16, len: u32| bits.reverse_bits() >> (16 - len);
        let expected = [0b010, 0b011, 0b100, 0b101, 0b110, 0b00, 0b1110, 0b1111];
        let lengths = [3, 3, 3, 3, 3, 2, 4, 4];
        for ((word, bits), len) in words.into_iter().zip(expected).zip(lengths) {
            assert_eq!(word, reversed(bits, len));
        }
    }
}

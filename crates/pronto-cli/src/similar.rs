//! The most similar of known names, as advice for a name that is unknown.

/// Returns the name in `known` that is most similar to `name`, if one is similar enough: it takes few
/// changes of letters, or `name` is its beginning.
pub(crate) fn most_similar<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    /// The length from which on a beginning says what is meant.
    const BEGINNING: usize = 3;
    let limit = (name.chars().count() + 2) / 4;
    let cost = |other: &str| match name.len() >= BEGINNING && other.starts_with(name) {
        true => 1,
        false => distance(name, other),
    };
    let rated = known.into_iter().map(|other| (cost(other), other));
    rated
        .filter(|(cost, _)| *cost <= limit.max(1))
        .min()
        .map(|(_, other)| other)
}

/// Returns the number of letters to insert, delete, replace, or exchange with the next letter, that
/// turn `one` into `two`.
fn distance(one: &str, two: &str) -> usize {
    let (one, two): (Vec<char>, Vec<char>) = (one.chars().collect(), two.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=two.len()).collect();
    for (row, letter) in one.iter().enumerate() {
        let mut next = vec![row + 1];
        for (at, other) in two.iter().enumerate() {
            let replaced = last[at] + usize::from(letter != other);
            let mut least = replaced.min(last[at + 1] + 1).min(next[at] + 1);
            let is_exchange = row > 0 && at > 0 && letter == &two[at - 1] && &one[row - 1] == other;
            if is_exchange {
                least = least.min(before[at - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut last, next);
    }
    last[two.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_counts_changes_of_letters() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("store", "store"), 0);
        assert_eq!(distance("stroe", "store"), 1);
        assert_eq!(distance("improt", "import"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn only_similar_names_are_advised() {
        let known = ["status", "store", "stash", "switch"];
        assert_eq!(most_similar("stroe", known), Some("store"));
        assert_eq!(most_similar("stat", known), Some("status"));
        assert_eq!(most_similar("swtich", known), Some("switch"));
        assert_eq!(most_similar("x", known), None);
        assert_eq!(most_similar("frobnicate", known), None);
    }
}

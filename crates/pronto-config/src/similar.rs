//! The most similar of known names, as advice for a name that is unknown.

/// Returns the name in `known` that is most similar to `name`, if one is similar enough: it takes few
/// changes of letters (insertions, deletions, replacements, exchanges of neighbours), or `name` is its
/// beginning.
pub fn most_similar<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// The length from which on a beginning says what is meant.
    const BEGINNING: usize = 3;
    let limit = (name.chars().count() + 2) / 4;
    let cost = |other: &str| match name.len() >= BEGINNING && other.starts_with(name) {
        true => 1,
        false => strsim::osa_distance(name, other),
    };
    let rated = known.into_iter().map(|other| (cost(other), other));
    rated
        .filter(|(cost, _)| *cost <= limit.max(1))
        .min()
        .map(|(_, other)| other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_similar_names_are_advised() {
        let known = ["status", "store", "stash", "switch"];
        assert_eq!(most_similar("stroe", known), Some("store"));
        assert_eq!(most_similar("stat", known), Some("status"));
        assert_eq!(most_similar("swtich", known), Some("switch"));
        assert_eq!(most_similar("improt", ["export", "import"]), Some("import"));
        assert_eq!(most_similar("x", known), None);
        assert_eq!(most_similar("frobnicate", known), None);
    }
}

//! Shrinks a scenario while its difference has the same cause.

use super::scenario::{RepositorySelection, Scenario};

/// Returns the smallest scenario found for which `has_cause` is true, beginning with `scenario`.
///
/// Each step that `has_cause` confirms removes something, so the search ends.
pub(super) fn shrink(
    scenario: &Scenario,
    mut has_cause: impl FnMut(&Scenario) -> bool,
) -> Scenario {
    let mut smallest = scenario.clone();
    while let Some(smaller) = candidates(&smallest).into_iter().find(|one| has_cause(one)) {
        smallest = smaller;
    }
    smallest
}

/// Returns the scenarios that are one step smaller, beginning with those from which most is
/// removed.
fn candidates(scenario: &Scenario) -> Vec<Scenario> {
    let mut all = Vec::new();
    let mut add = |change: &dyn Fn(&mut Scenario)| {
        let mut smaller = scenario.clone();
        change(&mut smaller);
        if smaller != *scenario {
            all.push(smaller);
        }
    };
    add(&|one| one.calls.truncate(1));
    add(&|one| one.hooks.clear());
    add(&|one| one.settings.clear());
    add(&|one| one.environment.clear());
    add(&|one| one.recipe = "plain".to_owned());
    add(&|one| {
        one.place = RepositorySelection {
            directory: "r".to_owned(),
            ..RepositorySelection::default()
        };
    });
    for (number, call) in scenario.calls.iter().enumerate() {
        for position in 0..call.options.len() {
            add(&|one| {
                one.calls[number].options.remove(position);
            });
        }
        for position in 0..call.arguments.len() {
            add(&|one| {
                one.calls[number].arguments.remove(position);
            });
        }
        add(&|one| one.calls[number].input.clear());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::scenario::ProgramCall;
    use super::*;

    #[test]
    fn only_what_is_needed_stays() {
        let words = |words: &[&str]| {
            words
                .iter()
                .map(|&word| word.to_owned())
                .collect::<Vec<_>>()
        };
        let call = ProgramCall {
            command: words(&["checkout"]),
            options: words(&["--force", "--quiet"]),
            arguments: words(&["a", "b"]),
            ..ProgramCall::default()
        };
        let scenario = Scenario {
            recipe: "conflict".to_owned(),
            environment: vec![("GIT_DIR".to_owned(), None)],
            calls: vec![call.clone(), call],
            ..Scenario::default()
        };
        let needs = |one: &Scenario| {
            one.recipe == "conflict" && one.calls[0].options.contains(&"--quiet".to_owned())
        };
        let smallest = shrink(&scenario, needs);
        assert_eq!(smallest.recipe, "conflict");
        assert_eq!(smallest.calls.len(), 1);
        assert_eq!(smallest.calls[0].options, ["--quiet"]);
        assert!(smallest.calls[0].arguments.is_empty() && smallest.environment.is_empty());
        assert_eq!(smallest.place.directory, "r");
    }
}

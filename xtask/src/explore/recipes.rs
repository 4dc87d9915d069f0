//! The recipes: scripts that create the repositories of scenarios with git.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The scripts, each after a line `== NAME`.
const SCRIPTS: &str = include_str!("recipes.sh");

/// The functions that scripts use.
const PRELUDE: &str = include_str!("prelude.sh");

/// The global configuration of every call.
pub(super) const GLOBAL: &str = "[user]\n\tname = A U Thor\n\temail = author@example.com\n\
    [init]\n\tdefaultBranch = main\n[gc]\n\tauto = 0\n\tautoDetach = false\n\
    [maintenance]\n\tauto = false\n\tautoDetach = false\n";

/// A named script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recipe {
    pub(super) name: &'static str,
    pub(super) script: &'static str,
}

/// Returns all recipes, the simplest first.
pub(super) fn all() -> Vec<Recipe> {
    let blocks = SCRIPTS.split("== ").filter(|block| !block.is_empty());
    let recipes = blocks.filter_map(|block| {
        let (name, script) = block.split_once('\n')?;
        Some(Recipe { name, script })
    });
    recipes.collect()
}

/// The repositories that recipes have created, which all jobs share.
#[derive(Debug)]
pub(super) struct Templates {
    git: PathBuf,
    directory: PathBuf,
    made: BTreeMap<&'static str, OnceLock<Result<RecipeRepository, String>>>,
}

/// A repository that a recipe has created.
#[derive(Clone, Debug)]
pub(super) struct RecipeRepository {
    pub(super) path: PathBuf,
    /// The directory in which it was created. Files of the repository contain this path.
    pub(super) root: PathBuf,
}

impl Templates {
    /// Creates the collection of templates below `directory`. `git` runs the recipes.
    pub(super) fn new(git: &Path, directory: &Path) -> Self {
        let names = all()
            .into_iter()
            .map(|recipe| (recipe.name, OnceLock::new()));
        Templates {
            git: git.to_owned(),
            directory: directory.to_owned(),
            made: names.collect(),
        }
    }

    /// Returns the template of a recipe. The script runs at `root`, which must not exist, and the
    /// result is moved away.
    ///
    /// # Errors
    /// Fails if there is no such recipe, or if its script fails.
    pub(super) fn get(&self, name: &str, root: &Path) -> Result<RecipeRepository, String> {
        let made = self.made.get(name);
        let made = made.ok_or_else(|| format!("there is no recipe '{name}'"))?;
        made.get_or_init(|| self.make(name, root)).clone()
    }

    fn make(&self, name: &str, root: &Path) -> Result<RecipeRepository, String> {
        let recipe = all().into_iter().find(|recipe| recipe.name == name);
        let script = recipe.map_or("", |recipe| recipe.script);
        self.run(name, script, root)?;
        let path = self.directory.join(name);
        fs::rename(root, &path).map_err(|error| format!("cannot move '{name}': {error}"))?;
        let root = root.to_owned();
        Ok(RecipeRepository { path, root })
    }

    fn run(&self, name: &str, script: &str, root: &Path) -> Result<(), String> {
        let home = root.join("home");
        let written = fs::create_dir_all(&home)
            .and_then(|()| fs::create_dir_all(root.join("out")))
            .and_then(|()| fs::write(home.join(".gitconfig"), GLOBAL));
        written.map_err(|error| format!("cannot write in '{}': {error}", root.display()))?;
        let output = Command::new("/bin/sh")
            .arg("-c")
            .arg(format!("{PRELUDE}\n{}", script))
            .current_dir(root)
            .env_clear()
            .envs(fixed_environment(&self.git, root))
            .output()
            .map_err(|error| format!("cannot run sh: {error}"))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(format!(
                "the recipe '{}' fails: {}",
                name,
                String::from_utf8_lossy(&output.stderr)
            )),
        }
    }
}

/// Returns the environment variables of every process of a scenario.
pub(super) fn fixed_environment(git: &Path, root: &Path) -> Vec<(String, String)> {
    let folder = git.parent().unwrap_or(git).display();
    let parent = root.parent().unwrap_or(root);
    let variables = [
        ("PATH", format!("{folder}:/usr/bin:/bin")),
        ("HOME", root.join("home").display().to_string()),
        ("LC_ALL", "C".to_owned()),
        ("TZ", "UTC".to_owned()),
        ("GIT_CEILING_DIRECTORIES", parent.display().to_string()),
        ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
        ("GIT_TEMPLATE_DIR", String::new()),
        ("GIT_TERMINAL_PROMPT", "0".to_owned()),
        ("GIT_EDITOR", ":".to_owned()),
        ("GIT_ADVICE", "0".to_owned()),
        ("GIT_AUTHOR_DATE", "1112912993 -0700".to_owned()),
        ("GIT_COMMITTER_DATE", "1112912993 -0700".to_owned()),
    ];
    variables
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_recipes_are_unique_and_the_first_is_plain() {
        let recipes = all();
        assert!(recipes.len() >= 40, "{}", recipes.len());
        assert_eq!(recipes[0].name, "plain");
        let names: std::collections::BTreeSet<_> = recipes.iter().map(|made| made.name).collect();
        assert_eq!(names.len(), recipes.len());
    }

    #[test]
    fn every_recipe_can_be_made() {
        let Some(git) = test_support::git::reference() else {
            return test_support::report_missing_reference(&"recipes");
        };
        let scratch = test_support::Scratch::new();
        let templates = Templates::new(git, scratch.path());
        for recipe in all() {
            let made = templates.get(recipe.name, &scratch.join("root"));
            assert!(made.is_ok(), "{made:?}");
        }
    }
}

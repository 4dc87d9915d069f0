//! Runs a scenario with one program.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use super::process::{ProcessOutput, Watchdog};
use super::recipes::{Templates, fixed_environment};
use super::scenario::{ProgramCall, ROOT, Scenario, SettingLevel};
use super::snapshot::{self, StateSnapshot};
use super::tree;

/// The hint in pronto's message about a call that would be handed to git.
const REFUSAL: &str = "unset PRONTO_NO_FALLBACK to let git run this call";

/// The result of a scenario with one program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) outputs: Vec<ProcessOutput>,
    pub(super) state: StateSnapshot,
}

impl Outcome {
    /// Returns the first line of the message with which a call was refused.
    pub(super) fn refusal(&self) -> Option<&str> {
        let refused = self
            .outputs
            .iter()
            .find(|output| output.stderr.contains(REFUSAL))?;
        let mut lines = refused.stderr.lines();
        lines
            .find(|line| line.starts_with("fatal: ") || line.starts_with("error: "))
            .or(Some(""))
    }
}

/// The programs that run scenarios.
#[derive(Clone, Debug)]
pub(super) struct ComparedPrograms {
    pub(super) git: PathBuf,
    pub(super) pronto: PathBuf,
    pub(super) watchdog: Watchdog,
}

/// A directory in which scenarios run, one after another.
#[derive(Debug)]
pub(super) struct Bench {
    git: PathBuf,
    pronto: PathBuf,
    directory: PathBuf,
    templates: Arc<Templates>,
    /// The templates, rewritten to the path of this bench.
    copies: BTreeMap<String, PathBuf>,
    watchdog: Watchdog,
}

impl Bench {
    /// Creates a bench in `directory`, which must exist. The paths of all benches have the same
    /// length.
    pub(super) fn new(
        programs: &ComparedPrograms,
        directory: &Path,
        templates: Arc<Templates>,
    ) -> Self {
        Bench {
            git: programs.git.clone(),
            pronto: programs.pronto.clone(),
            directory: directory.to_owned(),
            templates,
            copies: BTreeMap::new(),
            watchdog: programs.watchdog.clone(),
        }
    }

    /// Replaces pronto by another program.
    pub(super) fn with_program(&mut self, program: &Path) {
        program.clone_into(&mut self.pronto);
    }

    /// Runs `scenario` with pronto, and with git unless pronto refuses a call.
    ///
    /// # Errors
    /// Fails if the repository cannot be created, or if a file cannot be read or written.
    pub(super) fn run(
        &mut self,
        scenario: &Scenario,
    ) -> Result<(Outcome, Option<Outcome>), String> {
        let pronto = self.pronto.clone();
        let of_pronto = self.side(scenario, &pronto)?;
        if of_pronto.refusal().is_some() {
            return Ok((of_pronto, None));
        }
        let git = self.git.clone();
        let of_git = self.side(scenario, &git)?;
        Ok((of_pronto, Some(of_git)))
    }

    fn side(&mut self, scenario: &Scenario, program: &Path) -> Result<Outcome, String> {
        let root = self.directory.join("root");
        let failed = |error: io::Error| format!("{}: {error}", root.display());
        tree::remove(&root).map_err(failed)?;
        let template = self.template(&scenario.recipe, &root)?;
        tree::copy(&template, &root).map_err(failed)?;
        prepare(scenario, &root).map_err(failed)?;
        let mut outcome = Outcome::default();
        for call in &scenario.calls {
            let program = if call.is_git { &self.git } else { program };
            let mut command = self.command(scenario, call, program, &root);
            let input = with_root(&call.input, &root);
            let output = self.watchdog.run(&mut command, &input, &self.directory);
            let mut output = output.map_err(failed)?;
            for text in [&mut output.stdout, &mut output.stderr] {
                *text = text.replace(&root.display().to_string(), ROOT);
            }
            outcome.outputs.push(output);
        }
        outcome.state = snapshot::take(&root).map_err(failed)?;
        let path = root.display().to_string();
        for text in outcome.state.values_mut() {
            if text.contains(&path) {
                *text = text.replace(&path, ROOT);
            }
        }
        Ok(outcome)
    }

    /// Returns the directory to copy for a recipe.
    fn template(&mut self, recipe: &str, root: &Path) -> Result<PathBuf, String> {
        if let Some(path) = self.copies.get(recipe) {
            return Ok(path.clone());
        }
        let template = self.templates.get(recipe, root)?;
        let mut path = template.path;
        if template.root != root {
            let own = self.directory.join(recipe);
            let copied = tree::copy_replacing(&path, &own, &template.root, root);
            copied.map_err(|error| format!("cannot copy '{recipe}': {error}"))?;
            path = own;
        }
        self.copies.insert(recipe.to_owned(), path.clone());
        Ok(path)
    }

    fn command(
        &self,
        scenario: &Scenario,
        call: &ProgramCall,
        program: &Path,
        root: &Path,
    ) -> Command {
        let place = &scenario.place;
        let wanted = root.join(&place.directory);
        let directory = if wanted.is_dir() {
            wanted
        } else {
            root.to_owned()
        };
        let mut command = Command::new(program);
        command
            .current_dir(directory)
            .env_clear()
            .envs(fixed_environment(&self.git, root))
            .env("PRONTO_NO_FALLBACK", "1");
        for (name, value) in &place.environment {
            command.env(name, with_root(value, root));
        }
        for (name, value) in &scenario.environment {
            match value {
                Some(value) => command.env(name, with_root(value, root)),
                None => command.env_remove(name),
            };
        }
        command.args(
            arguments(scenario, call)
                .iter()
                .map(|word| with_root(word, root)),
        );
        command
    }
}

/// Returns the arguments of a call, beginning with the options before the command.
pub(super) fn arguments(scenario: &Scenario, call: &ProgramCall) -> Vec<String> {
    let mut arguments = scenario.place.arguments.clone();
    for setting in scenario
        .settings
        .iter()
        .filter(|one| one.level == SettingLevel::CommandLine)
    {
        arguments.extend(["-c".to_owned(), setting.argument()]);
    }
    if scenario.hooks.iter().any(|hook| hook.is_relative) {
        arguments.extend(["-c".to_owned(), "core.hooksPath=.githooks".to_owned()]);
    }
    arguments.extend(call.line());
    arguments
}

/// Writes the settings and hooks of a scenario.
fn prepare(scenario: &Scenario, root: &Path) -> io::Result<()> {
    symlink("r", root.join("link"))?;
    for setting in &scenario.settings {
        let text = with_root(&setting.text(), root);
        match setting.level {
            SettingLevel::CommandLine => {}
            SettingLevel::Global => append(&root.join("home/.gitconfig"), &text)?,
            SettingLevel::Repository => append(&root.join("r/.git/config"), &text)?,
            SettingLevel::Included | SettingLevel::Conditional => {
                append(&root.join("r/.git/included"), &text)?;
                let include = with_root(setting.level.include(), root);
                append(&root.join("r/.git/config"), &include)?;
            }
        }
    }
    for hook in &scenario.hooks {
        let path = root.join(hook.path());
        if !root.join("r/.git").is_dir() {
            continue;
        }
        fs::create_dir_all(path.parent().unwrap_or(root))?;
        fs::write(&path, with_root(&hook.script(), root))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(hook.mode()))?;
    }
    Ok(())
}

/// Appends to a file in a repository. Does nothing if the directory of the file does not exist.
fn append(path: &Path, text: &str) -> io::Result<()> {
    if !path.parent().is_some_and(Path::is_dir) {
        return Ok(());
    }
    let mut content = fs::read(path).unwrap_or_default();
    content.extend_from_slice(text.as_bytes());
    fs::write(path, content)
}

fn with_root(text: &str, root: &Path) -> String {
    text.replace(ROOT, &root.display().to_string())
}

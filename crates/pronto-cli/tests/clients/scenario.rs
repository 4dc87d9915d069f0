//! The operations of each client, run with both servers side by side.

use std::path::PathBuf;

use crate::client::{Client, Operation, Outcome};
use crate::pushes;
use crate::report::{Row, shorten};
use crate::stage::{Side, Stage, Transport};
use crate::state::State;

/// A client with one transport.
pub(crate) struct Scenario<'a> {
    pub(crate) stage: &'a Stage,
    pub(crate) client: &'a Client,
    pub(crate) transport: Transport,
    /// The name of the client's repositories and clones.
    pub(crate) name: String,
    problems: Vec<String>,
}

/// A function that returns an operation for a URL.
type WithUrl = for<'u> fn(&'u str) -> Operation<'u>;

/// Runs all operations. The error lists all problems.
pub(crate) fn run(stage: &Stage, client: &Client, transport: Transport) -> Result<(), String> {
    let mut scenario = Scenario::new(stage, client, transport);
    for side in Side::BOTH {
        let path = scenario.repository(side);
        stage.templates.copy(&path, side == Side::Git);
        stage.publish(side, transport, &scenario.name);
    }
    scenario.reads();
    scenario.absent();
    if !transport.is_for_reading() {
        pushes::run(&mut scenario);
    }
    for side in Side::BOTH {
        if let Err(problem) = State::read(&scenario.served(side)) {
            scenario.wrong("fsck of the server", &problem);
        }
    }
    scenario.end()
}

impl<'a> Scenario<'a> {
    pub(crate) fn new(stage: &'a Stage, client: &'a Client, transport: Transport) -> Self {
        Scenario {
            stage,
            client,
            transport,
            name: format!("{}-{transport}", client.name),
            problems: Vec::new(),
        }
    }

    pub(crate) fn repository(&self, side: Side) -> PathBuf {
        self.stage.repository(side, self.transport, &self.name)
    }

    /// Returns a bare repository with the state of a server.
    pub(crate) fn served(&self, side: Side) -> PathBuf {
        self.stage.served(side, self.transport, &self.name)
    }

    /// Returns a directory for a clone.
    pub(crate) fn place(&self, side: Side, what: &str) -> PathBuf {
        let parent = self.stage.clones(side, &self.name);
        std::fs::create_dir_all(&parent).expect("a directory");
        parent.join(what)
    }

    fn reads(&mut self) {
        let clone: WithUrl = |url| Operation::Clone { url };
        let shallow: WithUrl = |url| Operation::Shallow { url };
        let partial: WithUrl = |url| Operation::Partial { url };
        let mut made = Vec::new();
        if self.read("clone", "clone", clone) {
            self.follows("clone");
            made.push(("fetch", "clone"));
        }
        if self.read("shallow clone", "shallow", shallow) {
            self.is_shallow();
            made.push(("fetch into a shallow clone", "shallow"));
            self.read("deepen", "shallow", |_| Operation::Deepen(3));
        }
        if self.read("partial clone", "partial", partial) {
            made.push(("fetch into a partial clone", "partial"));
        }
        for side in Side::BOTH {
            self.stage.templates.advance(&self.repository(side));
            self.stage.publish(side, self.transport, &self.name);
        }
        for (label, place) in made {
            if self.read(label, place, |_| Operation::Fetch) && place == "clone" {
                self.follows(label);
            }
        }
    }

    /// Runs a reading operation with both servers, and compares the clones. Returns whether the
    /// clones are usable.
    fn read(&mut self, label: &str, place: &str, operation: WithUrl) -> bool {
        let [ours, theirs] = Side::BOTH.map(|side| {
            let url = self.stage.url(side, self.transport, &self.name);
            let login = self.stage.me(side);
            self.client
                .run(operation(&url), &self.place(side, place), &login)
        });
        if !self.judge(label, &ours, &theirs) {
            return false;
        }
        let [ours, theirs] = Side::BOTH.map(|side| State::read(&self.place(side, place)));
        match (ours, theirs) {
            (Ok(ours), Ok(theirs)) => match ours.compare(&theirs) {
                Ok(()) => self.note(label, "ok", ""),
                Err(problem) => self.wrong(label, &problem),
            },
            (Err(problem), Ok(_)) => self.wrong(label, &problem),
            // The fault is the client's if it fails with both servers.
            (_, Err(problem)) => {
                self.note(label, "fails fsck with git's server, too", &problem);
                return false;
            }
        }
        true
    }

    /// Returns whether an operation succeeded with both servers.
    pub(crate) fn judge(&mut self, label: &str, ours: &Outcome, theirs: &Outcome) -> bool {
        match (ours, theirs) {
            (Outcome::Done, Outcome::Done) => return true,
            (Outcome::Unsupported, _) | (_, Outcome::Unsupported) => {
                self.note(label, "not in the client", "");
            }
            (Outcome::Failed(_), Outcome::Failed(text)) => {
                self.note(label, "fails with git's server, too", text);
            }
            (Outcome::Failed(text), Outcome::Done) => self.wrong(label, text),
            (Outcome::Done, Outcome::Failed(text)) => {
                self.note(label, "ok; fails with git's server", text);
            }
        }
        false
    }

    /// Checks that the full clone has the refs of the server.
    fn follows(&mut self, label: &str) {
        let server = State::read(&self.served(Side::Pronto));
        let clone = State::read(&self.place(Side::Pronto, "clone"));
        let followed = server.and_then(|server| clone?.follows(&server));
        if let Err(problem) = followed {
            self.wrong(label, &problem);
        }
    }

    fn is_shallow(&mut self) {
        let clone = State::read(&self.place(Side::Pronto, "shallow"));
        match clone {
            Ok(clone) if clone.is_shallow() => {}
            Ok(_) => self.wrong("shallow clone", "it is not shallow"),
            Err(problem) => self.wrong("shallow clone", &problem),
        }
    }

    /// Checks that the client reports a repository that does not exist.
    fn absent(&mut self) {
        let url = self.stage.url(Side::Pronto, self.transport, "absent");
        let login = self.stage.me(Side::Pronto);
        let place = self.place(Side::Pronto, "absent");
        let label = "clone of an absent repository";
        match self
            .client
            .run(Operation::Clone { url: &url }, &place, &login)
        {
            Outcome::Failed(text) => self.readable(
                label,
                &text,
                &["no repository", "not found", "404", "NotGitRepository"],
            ),
            outcome => self.wrong(label, &format!("it does not fail: {outcome:?}")),
        }
    }

    /// Records a refusal, whose text must contain one of `words`.
    pub(crate) fn readable(&mut self, label: &str, text: &str, words: &[&str]) {
        let lower = text.to_lowercase();
        match words
            .iter()
            .any(|word| lower.contains(&word.to_lowercase()))
        {
            true => self.note(label, "refused, with the reason", text),
            false => self.wrong(label, &format!("none of {words:?} is said: {text}")),
        }
    }

    /// Records a result for the table.
    pub(crate) fn note(&mut self, operation: &str, result: &str, remark: &str) {
        self.stage.rows.lock().expect("no panic").push(Row {
            client: self.client.name.clone(),
            version: self.client.version.clone(),
            transport: self.transport.to_string(),
            operation: operation.to_owned(),
            result: result.to_owned(),
            remark: shorten(remark),
        });
    }

    /// Records a problem.
    pub(crate) fn wrong(&mut self, operation: &str, problem: &str) {
        self.note(operation, "WRONG", problem);
        self.problems.push(format!("{operation}: {problem}"));
    }

    /// Returns the result of all operations.
    pub(crate) fn end(self) -> Result<(), String> {
        match self.problems.is_empty() {
            true => Ok(()),
            false => {
                let lines: Vec<String> = self.stage.log().lines().map(str::to_owned).collect();
                let mine = lines.iter().filter(|line| line.contains(&self.name));
                let log: Vec<&str> = mine.map(String::as_str).collect();
                let text = self.problems.join("\n");
                Err(format!("{text}\nlog of the server:\n{}", log.join("\n")))
            }
        }
    }
}

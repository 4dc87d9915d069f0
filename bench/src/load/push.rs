//! Measures pushes of one commit.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use super::Result;
use super::client::LoadClient;
use super::packets::{self, FLUSH};

const SERVICE: &str = "git-receive-pack";

/// A commit to push.
struct PushedCommit {
    id: String,
    pack: Vec<u8>,
}

/// Commits on top of a repository, each in a pack of its own. They are created before the
/// measurement.
pub struct PreparedPushes {
    changes: Mutex<Vec<PushedCommit>>,
    base: String,
    /// The largest number of branches that pushes leave.
    most_branches: usize,
    /// The commits with branches on the server, the oldest first.
    pushed: Mutex<VecDeque<String>>,
}

impl PreparedPushes {
    /// Creates `count` commits on the branch `main` of `template`, in a directory beside it.
    ///
    /// # Errors
    /// Fails if git fails.
    pub fn make(template: &Path, count: u32) -> Result<Self> {
        let folder = template.with_file_name(format!("changes-{}", std::process::id()));
        // The directory may exist from an earlier process with the same id.
        let _ = std::fs::remove_dir_all(&folder);
        let failed = |error| format!("cannot write '{}': {error}", folder.display());
        run(
            template,
            &["init", "-q", "--bare", &folder.display().to_string()],
            "",
        )?;
        let objects = template.join("objects");
        std::fs::write(
            folder.join("objects/info/alternates"),
            format!("{}\n", objects.display()),
        )
        .map_err(failed)?;
        let base = text(&run(template, &["rev-parse", "refs/heads/main"], "")?);
        let tree = text(&run(
            template,
            &["rev-parse", "refs/heads/main^{tree}"],
            "",
        )?);
        let mut changes = Vec::new();
        for number in 0..count {
            let message = format!("change {number}");
            let arguments = ["commit-tree", &tree, "-p", &base, "-m", &message];
            let id = text(&run(&folder, &arguments, "")?);
            let ids = format!("{id}\n^{base}\n");
            let arguments = ["pack-objects", "-q", "--stdout", "--revs"];
            let pack = run(&folder, &arguments, &ids)?;
            changes.push(PushedCommit { id, pack });
        }
        std::fs::remove_dir_all(&folder).map_err(failed)?;
        Ok(PreparedPushes {
            changes: Mutex::new(changes),
            base,
            most_branches: usize::MAX,
            pushed: Mutex::default(),
        })
    }

    /// Sets the largest number of branches that pushes leave. At this number, a push also deletes
    /// the oldest branch of earlier pushes.
    pub fn leave_at_most(mut self, branches: usize) -> Self {
        self.most_branches = branches;
        self
    }

    /// Pushes the next commit as a new branch. The same push deletes the oldest branch if there are
    /// too many.
    ///
    /// # Errors
    /// Fails if the push is refused, or if no commit is left.
    pub fn push(&self, client: &LoadClient, repository: &str) -> Result<()> {
        let mut changes = self.changes.lock().map_err(|_| "a push has panicked")?;
        let change = changes.pop().ok_or("there are no commits left to push")?;
        drop(changes);
        let mut has_base = false;
        let mut conversation = client.push(repository, &mut |line| {
            has_base |= line.starts_with(self.base.as_bytes());
        })?;
        if !has_base {
            return Err("the server has another history".to_owned());
        }
        let name = format!("refs/heads/pushed/{}", change.id);
        let nothing = "0".repeat(40);
        let command = format!(
            "{nothing} {} {name}\0 report-status side-band-64k agent=git/2.55.0",
            change.id
        );
        let mut body = Vec::new();
        packets::write(&mut body, command.as_bytes());
        let mut pushed = self.pushed.lock().map_err(|_| "a push has panicked")?;
        let oldest = match pushed.len() >= self.most_branches {
            true => pushed.pop_front(),
            false => None,
        };
        drop(pushed);
        if let Some(oldest) = oldest {
            let command = format!("{oldest} {nothing} refs/heads/pushed/{oldest}");
            packets::write(&mut body, command.as_bytes());
        }
        body.extend_from_slice(FLUSH);
        body.extend_from_slice(&change.pack);
        let report = conversation.ask(SERVICE, &body, report)?;
        match report.contains(&format!("ok {name}")) {
            true => {
                let mut pushed = self.pushed.lock().map_err(|_| "a push has panicked")?;
                pushed.push_back(change.id);
                Ok(())
            }
            false => Err(format!("the push is refused: {report:?}")),
        }
    }
}

/// Reads the report of a push.
fn report(stream: &mut dyn Read) -> Result<String> {
    let mut buffer = vec![0; 65_536];
    let mut report = Vec::new();
    while let Some(length) = packets::read_into(stream, &mut buffer)? {
        if let Some((1, data)) = buffer[..length].split_first() {
            report.extend_from_slice(data);
        }
    }
    Ok(String::from_utf8_lossy(&report).into_owned())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

/// Runs git in a repository.
fn run(repository: &Path, arguments: &[&str], input: &str) -> Result<Vec<u8>> {
    let failed = |error| format!("cannot run git: {error}");
    let names = ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"];
    let addresses = ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"];
    let mut child = Command::new("git")
        .args(arguments)
        .current_dir(repository)
        .envs(names.map(|name| (name, "Bench")))
        .envs(addresses.map(|name| (name, "bench@example.org")))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let mut pipe = child.stdin.take().ok_or("there is no pipe")?;
    pipe.write_all(input.as_bytes()).map_err(failed)?;
    drop(pipe);
    let output = child.wait_with_output().map_err(failed)?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(format!(
            "git {} fails in '{}'",
            arguments[0],
            repository.display()
        )),
    }
}

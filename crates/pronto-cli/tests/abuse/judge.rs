//! Runs one row, and then checks the server and its repositories.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::Value;

use crate::rows::Row;
use crate::site::{REPOSITORIES, template_path};
use crate::stage::{Stage, Verdict};
use crate::stored::Place;
use crate::wire::{FETCH, V2, fetch, post};

/// The variable that makes every row print its time and memory.
const VERBOSE: &str = "PRONTO_TEST_VERBOSE";

/// The timeout of a row, on a busy machine.
const MOST_SECONDS: u64 = 60;

/// The ref that the honest client pushes.
const HONEST: &str = "refs/heads/honest";

/// Runs a row.
///
/// # Errors
/// Fails with the violated conditions and the log of the server.
pub(crate) fn judge(row: &Row, place: Place) -> Verdict {
    let begun = Instant::now();
    let mut stage = Stage::new(place);
    let attacked = (row.attack)(&mut stage);
    let mut report = String::new();
    let mut note = |verdict: Verdict| {
        if let Err(problem) = verdict {
            _ = writeln!(report, "- {problem}");
        }
    };
    note(attacked);
    // An attack without a request has not started the server, nor the honest client, which must not
    // outlive the server.
    stage.server();
    if let Some(honest) = stage.take_honest() {
        note(honest.end());
    }
    note(stage.measures("requests_under_way", |count| count == 0));
    // The limit allows for this connection and for one that has just ended.
    note(stage.measures("connections", |count| count <= 2));
    note(push_and_fetch(&mut stage));
    let most = stage.most_mebibytes;
    let server = stage.server();
    let peak = server.peak_mebibytes();
    note(match server.is_running() && peak <= most {
        true => Ok(()),
        false => Err(format!("the server uses {peak} MiB, more than {most}")),
    });
    note(server.end());
    let log = server.text();
    note(check_log(&stage, &log));
    note(check_files(&stage));
    let seconds = begun.elapsed().as_secs();
    note(match seconds < MOST_SECONDS {
        true => Ok(()),
        false => Err(format!("it takes {seconds} s")),
    });
    if std::env::var_os(VERBOSE).is_some() {
        let time = begun.elapsed().as_millis();
        println!("== {}/{}: {time} ms, {peak} MiB", row.class, row.name);
    }
    match report.is_empty() {
        true => Ok(()),
        false => Err(format!("{report}the log:\n{}", shown(&log))),
    }
}

/// Returns the end of a log, without the requests of honest clients.
fn shown(log: &str) -> String {
    let is_own = |line: &&str| line.contains("\"127.0.0.1:") && line.contains("\"status\":200");
    let lines: Vec<&str> = log.lines().filter(|line| !is_own(line)).collect();
    let cut = lines[lines.len().saturating_sub(20)..].iter();
    cut.map(|line| format!("{}\n", line.get(..400).unwrap_or(line)))
        .collect()
}

/// Pushes with stock git, and fetches as another user, after the attack.
fn push_and_fetch(stage: &mut Stage) -> Verdict {
    if stage.is_secure() {
        return Ok(());
    }
    let push = ["push", "-q", "URL", "main:refs/heads/honest"];
    let output = stage.git_as("alice", &push, "team/a");
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("an honest client cannot push: {said}"));
    }
    let body = fetch(&[&stage.site.ids.second.clone()]);
    let headers = format!("{V2}{}", stage.token("bob"));
    let mut connection = stage.connect_from(Ipv4Addr::LOCALHOST);
    let request = post("team/a", FETCH, &headers, &body);
    let answer = connection.send(request).answer()?;
    match answer.status == 200 && answer.body.windows(4).any(|word| word == b"PACK") {
        true => Ok(()),
        false => Err(format!("an honest client cannot fetch: {answer:?}")),
    }
}

/// Checks that each log line is an event, that request ids which clients have received are logged,
/// and that secrets are not.
fn check_log(stage: &Stage, log: &str) -> Verdict {
    let mut known = Vec::new();
    for line in log.lines() {
        let event: Value = serde_json::from_str(line)
            .map_err(|_| format!("the log has a line that is no event: {line}"))?;
        known.extend(event["request"].as_str().map(str::to_owned));
        let is_control = |character: char| {
            let code = u32::from(character);
            character.is_control() || (0x202a..=0x202e).contains(&code)
        };
        if line.chars().any(is_control) {
            return Err(format!("the log has a control character: {line:?}"));
        }
    }
    for id in stage.ids.lock().expect("no panic").iter() {
        if !known.contains(id) {
            return Err(format!("the request {id} is not logged"));
        }
    }
    for token in stage.site.ids.tokens() {
        let secret = token.rsplit('_').next().unwrap_or(token);
        if log.contains(secret) {
            return Err("the log has a token".to_owned());
        }
    }
    Ok(())
}

/// Checks that repositories are valid, that no temporary file is left, and that nothing else has
/// changed.
fn check_files(stage: &Stage) -> Verdict {
    let before = template_path();
    for repository in REPOSITORIES {
        if stage.site.is_unchanged(repository) {
            continue;
        }
        let now = stage.repository(repository);
        let then = before.join(format!("root/{repository}.git"));
        check_refs(stage, &then, repository)?;
        if stage.site.is_store() {
            continue;
        }
        let is_own = |path: &Path| stage.owns(repository, path);
        compare(&now, &then, &is_own)?;
    }
    stage.site.check_store()?;
    let allowed = stage.changed_repositories();
    let mut names = stage.site.changed_names().into_iter();
    if let Some(name) = names.find(|name| !allowed.contains(name)) {
        return Err(format!("the repository {name} was made or removed"));
    }
    let anything = |_: &Path| false;
    compare(
        &stage.site.path("outside"),
        &before.join("outside"),
        &anything,
    )?;
    let fsck = ["fsck", "--full", "--strict", "--no-dangling"];
    for repository in stage.changed_repositories() {
        let at = stage.repository(&repository);
        let output = stage.site.try_git(&at, &fsck);
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(format!("{repository} is broken: {said}"));
        }
    }
    Ok(())
}

/// Checks that refs are unchanged, except for refs that the row may change.
fn check_refs(stage: &Stage, before: &Path, repository: &str) -> Verdict {
    let (mut now, mut then) = (refs_of(&stage.repository(repository)), refs_of(before));
    if repository == "team/a" {
        now.remove(HONEST);
    }
    let allowed = stage.allowed.iter();
    for allowed in allowed.filter(|it| it.repository == repository) {
        now.remove(&allowed.name);
        then.remove(&allowed.name);
    }
    match now == then {
        true => Ok(()),
        false => Err(format!("refs of {repository} are {now:?}, not {then:?}")),
    }
}

/// Returns the refs in the files of a repository.
pub(crate) fn refs_of(repository: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let packed = std::fs::read_to_string(repository.join("packed-refs")).unwrap_or_default();
    for line in packed.lines() {
        if let Some((id, name)) = line.split_once(' ')
            && id.len() == 40
        {
            found.insert(name.to_owned(), id.to_owned());
        }
    }
    for (path, content) in files(&repository.join("refs")) {
        let name = format!("refs/{}", path.to_string_lossy());
        let value = String::from_utf8_lossy(&content).trim_end().to_owned();
        found.insert(name, value);
    }
    found
}

/// Compares all files except objects, refs and logs, and finds leftover temporary files.
fn compare(now: &Path, then: &Path, is_own: &dyn Fn(&Path) -> bool) -> Verdict {
    let (now, then) = (files(now), files(then));
    for (path, content) in &now {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("tmp_") || name.ends_with(".lock") || name.ends_with(".keep") {
            return Err(format!("'{}' is left", path.display()));
        }
        let is_part = ["objects", "refs", "logs", "packed-refs"]
            .iter()
            .any(|part| path.starts_with(part));
        if !is_part && !is_own(path) && then.get(path) != Some(content) {
            return Err(format!("'{}' has changed", path.display()));
        }
    }
    match then.keys().find(|path| !now.contains_key(*path)) {
        Some(path) if !path.starts_with("refs") => Err(format!("'{}' is gone", path.display())),
        _ => Ok(()),
    }
}

/// Returns files by their paths below `top`. Directories have no content, and objects are not read.
pub(crate) fn files(top: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut found, mut waiting) = (BTreeMap::new(), vec![top.to_owned()]);
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(&directory)
            .into_iter()
            .flatten()
            .flatten()
        {
            let path = entry.path();
            let relative = path.strip_prefix(top).expect("it is below").to_owned();
            let is_object = relative.starts_with("objects");
            match path.is_dir() {
                true => {
                    // An empty temporary directory is a leftover, too.
                    let name = entry.file_name();
                    if name.to_string_lossy().starts_with("tmp_") {
                        found.insert(relative, Vec::new());
                    }
                    waiting.push(path);
                }
                false if is_object => _ = found.insert(relative, Vec::new()),
                false => {
                    let content = std::fs::read(&path).unwrap_or_default();
                    found.insert(relative, content);
                }
            }
        }
    }
    found
}

//! Measures the calls and bytes of a push and of a fetch, for repositories of growing size.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use bench::load::push::PreparedPushes;
use bench::load::{Result, fetch};

use crate::bucket::Calls;
use crate::site::{SiteOptions, SiteRole, StoreSite};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Numbers of commits, in repositories of ten refs
    #[arg(long, value_delimiter = ',', default_value = "1,100,10000,100000")]
    commits: Vec<u32>,
    /// Numbers of refs, in repositories of a hundred commits
    #[arg(long, value_delimiter = ',', default_value = "10,1000,100000,1000000")]
    refs: Vec<u32>,
    /// Operations of which the mean is taken
    #[arg(long, default_value_t = 20)]
    operations: u32,
}

pub(crate) fn run(start: &SiteOptions, options: &Options) -> Result<()> {
    println!(
        "| commits | refs | fetch of nothing | push of a commit | fetch after a push elsewhere |"
    );
    println!("|---|---|---|---|---|");
    let commits = options.commits.iter().map(|commits| (*commits, 10));
    let refs = options.refs.iter().map(|refs| (100, *refs));
    for (commits, refs) in commits.chain(refs) {
        one(start, options, commits, refs)?;
    }
    Ok(())
}

/// Measures a repository of one size, and prints a line.
fn one(start: &SiteOptions, options: &Options, commits: u32, refs: u32) -> Result<()> {
    let site = StoreSite::new(start)?;
    let source = site.path("source.git");
    history(&source, commits, refs)?;
    site.import(&source, "r")?;
    let changes = PreparedPushes::make(&source, 2 * options.operations + 2)?;
    let (near, far) = (
        site.serve("near", SiteRole::Serve)?,
        site.serve("far", SiteRole::Serve)?,
    );
    for served in [&near, &far] {
        changes.push(&served.client, "r")?;
        fetch::nothing(&served.client, "r")?;
    }
    fetch::nothing(&near.client, "r")?;
    site.bucket.slow(Duration::ZERO, 0);
    let count = options.operations;
    let measured = |act: &dyn Fn() -> Result<()>| -> Result<String> {
        let before = site.bucket.calls();
        (0..count).try_for_each(|_| act())?;
        Ok(cell(site.bucket.calls().since(before), count))
    };
    let nothing = measured(&|| fetch::nothing(&near.client, "r").map(|_| ()))?;
    let push = measured(&|| changes.push(&near.client, "r"))?;
    let mut elsewhere = Calls::default();
    for _ in 0..count {
        changes.push(&near.client, "r")?;
        let before = site.bucket.calls();
        fetch::nothing(&far.client, "r")?;
        let taken = site.bucket.calls().since(before);
        elsewhere = sum(elsewhere, taken);
    }
    println!(
        "| {commits} | {refs} | {nothing} | {push} | {} |",
        cell(elsewhere, count)
    );
    Ok(())
}

fn sum(one: Calls, other: Calls) -> Calls {
    Calls {
        gets: one.gets + other.gets,
        missing: one.missing + other.missing,
        puts: one.puts + other.puts,
        lists: one.lists + other.lists,
        deletes: one.deletes + other.deletes,
        received: one.received + other.received,
        sent: one.sent + other.sent,
    }
}

fn cell(calls: Calls, count: u32) -> String {
    let each = |number: u64| number as f64 / f64::from(count);
    format!(
        "{:.1} GET, {:.1} LIST, {:.1} PUT; {:.1} KiB read, {:.1} KiB written",
        each(calls.gets + calls.missing),
        each(calls.lists),
        each(calls.puts),
        each(calls.sent) / 1024.0,
        each(calls.received) / 1024.0
    )
}

/// Creates a bare repository with a linear history, in which each commit adds one file, and with
/// branches that point to some of the commits.
pub(crate) fn history(path: &Path, commits: u32, refs: u32) -> Result<()> {
    let directory = path.display().to_string();
    git(&["init", "-q", "--bare", "-b", "main", &directory], "")?;
    let mut stream = String::new();
    for number in 0..commits {
        let text = format!("content of file {number}\n").repeat(20);
        // Writing to a string does not fail.
        let _ = write!(
            stream,
            "commit refs/heads/main\ncommitter A <a@example.org> {} +0000\ndata 7\ncommit\n\
             M 100644 inline d{}/f{number}\ndata {}\n{text}\n",
            1_700_000_000 + number,
            number % 50,
            text.len()
        );
    }
    let repository = ["-C", &directory];
    git(
        &[&repository[..], &["fast-import", "--quiet"]].concat(),
        &stream,
    )?;
    let list = [&repository[..], &["rev-list", "main"]].concat();
    let ids = git(&list, "")?;
    let ids: Vec<&str> = ids.lines().collect();
    let mut packed = "# pack-refs with: peeled fully-peeled sorted \n".to_owned();
    let main = ids.first().ok_or("there is no commit")?;
    let mut names: Vec<(String, &str)> = (1..refs)
        .map(|number| {
            let name = format!("refs/heads/r{}/{number}", number / 1000);
            (name, ids[number as usize % ids.len()])
        })
        .collect();
    names.push(("refs/heads/main".to_owned(), main));
    names.sort_unstable();
    for (name, id) in names {
        let _ = writeln!(packed, "{id} {name}");
    }
    let file = path.join("packed-refs");
    std::fs::write(&file, packed)
        .map_err(|error| format!("cannot write '{}': {error}", file.display()))?;
    // The loose ref would hide the packed one; both have the same value.
    git(&[&repository[..], &["repack", "-qadb"]].concat(), "").map(|_| ())
}

/// Runs git with `input` as standard input, and returns its output.
fn git(arguments: &[&str], input: &str) -> Result<String> {
    let failed = |error| format!("cannot run git: {error}");
    let mut child = Command::new("git")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let mut pipe = child.stdin.take().ok_or("there is no pipe")?;
    pipe.write_all(input.as_bytes()).map_err(failed)?;
    drop(pipe);
    let output = child.wait_with_output().map_err(failed)?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("git {} fails", arguments.join(" "))),
    }
}

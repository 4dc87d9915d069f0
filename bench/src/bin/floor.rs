//! `cargo run --release -p bench --bin floor -- REPOSITORY COMMIT DIRECTORY`: measures the time in
//! which a file system creates the files of a commit if their contents are already in memory. This
//! time is a lower bound for every checkout on that file system.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that reports"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use clap::Parser;
use pronto_io::dir::Directory;

/// Measure how long it takes to create the files of a commit.
#[derive(Parser, Debug)]
#[command(name = "floor")]
struct Args {
    /// Repository that has the commit.
    repository: PathBuf,
    /// The commit, or a tree.
    commit: String,
    /// Directory on the file system to measure. Each run writes to a new directory in it, which is
    /// removed afterwards.
    directory: PathBuf,
    /// Number of threads. Each writes one directory at a time.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Number of runs. The median is printed.
    #[arg(long, default_value_t = 5)]
    runs: usize,
}

/// The files of one directory: names and sizes.
struct FloorDirectory {
    path: String,
    files: Vec<(String, usize)>,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Args) -> Result<(), String> {
    let folders = folders(&arguments.repository, &arguments.commit)?;
    let sizes = || folders.iter().flat_map(|folder| &folder.files);
    let content = vec![b'x'; sizes().map(|(_, size)| *size).max().unwrap_or_default()];
    let mut times = Vec::new();
    for run in 0..arguments.runs.max(1) {
        let top = arguments.directory.join(format!("floor-{run}"));
        // Writeback of earlier removals must end before the run.
        rustix::fs::sync();
        let time = make(&top, &folders, &content, arguments.threads);
        let removed = std::fs::remove_dir_all(&top);
        times.push(time.map_err(|error| format!("{}: {error}", top.display()))?);
        removed.map_err(|error| error.to_string())?;
    }
    times.sort();
    let seconds = |time: Duration| time.as_secs_f64();
    println!(
        "{} files in {} directories, {} MiB, {} threads: {:.3} s ({:.3} to {:.3})",
        sizes().count(),
        folders.len(),
        sizes().map(|(_, size)| size >> 10).sum::<usize>() >> 10,
        arguments.threads,
        seconds(times[times.len() / 2]),
        seconds(times[0]),
        seconds(times[times.len() - 1]),
    );
    Ok(())
}

/// Lists the files of the commit by directory. Symbolic links count as files.
fn folders(repository: &Path, commit: &str) -> Result<Vec<FloorDirectory>, String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(repository)
        .args(["-c", "core.quotePath=false", "ls-tree", "-r", "-l", commit])
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let mut folders: Vec<FloorDirectory> = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Some((columns, path)) = line.split_once('\t') else {
            continue;
        };
        let size = columns
            .rsplit(' ')
            .next()
            .and_then(|size| size.parse().ok());
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let file = (name.to_owned(), size.unwrap_or_default());
        match folders.last_mut().filter(|last| last.path == folder) {
            Some(last) => last.files.push(file),
            None => folders.push(FloorDirectory {
                path: folder.to_owned(),
                files: vec![file],
            }),
        }
    }
    Ok(folders)
}

/// Creates all directories and then the files, and measures both.
fn make(
    top: &Path,
    folders: &[FloorDirectory],
    content: &[u8],
    threads: usize,
) -> std::io::Result<Duration> {
    let begun = Instant::now();
    std::fs::create_dir(top)?;
    for folder in folders {
        std::fs::create_dir_all(top.join(&folder.path))?;
    }
    let next = AtomicUsize::new(0);
    let work = || -> std::io::Result<()> {
        while let Some(folder) = folders.get(next.fetch_add(1, Relaxed)) {
            let directory = Directory::open(&top.join(&folder.path))?;
            for (name, size) in &folder.files {
                let mut file = directory.create_file(name.as_bytes(), false)?;
                file.write_all(&content[..*size])?;
                file.finish()?;
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
        let mut joined = all.into_iter().map(|thread| {
            let failed = |_| std::io::Error::other("a thread has failed");
            thread.join().map_err(failed).flatten()
        });
        joined.try_for_each(|result| result)
    })?;
    Ok(begun.elapsed())
}

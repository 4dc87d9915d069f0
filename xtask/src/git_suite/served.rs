//! Creates a test suite whose scripts start `pronto serve` instead of other servers.
//!
//! The directory of the scripts consists of symbolic links, except for the libraries that start
//! servers, which are replaced. Functions of these libraries that concern the tests and not the
//! server are copied from the suite when the directory is created.

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A library of the suite that starts a server.
struct Library {
    name: &'static str,
    /// The text that replaces the library.
    text: &'static str,
    /// The functions of the suite's library that are kept.
    kept: &'static [&'static str],
}

const LIBRARIES: [Library; 2] = [
    Library {
        name: "lib-httpd.sh",
        text: include_str!("served/lib-httpd.sh"),
        kept: &[
            "test_http_push_nonff",
            "setup_askpass_helper",
            "set_askpass",
            "set_netrc",
            "clear_netrc",
            "expect_askpass",
        ],
    },
    Library {
        name: "lib-git-daemon.sh",
        text: include_str!("served/lib-git-daemon.sh"),
        kept: &["fake_nc"],
    },
];

/// Creates `source`, a directory of links to a source tree of git, with the replaced libraries and
/// links to `server` and to this program. Returns the directory of the scripts in it.
///
/// # Errors
/// Fails if a file cannot be read or created, or if the tree lacks a library or function.
pub(super) fn replace_libraries(
    original: &Path,
    source: &Path,
    server: &Path,
) -> Result<PathBuf, String> {
    let made = || -> io::Result<PathBuf> {
        if source.exists() {
            std::fs::remove_dir_all(source)?;
        }
        link_all(original, source, &["t"])?;
        let (from, to) = (original.join("t"), source.join("t"));
        link_all(
            &from,
            &to,
            &LIBRARIES.each_ref().map(|library| library.name),
        )?;
        symlink(server, to.join("suite-server"))?;
        symlink(std::env::current_exe()?, to.join("suite-front"))?;
        Ok(to)
    };
    let scripts = made().map_err(|error| format!("cannot make '{}': {error}", source.display()))?;
    for library in &LIBRARIES {
        let path = original.join("t").join(library.name);
        let text = std::fs::read_to_string(&path)
            .map_err(|error| format!("cannot read '{}': {error}", path.display()))?;
        let text = library.text.to_owned() + &functions(&text, library.kept)?;
        let path = scripts.join(library.name);
        std::fs::write(&path, text)
            .map_err(|error| format!("cannot write '{}': {error}", path.display()))?;
    }
    Ok(scripts)
}

/// Returns the scripts that use one of the libraries, directly or through another library.
///
/// # Errors
/// Fails if the directory cannot be read.
pub(super) fn scripts(directory: &Path) -> Result<Vec<String>, String> {
    let files = read_all(directory)
        .map_err(|error| format!("cannot read '{}': {error}", directory.display()))?;
    let mut users: Vec<String> = LIBRARIES.map(|library| library.name.to_owned()).into();
    let mut known = 0;
    // Libraries use other libraries, so the list grows until no file uses a newly found library.
    while known < users.len() {
        known = users.len();
        for (name, text) in &files {
            if !users.contains(name) && users.iter().any(|used| sources(text, used)) {
                users.push(name.clone());
            }
        }
    }
    let scripts = users.iter().filter_map(|name| name.strip_suffix(".sh"));
    let mut scripts: Vec<String> = scripts
        .filter(|name| super::selection::is_seen_script(name))
        .map(str::to_owned)
        .collect();
    scripts.sort();
    Ok(scripts)
}

/// Returns whether a script sources the library `name`. A mention in a comment does not count.
fn sources(text: &str, name: &str) -> bool {
    let mut lines = text.lines().map(str::trim_start);
    lines.any(|line| line.starts_with(". ") && line.contains(&format!("/{name}")))
}

/// Returns the names and texts of all shell scripts in a directory.
fn read_all(directory: &Path) -> io::Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if let Ok(name) = entry.file_name().into_string()
            && name.ends_with(".sh")
        {
            let bytes = std::fs::read(entry.path())?;
            files.push((name, String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
    Ok(files)
}

/// Creates the directory `to` with links to every entry of `from` except `without`.
fn link_all(from: &Path, to: &Path, without: &[&str]) -> io::Result<()> {
    std::fs::create_dir(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        if !without.iter().any(|left_out| name == *left_out) {
            symlink(entry.path(), to.join(name))?;
        }
    }
    Ok(())
}

/// Returns the functions `names` of a shell library. A function begins and ends in the first
/// column.
fn functions(text: &str, names: &[&str]) -> Result<String, String> {
    let mut found = String::new();
    for name in names {
        let is_head = |line: &&str| {
            let rest = line.strip_prefix(name).map(str::trim_start);
            rest.is_some_and(|rest| rest.starts_with("()"))
        };
        let mut lines = text.lines().skip_while(|line| !is_head(line)).peekable();
        if lines.peek().is_none() {
            return Err(format!("the suite's library has no function '{name}'"));
        }
        for line in lines {
            found.push_str(line);
            found.push('\n');
            if line == "}" {
                break;
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_taken_from_a_library() {
        let text = "a() {\n\tx\n}\nb () {\n\tif y\n\t{\n\t}\n}\nc=1\n";
        assert_eq!(
            functions(text, &["b"]).expect("there"),
            "b () {\n\tif y\n\t{\n\t}\n}\n"
        );
        assert!(functions(text, &["c"]).is_err());
    }

    #[test]
    fn scripts_that_start_servers_are_found() {
        assert!(sources(
            "x\n. \"$TEST_DIRECTORY\"/lib-httpd.sh\n",
            "lib-httpd.sh"
        ));
        assert!(!sources("# by including lib-httpd.sh\n", "lib-httpd.sh"));
    }
}

//! Parses `*.case` files.

use std::path::{Path, PathBuf};

/// The rule for comparing standard error.
#[derive(Clone, Debug)]
pub(crate) enum Stderr {
    Compared,
    /// Lines that contain the text are omitted.
    Without(String),
    Ignored,
}

/// A case: a script with its title and its directives.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// The stem of the name of its file.
    pub(crate) file: String,
    /// The title, which states the tested behaviour.
    pub(crate) title: String,
    pub(crate) stderr: Stderr,
    /// The numbers of the calls that pronto hands over to git. All others must be native.
    pub(crate) handed_over: Vec<usize>,
    /// Commands that must be installed.
    pub(crate) needs: Vec<String>,
    /// The script, for `sh`.
    pub(crate) script: String,
}

impl Case {
    /// Returns the first needed command that is not installed.
    pub(crate) fn missing_need(&self) -> Option<&str> {
        let installed = |command: &str| {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).any(|directory| directory.join(command).is_file())
        };
        let missing = self.needs.iter().find(|need| !installed(need))?;
        Some(missing)
    }
}

/// Returns all cases of all files in `cases/`, in the order of file names.
pub(crate) fn all() -> Vec<Case> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential/cases");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&directory)
        .expect("the directory of cases exists")
        .map(|entry| entry.expect("it can be listed").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "case")
        })
        .collect();
    files.sort();
    files.iter().flat_map(|path| parse(path)).collect()
}

fn parse(path: &Path) -> Vec<Case> {
    let text = std::fs::read_to_string(path).expect("a case file is UTF-8 text");
    let file = path
        .file_stem()
        .expect("it has a name")
        .to_string_lossy()
        .into_owned();
    let (mut cases, mut setup, mut in_setup) = (Vec::<Case>::new(), String::new(), false);
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("== ") {
            in_setup = false;
            let (file, title) = (file.clone(), title.trim().to_owned());
            assert!(
                cases.iter().all(|case| case.title != title),
                "'{title}' twice in {file}"
            );
            let script = setup.clone();
            cases.push(Case {
                file,
                title,
                stderr: Stderr::Compared,
                handed_over: Vec::new(),
                needs: Vec::new(),
                script,
            });
        } else if line.trim() == ":: setup" {
            (in_setup, setup) = (true, String::new());
        } else if in_setup {
            setup.push_str(line);
            setup.push('\n');
        } else if let Some(directive) = line.strip_prefix(":: ") {
            let case = cases.last_mut().expect("a directive stands below a title");
            match directive.trim().split_once(' ') {
                Some(("stderr", "ignored")) => case.stderr = Stderr::Ignored,
                Some(("stderr", part)) => {
                    let text = part.strip_prefix("without ");
                    let text = text.expect("'ignored', or 'without TEXT'").to_owned();
                    case.stderr = Stderr::Without(text);
                }
                Some(("handed", calls)) => {
                    let numbers = calls.strip_prefix("over ").unwrap_or_default();
                    let parse = |number: &str| number.parse().expect("the number of a call");
                    case.handed_over = numbers.split_whitespace().map(parse).collect();
                }
                Some(("needs", command)) => case.needs.push(command.trim().to_owned()),
                _ => panic!("unknown directive '{line}' in {}", path.display()),
            }
        } else if let Some(case) = cases.last_mut() {
            case.script.push_str(line);
            case.script.push('\n');
        }
    }
    cases
}

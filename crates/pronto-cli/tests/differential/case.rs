//! Reading `*.case` files.

use std::path::{Path, PathBuf};

/// One script with its title and what it asks for.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// Stem of the file it stands in.
    pub(crate) file: String,
    /// The title of the case.
    pub(crate) title: String,
    /// Whether standard error is compared, too.
    pub(crate) compares_stderr: bool,
    /// The numbers of the calls that pronto hands over to git; all others are native.
    pub(crate) handed_over: Vec<usize>,
    /// Commands that must be installed.
    pub(crate) needs: Vec<String>,
    /// The first release of git that does what it shows.
    pub(crate) since: Option<Release>,
    /// The script, for `sh`.
    pub(crate) script: String,
}

impl Case {
    /// The first command this case needs and the machine does not have.
    pub(crate) fn missing_need(&self) -> Option<&str> {
        let installed = |command: &str| {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).any(|directory| directory.join(command).is_file())
        };
        let missing = self.needs.iter().find(|need| !installed(need))?;
        Some(missing)
    }
}

/// The two first numbers of a release of git.
pub(crate) type Release = [u32; 2];

/// All cases of all files beside this one, in the order of file names.
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
                compares_stderr: true,
                handed_over: Vec::new(),
                needs: Vec::new(),
                since: None,
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
                Some(("stderr", "ignored")) => case.compares_stderr = false,
                Some(("handed", calls)) => {
                    let numbers = calls.strip_prefix("over ").unwrap_or_default();
                    let parse = |number: &str| number.parse().expect("the number of a call");
                    case.handed_over = numbers.split_whitespace().map(parse).collect();
                }
                Some(("needs", command)) => case.needs.push(command.trim().to_owned()),
                Some(("since", release)) => case.since = parse_release(release),
                _ => panic!("unknown directive '{line}' in {}", path.display()),
            }
        } else if let Some(case) = cases.last_mut() {
            case.script.push_str(line);
            case.script.push('\n');
        }
    }
    cases
}

/// The release in `text`: `2.55`, or the words of `git version`.
pub(crate) fn parse_release(text: &str) -> Option<Release> {
    let text = text.trim();
    let mut numbers = text
        .strip_prefix("git version ")
        .unwrap_or(text)
        .split('.')
        .map(|number| number.parse().ok());
    Some([numbers.next()??, numbers.next()??])
}

//! Clones that start from bundle lists with many or malformed bundles.

use std::process::Output;

use crate::support::{self, Scratch, process, pronto_path, stderr};

/// A repository `src` with the commits and branches `one`, `two` and `three`, and the bundles `1`, `2` and `3`, each
/// with one of the commits.
struct Site(Scratch);

impl Site {
    fn new() -> Self {
        let site = Site(Scratch::new());
        site.git(&["init", "-q", "-b", "main", "src"]);
        let mut base = None;
        for (number, name) in ["one", "two", "three"].into_iter().enumerate() {
            let file = format!("{name}.txt");
            let path = site.0.join("src").join(&file);
            std::fs::write(path, name).expect("a file");
            site.git(&["-C", "src", "add", &file]);
            site.git(&["-C", "src", "commit", "-q", "-m", name]);
            site.git(&["-C", "src", "branch", name]);
            let file = format!("../{}", number + 1);
            let mut arguments = vec!["-C", "src", "bundle", "create", "-q", &file, name];
            let excluded = base.map(|base| format!("^{base}"));
            arguments.extend(excluded.as_deref());
            site.git(&arguments);
            base = Some(name);
        }
        site
    }

    fn git(&self, arguments: &[&str]) {
        support::git(self.0.path(), arguments);
    }

    fn write(&self, name: &str, content: &[u8]) {
        std::fs::write(self.0.join(name), content).expect("a file");
    }

    /// Writes the bundle `name`: that of commit `three` with `header`, and with a pack that lacks `cut` bytes.
    fn bundle(&self, name: &str, header: &str, cut: usize) {
        let whole = std::fs::read(self.0.join("3")).expect("a bundle");
        let at = whole.windows(4).position(|part| part == b"PACK");
        let pack = &whole[at.expect("a pack")..whole.len() - cut];
        let text = format!("# v2 git bundle\n{header} refs/heads/x\n\n");
        self.write(name, &[text.as_bytes(), pack].concat());
    }

    /// Clones `src` into `clone` with the list of bundles `list`.
    fn clone(&self) -> Output {
        let mut command = process("sh");
        command
            .args(["-c", "ulimit -n 128 && exec \"$@\"", "sh"])
            .arg(pronto_path())
            .args(["clone", "--bundle-uri=list", "src", "clone"])
            .env("PRONTO_NO_FALLBACK", "1")
            .current_dir(self.0.path());
        let output = command.output().expect("a shell");
        assert!(output.status.success(), "{}", stderr(&output));
        output
    }

    fn has_bundled(&self, branch: &str) -> bool {
        let name = format!("refs/bundles/heads/{branch}");
        let mut command = process("git");
        command.current_dir(self.0.join("clone"));
        let output = command
            .args(["rev-parse", "-q", "--verify", &name])
            .output();
        output.expect("git runs").status.success()
    }
}

/// An id that no object has.
const NO_ID: &str = "1111111111111111111111111111111111111111";

#[test]
fn a_list_of_many_bundles_needs_few_open_files() {
    let site = Site::new();
    site.bundle("waiting", &format!("-{NO_ID} \n{NO_ID}"), 0);
    let mut list = "[bundle]\nversion = 1\nmode = all\n".to_owned();
    for number in 0..600 {
        list.push_str(&format!("[bundle \"{number}\"]\nuri = waiting\n"));
    }
    list.push_str("[bundle \"last\"]\nuri = 1\n");
    site.write("list", list.as_bytes());
    let output = site.clone();
    assert!(site.has_bundled("one"), "{}", stderr(&output));
}

#[test]
fn a_malformed_bundle_is_tried_once() {
    let site = Site::new();
    let mut list = "[bundle]\nversion = 1\nmode = all\n".to_owned();
    for number in 0..30 {
        let name = format!("bad{number}");
        site.bundle(&name, NO_ID, 30);
        list.push_str(&format!("[bundle \"{name}\"]\nuri = {name}\n"));
    }
    for number in 1..=3 {
        list.push_str(&format!("[bundle \"{number}\"]\nuri = {number}\n"));
    }
    site.write("list", list.as_bytes());
    let output = site.clone();
    let said = stderr(&output);
    assert_eq!(said.matches("index-pack died").count(), 30, "{said}");
    assert!(
        ["one", "two", "three"]
            .iter()
            .all(|name| site.has_bundled(name))
    );
}

#[test]
fn a_malformed_bundle_among_tokens_does_not_hide_newer_ones() {
    let site = Site::new();
    site.bundle("bad", NO_ID, 30);
    let mut list = "[bundle]\nversion = 1\nmode = all\nheuristic = creationToken\n".to_owned();
    for (token, name) in ["1", "2", "bad", "3"].into_iter().enumerate() {
        let token = token + 1;
        list.push_str(&format!(
            "[bundle \"{name}\"]\nuri = {name}\ncreationToken = {token}\n"
        ));
    }
    site.write("list", list.as_bytes());
    let said = stderr(&site.clone());
    assert_eq!(said.matches("index-pack died").count(), 1, "{said}");
    assert!(site.has_bundled("three"), "{said}");
}

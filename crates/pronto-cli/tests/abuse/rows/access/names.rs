//! Repository names that could resolve to two repositories.

use std::os::unix::fs::symlink;
use std::path::Path;

use crate::client::Answer;
use crate::rows::Table;
use crate::site::copy;
use crate::stage::{Stage, listing, refused, require};
use crate::wire::refs_of;

/// The reason for which a store has no such names.
const NO_DIRECTORIES: &str = "a store has no directories beside repositories";

pub(super) fn rows(table: &mut Table) {
    table.row_on_disk("remove-beside-a-directory", NO_DIRECTORIES, |stage| {
        for (number, named) in ["own/two", "own/two.git"].into_iter().enumerate() {
            let root = two_places(stage);
            let answer = remove(stage, "mallory", named)?;
            require(answer.status == 204, || format!("{answer:?}"))?;
            let is_right =
                root.join("own/two/x.git/HEAD").exists() && !root.join("own/two.git").exists();
            require(is_right, || {
                format!("{named} ({number}) removes what is below it")
            })?;
        }
        // The names were served at the start.
        two_places(stage);
        Ok(())
    });
    table.row_on_disk("remove-below-a-name", NO_DIRECTORIES, |stage| {
        // The name has two components, and Mallory no role for it.
        let root = two_places(stage);
        refused(&remove(stage, "mallory", "own/two/x")?, 404)?;
        require(root.join("own/two/x.git/HEAD").exists(), || {
            "it is removed".to_owned()
        })
    });
    table.row_on_disk("remove-through-a-link", NO_DIRECTORIES, |stage| {
        let root = stage.site.path("root");
        symlink(root.join("team/a.git"), root.join("own/link.git")).expect("a link");
        symlink(root.join("team"), root.join("own/all")).expect("a link");
        std::fs::create_dir_all(root.join("own/pointed")).expect("a directory");
        let pointer = format!("gitdir: {}\n", root.join("team/a.git").display());
        std::fs::write(root.join("own/pointed/.git"), pointer).expect("a file");
        for name in ["own/link", "own/pointed", "own/all", "own/all/a"] {
            let answer = remove(stage, "mallory", name)?;
            require(answer.status >= 400, || format!("{name}: {answer:?}"))?;
        }
        for name in ["own/link.git", "own/all", "own/pointed"] {
            let path = root.join(name);
            let _ = std::fs::remove_file(&path);
            let _ = std::fs::remove_dir_all(&path);
        }
        require(root.join("team/a.git/HEAD").exists(), || {
            "it is gone".to_owned()
        })
    });
    table.row_on_disk("list-beside-a-directory", NO_DIRECTORIES, |stage| {
        two_places(stage);
        let token = stage.token("root");
        let answer = stage.ask(crate::wire::get("/api/v1/repositories", &token))?;
        let text = answer.text();
        let count = |name: &str| text.matches(&format!("\"{name}\"")).count();
        require(count("own/two") == 1 && count("own/two/x") == 1, || {
            text.clone()
        })
    });
    table.row_on_disk("read-beside-a-directory", NO_DIRECTORIES, |stage| {
        two_places(stage);
        for name in ["own/two", "own/two.git"] {
            let answer = stage.fetch(Some("mallory"), name, &listing())?;
            require(answer.text().contains("refs/heads/main"), || {
                format!("{answer:?}")
            })?;
        }
        let token = stage.token("mallory");
        let answer = stage.ask(crate::wire::get(
            &refs_of("own/two/x", crate::wire::FETCH),
            &token,
        ))?;
        refused(&answer, 404)?;
        let answer = stage.fetch(Some("root"), "own/two/x", &listing())?;
        require(answer.status == 200, || format!("{answer:?}"))
    });
}

/// Creates `own/two.git`, and beside it a directory `own/two` with a repository of another user.
/// Returns the root.
fn two_places(stage: &Stage) -> std::path::PathBuf {
    let root = stage.site.path("root");
    let fill = |to: &Path| {
        if !to.exists() {
            copy(&root.join("own/m.git"), to);
        }
    };
    fill(&root.join("own/two.git"));
    fill(&root.join("own/two/x.git"));
    root
}

fn remove(stage: &mut Stage, user: &str, name: &str) -> Result<Answer, String> {
    let token = stage.token(user);
    let line = format!("DELETE /api/v1/repositories/{name}");
    stage.ask(format!("{line} HTTP/1.1\r\nhost: x\r\n{token}\r\n"))
}

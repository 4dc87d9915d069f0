//! Hostile `.gitmodules` files.

use super::Table;
use crate::attack::{Attack, Scene, command};

/// The commands that read the file.
const COMMANDS: &[&[&str]] = &[
    &["status"],
    &["diff-files"],
    &["diff-index", "HEAD"],
    &["checkout", "HEAD"],
];

pub(super) fn table() -> Table {
    let mut table = Table::new("modules");
    for words in COMMANDS {
        let name = words[0];
        table.row(format!("includes-a-device-{name}"), |scene| {
            let text = "[include]\n\tpath = /dev/zero\n";
            with_file(scene, text, words)
        });
        table.row(format!("includes-a-fifo-{name}"), |scene| {
            scene.fifo("outside/fifo");
            let path = scene.path("outside/fifo").display().to_string();
            with_file(scene, &format!("[include]\n\tpath = {path}\n"), words)
        });
        table.row(format!("includes-on-a-condition-{name}"), |scene| {
            let text = "[includeIf \"gitdir:/**\"]\n\tpath = /dev/zero\n";
            with_file(scene, text, words)
        });
        table.row(format!("is-a-fifo-{name}"), |scene| {
            let attack = with_file(scene, "", words);
            scene.remove("work/repo/.gitmodules");
            scene.fifo("work/repo/.gitmodules");
            let attack = attack.git_differs("it opens the FIFO, and waits for a writer");
            // The control run takes all of it.
            attack.seconds(20)
        });
        table.row(format!("is-a-link-to-a-device-{name}"), |scene| {
            let attack = with_file(scene, "", words);
            scene.remove("work/repo/.gitmodules");
            scene.link("/dev/zero", "work/repo/.gitmodules");
            attack
        });
        table.row(format!("is-a-directory-{name}"), |scene| {
            let attack = with_file(scene, "", words);
            scene.remove("work/repo/.gitmodules");
            std::fs::create_dir(scene.path("work/repo/.gitmodules")).expect("a directory");
            attack
        });
    }
    table.row("includes-itself", |scene| {
        with_file(scene, "[include]\n\tpath = .gitmodules\n", COMMANDS[0])
    });
    table.row("is-large", |scene| {
        let text = "[submodule \"x\"]\n\tpath = x\n".repeat(1 << 18);
        with_file(scene, &text, COMMANDS[0]).seconds(120)
    });
    table.row("is-garbage", |scene| {
        with_file(scene, "[submodule \"x\u{0}\n\x1b[31m= \\q\n", COMMANDS[0])
    });
    table
}

/// A repository with a submodule `sub`, and `text` in its `.gitmodules`.
fn with_file(scene: &Scene, text: &str, words: &[&str]) -> Attack {
    scene.repository("work/repo");
    let all = format!("[submodule \"sub\"]\n\tpath = sub\n\turl = ./sub\n{text}");
    scene.write("work/repo/.gitmodules", all);
    scene.git("work/repo", &["add", ".gitmodules"]);
    let entry = format!("160000,{},sub", scene.ids.first);
    scene.git(
        "work/repo",
        &["update-index", "--add", "--cacheinfo", &entry],
    );
    scene.git("work/repo", &["commit", "-qm", "sub"]);
    scene.repository("work/repo/sub");
    command(words.iter().copied()).within("work/repo")
}

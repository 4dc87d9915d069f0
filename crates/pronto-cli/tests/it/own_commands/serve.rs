//! `serve`: wrong files, names and settings, and the administration without permissions.

use std::os::unix::fs::MetadataExt as _;

use test_support::{Need, need};

use super::Table;
use super::world::{World, silent_server};

/// Administrative calls that read the users.
const READING: [&str; 4] = [
    "pronto serve --config server.toml user list",
    "pronto serve --config server.toml user key list ann",
    "pronto serve --config server.toml repository list",
    "pronto serve --config server.toml --check",
];

/// Administrative calls that write.
pub(super) const WRITING: [&str; 5] = [
    "pronto serve --config server.toml user add bea",
    "pronto serve --config server.toml user remove ann",
    "pronto serve --config server.toml token ann",
    "pronto serve --config server.toml repository create new",
    "pronto serve --config server.toml repository remove project",
];

#[test]
fn serve() {
    let mut world = World::new();
    let mut table = Table::new("serve");
    wrong_operands(&world, &mut table);
    wrong_settings(&world, &mut table);
    ports(&world, &mut table);
    table.condition("damaged files");
    let users = std::fs::read_to_string(world.path("users.toml")).expect("a file");
    world.write("users.toml", "[[user\n");
    for line in READING.iter().chain(&WRITING[..2]) {
        table.call(&world, line);
    }
    world.write("users.toml", &users);
    world.without_privileges();
    table.condition("no permission to read");
    world.permit("users.toml", 0);
    world.permit("served", 0);
    for line in READING.iter().chain(&["pronto serve served"]) {
        table.call(&world, line);
    }
    world.permit("served", 0o555);
    world.permit("users.toml", 0o400);
    table.condition("no permission to write");
    world.permit("", 0o555);
    for line in &WRITING {
        table.call(&world, line);
    }
    world.permit("", 0o755);
    world.permit("served", 0o755);
    table.compare();
}

fn wrong_operands(world: &World, table: &mut Table) {
    table.condition("wrong operands");
    world.write("file", "no repository\n");
    for line in [
        "pronto serve nowhere",
        "pronto serve file",
        "pronto serve --config nowhere.toml",
        "pronto serve --config served",
        "pronto serve --listen=here served",
        "pronto serve --listen=127.0.0.1:99999 served",
        "pronto serve --log-format=xml served",
        "pronto serve --tls-cert=nowhere.pem --tls-key=nowhere.pem served",
        "pronto serve --tls-cert=file --tls-key=file served",
        "pronto serve --tls-cert=file served",
        "pronto serve --config server.toml user add ann",
        "pronto serve --config server.toml user add a/b",
        "pronto serve --config server.toml user remove bea",
        "pronto serve --config server.toml user key list bea",
        "pronto serve --config server.toml user key add ann no-key",
        "pronto serve --config server.toml user key remove ann SHA256:x",
        "pronto serve --config server.toml token bea",
        "pronto serve --config server.toml repository create project",
        "pronto serve --config server.toml repository create a..b",
        "pronto serve --config server.toml repository create .git",
        "pronto serve --config server.toml repository remove nothing",
        "pronto serve user list",
    ] {
        table.call(world, line);
    }
}

/// Configurations that a server refuses.
fn wrong_settings(world: &World, table: &mut Table) {
    table.condition("wrong settings");
    for text in [
        "root = 5\n",
        "rot = \"$DIR/served\"\n",
        "root = \"$DIR/served\"\n[http]\nlisten = [\"nowhere\"]\n",
        "root = \"$DIR/served\"\n[http\n",
        "root = \"$DIR/nowhere\"\n[http]\nlisten = [\"127.0.0.1:0\"]\n",
        "root = \"$DIR/served\"\nusers = \"$DIR/nowhere.toml\"\n[http]\nlisten = [\"127.0.0.1:0\"]\n",
        "root = \"$DIR/served\"\n[http]\nlisten = [\"127.0.0.1:0\"]\n[[grant]]\nuser = \"zoe\"\n",
    ] {
        world.write("wrong.toml", text);
        table.record(&format!("\n{}", text.replace("\n\n", "\n").trim_end()));
        table.call(world, "pronto serve --config wrong.toml --check");
    }
}

/// Addresses that cannot be used.
fn ports(world: &World, table: &mut Table) {
    table.condition("an address that is in use, and one of another machine");
    let (port, _receiver) = silent_server();
    table.call(
        world,
        &format!("pronto serve --listen=127.0.0.1:{port} served"),
    );
    table.call(world, "pronto serve --listen=192.0.2.1:8080 served");
}

#[test]
fn root_leaves_users_to_the_owner_and_names_repositories_that_are_not_his() {
    need!(Need::Root);
    let world = World::new();
    let (user, group) = (12_345, 23_456);
    for name in ["users.toml", "served"] {
        std::os::unix::fs::chown(world.path(name), Some(user), Some(group)).expect("given away");
    }
    for line in ["user add bea", "token ann", "user remove ann"] {
        world.prepare(&format!("pronto serve --config server.toml {line}"));
        let found = std::fs::metadata(world.path("users.toml")).expect("there");
        assert_eq!((found.uid(), found.gid()), (user, group), "{line}");
    }
    let result = world.run("pronto serve --config server.toml repository create new");
    assert!(
        result.contains("repository 'new' belongs to user 0"),
        "{result}"
    );
    assert!(result.contains("chown -R --reference="), "{result}");
}

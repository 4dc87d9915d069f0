//! `store` with wrong names, without permissions, and with stores that cannot be used.

use std::sync::mpsc::Receiver;

use rustix::process::Signal;
use test_support::s3::{BUCKET, S3Server};
use test_support::skip;

use super::Table;
use super::world::{World, answering_server, silent_server};

/// The TLS alert that servers of TLS send to clients that speak another protocol.
const TLS_ALERT: &[u8] = b"\x15\x03\x03\x00\x02\x02\x0a";

/// The response of a web server that is no store.
const WEB: &[u8] = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// A call of each subcommand, with `STORE` as the URL.
const CALLS: [&str; 11] = [
    "pronto store import work STORE new",
    "pronto store import served STORE",
    "pronto store export STORE r out.git",
    "pronto store copy STORE r STORE copied",
    "pronto store verify STORE",
    "pronto store verify STORE r",
    "pronto store upkeep STORE r",
    "pronto store list STORE",
    "pronto store list STORE r",
    "pronto store config STORE r",
    "pronto store head STORE r",
];

/// The variables for the service at `endpoint`.
fn variables(endpoint: &str) -> [(&str, &str); 4] {
    [
        ("AWS_ENDPOINT_URL", endpoint),
        ("AWS_ACCESS_KEY_ID", "a"),
        ("AWS_SECRET_ACCESS_KEY", "b"),
        ("AWS_REGION", "us-east-1"),
    ]
}

#[test]
fn store() {
    let Some(server) = S3Server::start_with_accounts() else {
        skip!("there is no S3 server");
    };
    let mut world = World::new();
    let mut table = Table::new("store");
    wrong_operands(&world, &mut table);
    removed(&world, &mut table);
    table.condition("no credentials");
    for call in CALLS {
        table.call(&world, &call.replace("STORE", "s3://bucket/prefix"));
    }
    for url in ["gs://bucket", "az://container"] {
        table.call(&world, &format!("pronto store list {url}"));
    }
    let half = world.with(&[("AWS_ACCESS_KEY_ID", "a")]);
    table.record(&half.run("pronto store list s3://bucket/prefix"));
    for address in ["127.0.0.1:9000", "https://"] {
        let view = world.with(&[("AWS_ENDPOINT_URL", address)]);
        table.record(&view.run("pronto store list s3://bucket/prefix"));
    }
    let other = world.with(&[("PRONTO_STORE_CREDENTIALS", "maybe")]);
    table.record(&other.run("pronto store list s3://bucket/prefix"));

    table.condition("wrong credentials, and a bucket that does not exist");
    let endpoint = format!("http://{}", server.address());
    let denied = world.with(&variables(&endpoint));
    for call in [
        "pronto store list STORE",
        "pronto store import work STORE new",
    ] {
        table.record(&denied.run(&call.replace("STORE", &format!("s3://{BUCKET}/p"))));
    }
    services(&world, &mut table);
    interrupted(&world, &mut table);
    world.without_privileges();
    permissions(&world, &mut table);
    table.compare();
}

fn wrong_operands(world: &World, table: &mut Table) {
    table.condition("wrong operands");
    for line in [
        "pronto store list store",
        "pronto store list s3://",
        "pronto store list ftp://a/b",
        "pronto store list file://$DIR/nowhere",
        "pronto store list file://$DIR/server.toml",
        "pronto store list file://$DIR/store nothing",
        "pronto store export file://$DIR/store nothing out.git",
        "pronto store export --generation=99 file://$DIR/store r out.git",
        "pronto store export --generation=x file://$DIR/store r out.git",
        "pronto store export --ref-format=x file://$DIR/store r out.git",
        "pronto store export file://$DIR/store r work",
        "pronto store export file://$DIR/store r nowhere/out.git",
        "pronto store import nowhere file://$DIR/store new",
        "pronto store import home file://$DIR/store",
        "pronto store import work file://$DIR/store r",
        "pronto store import work file://$DIR/store a//b",
        "pronto store import --scratch=nowhere work file://$DIR/store new",
        "pronto store copy file://$DIR/store nothing file://$DIR/store new",
        "pronto store copy file://$DIR/store r file://$DIR/store r",
        "pronto store verify file://$DIR/store nothing",
        "pronto store upkeep file://$DIR/store nothing",
        "pronto store upkeep --every=0 file://$DIR/store",
        "pronto store upkeep --every=5 file://$DIR/store r",
        "pronto store upkeep --prune-after=soon file://$DIR/store r",
        "pronto store config file://$DIR/store nothing",
        "pronto store config file://$DIR/store r core.hooksPath x",
        "pronto store config --add file://$DIR/store r core.x",
        "pronto store config --unset file://$DIR/store r http.receivepack",
        "pronto store head file://$DIR/store nothing",
        "pronto store head file://$DIR/store r a..b",
        "pronto store list --generations=x file://$DIR/store",
        "pronto store list --add file://$DIR/store",
    ] {
        table.call(world, line);
    }
}

fn removed(world: &World, table: &mut Table) {
    table.condition("a removed repository");
    world.write(
        "stored.toml",
        "users = \"$DIR/users.toml\"\n[http]\nlisten = [\"127.0.0.1:0\"]\n[store]\nurl = \"file://$DIR/store\"\n\
         cache = \"$DIR/cache\"\n",
    );
    world.prepare("pronto store import work file://$DIR/store gone");
    for line in [
        "pronto serve --config stored.toml repository remove gone",
        "pronto store list file://$DIR/store",
        "pronto store export file://$DIR/store gone out.git",
        "pronto store export --generation=1 file://$DIR/store gone kept.git",
        "pronto store head file://$DIR/store gone",
    ] {
        table.call(world, line);
    }
}

/// Services that do not answer, or that are no stores.
fn services(world: &World, table: &mut Table) {
    let closed = format!("http://127.0.0.1:{}", test_support::free_port());
    table.condition("a closed port");
    let view = world.with(&variables(&closed));
    for call in CALLS {
        table.record(&view.run(&call.replace("STORE", "s3://bucket/prefix")));
    }
    table.condition("a name that does not exist");
    let view = world.with(&variables("http://nowhere.invalid:9000"));
    table.record(&view.run("pronto store list s3://bucket/prefix"));
    table.condition("the wrong protocol");
    for (scheme, answer) in [("http", TLS_ALERT), ("https", WEB), ("http", WEB)] {
        let endpoint = format!("{scheme}://127.0.0.1:{}", answering_server(answer));
        let view = world.with(&variables(&endpoint));
        for call in [
            "pronto store list STORE",
            "pronto store export STORE r out.git",
        ] {
            table.record(&view.run(&call.replace("STORE", "s3://bucket/prefix")));
        }
    }
    table.condition("a database that does not answer");
    let database = format!("postgres://user@127.0.0.1:{}/x", test_support::free_port());
    table.call(
        world,
        &format!("pronto store list --generations={database} file://$DIR/store"),
    );
}

fn interrupted(world: &World, table: &mut Table) {
    table.condition("a signal");
    let (port, begun): (u16, Receiver<()>) = silent_server();
    let endpoint = format!("http://127.0.0.1:{port}");
    let view = world.with(&variables(&endpoint));
    for (call, signal) in [
        ("pronto store list s3://bucket/prefix", Signal::INT),
        ("pronto store list s3://bucket/prefix", Signal::TERM),
        (
            "pronto store import work s3://bucket/prefix new",
            Signal::INT,
        ),
        ("pronto store verify s3://bucket/prefix r", Signal::TERM),
    ] {
        table.record(&view.interrupt(call, &begun, signal));
        // Retries of the ended call may have been noticed.
        while begun.try_recv().is_ok() {}
    }
    table.call(world, "pronto store list file://$DIR/store");
}

fn permissions(world: &World, table: &mut Table) {
    table.condition("no permission to read the store");
    world.permit("store", 0);
    for call in CALLS {
        table.call(world, &call.replace("STORE", "file://$DIR/store"));
    }
    world.permit("store", 0o755);
    table.condition("no permission to write the result");
    world.permit("home", 0o555);
    table.call(
        world,
        "pronto store export file://$DIR/store r home/out.git",
    );
    table.call(
        world,
        "pronto store import --scratch=home work file://$DIR/store new",
    );
    world.permit("home", 0o755);
    world.permit("work/.git", 0);
    table.call(world, "pronto store import work file://$DIR/store new");
    world.permit("work/.git", 0o755);
}

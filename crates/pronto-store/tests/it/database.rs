//! Tests of generations in a PostgreSQL database.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pronto::{Environment, Watch};
use pronto_store::{
    BlockingStore, Bucket as _, Cloud, CopySource, Creating, CreationResult, Database,
    DatabaseAddress, ErrorKind, GenerationStore, PackPush, RefDecision, StoreLocation,
};
use test_support::authority::Authority;
use test_support::cut_proxy::CutProxy;
use test_support::postgres::{PostgresServer, shows_password};
use test_support::s3::{BUCKET, S3Server, variables};
use test_support::skip;
use tokio::runtime::Runtime;

use super::support::{Server, id};

macro_rules! start {
    () => {
        match PostgresServer::start() {
            Some(server) => server,
            None => skip!("postgresql is not installed"),
        }
    };
}
pub(crate) use start;

fn environment() -> Environment {
    Environment::empty("/")
}

fn url(directory: &Path) -> String {
    format!("file://{}", directory.display())
}

pub(crate) fn open(directory: &Path, database: &str) -> Server {
    Server::with_database(&url(directory), database, &environment())
}

fn database(directory: &Path, address: &str) -> Database<Cloud> {
    let url = url(directory);
    let location = StoreLocation::parse(&url, &environment()).expect("an address");
    let cloud = Arc::new(Cloud::open(&location).expect("a directory"));
    let address = DatabaseAddress::parse(address, &environment()).expect("an address");
    Database::new(cloud, address, &url).expect("no certificates")
}

pub(crate) fn assert_whole(server: &Server) {
    let watch = Watch::none();
    let verified = server.repository.verify(true, &watch);
    let verified = server.store.wait(verified).expect("readable");
    assert_eq!(verified.problems, []);
}

#[test]
fn one_of_many_creators_wins() {
    const CREATORS: u32 = 32;
    const ROUNDS: u64 = 200;
    let (server, folder) = (start!(), tempfile::tempdir().expect("a directory"));
    // Two processes, each with separate connections.
    let databases = [(); 2].map(|()| Arc::new(database(folder.path(), &server.url())));
    Runtime::new().expect("a runtime").block_on(async {
        for round in 1..=ROUNDS {
            let creators = (0..CREATORS).map(|creator| {
                let database = Arc::clone(&databases[creator as usize % 2]);
                tokio::spawn(async move {
                    let bytes = Bytes::from(creator.to_string());
                    let created = database.create("r.git/", round, bytes);
                    created.await.expect("answered")
                })
            });
            let mut winners = Vec::new();
            for (creator, task) in creators.collect::<Vec<_>>().into_iter().enumerate() {
                if task.await.expect("no panic") == CreationResult::Created {
                    winners.push(creator);
                }
            }
            assert_eq!(winners.len(), 1, "round {round}");
            let found = databases[0].read("r.git/", round).await.expect("readable");
            assert_eq!(found.expect("there"), winners[0].to_string());
        }
    });
}

#[test]
fn the_calls_of_a_database_do_what_they_say() {
    let (server, folder) = (start!(), tempfile::tempdir().expect("a directory"));
    let one = database(folder.path(), &server.url());
    let other = database(
        folder.path(),
        &format!("{}?pronto_store=other", server.url()),
    );
    Runtime::new().expect("a runtime").block_on(async {
        assert_eq!(one.newest("a.git/").await.expect("readable"), None);
        let begun = one.time("a.git/").await.expect("readable");
        for (number, repository) in [(1, "a.git/"), (2, "a.git/"), (1, "b/c.git/")] {
            let created = one.create(repository, number, Bytes::from_static(b"x"));
            assert_eq!(created.await.expect("answered"), CreationResult::Created);
        }
        let again = one.create("a.git/", 2, Bytes::from_static(b"y")).await;
        assert_eq!(again.expect("answered"), CreationResult::Exists);
        let newest = one
            .newest("a.git/")
            .await
            .expect("readable")
            .expect("there");
        assert_eq!(newest.number, 2);
        assert!(newest.created >= begun.saturating_sub(Duration::from_millis(1)));
        assert!(newest.created <= one.time("a.git/").await.expect("readable"));
        let listed = one.list("a.git/").await.expect("readable");
        assert_eq!(
            listed.iter().map(|one| one.number).collect::<Vec<_>>(),
            [2, 1]
        );
        let found = one.read("a.git/", 2).await.expect("readable");
        assert_eq!(found.as_deref(), Some(&b"x"[..]));
        assert_eq!(one.read("a.git/", 3).await.expect("readable"), None);
        assert_eq!(one.read("a.git/", u64::MAX).await.expect("readable"), None);
        let mut names = one.repositories().await.expect("readable");
        names.sort_unstable();
        assert_eq!(names, ["a", "b/c"]);
        // Another store has separate rows.
        assert_eq!(other.newest("a.git/").await.expect("readable"), None);
        assert!(other.repositories().await.expect("readable").is_empty());
        for _ in 0..2 {
            one.remove("a.git/", 1).await.expect("removed");
        }
        assert_eq!(one.list("a.git/").await.expect("readable").len(), 1);
        // A generation without its predecessor comes from a server that knows generations that the database
        // lacks.
        let error = one
            .create("a.git/", 5, Bytes::new())
            .await
            .expect_err("a gap");
        assert_eq!(error.kind(), ErrorKind::Restored);
        let large = vec![7; 8 << 20];
        let created = one.create("a.git/", 3, Bytes::from(large.clone())).await;
        assert_eq!(created.expect("answered"), CreationResult::Created);
        let found = one.read("a.git/", 3).await.expect("readable");
        assert!(found.is_some_and(|found| found == large));
    });
}

#[test]
fn servers_over_one_database_behave_like_those_over_a_bucket() {
    let server = start!();
    let tests: [fn(&dyn Fn() -> Server); 4] = [
        super::directory::what_one_server_commits_the_others_see_over,
        super::directory::pushes_of_many_threads_and_servers_are_all_there_over,
        super::directory::invalid_names_are_refused_before_they_disturb_others_over,
        super::directory::a_removed_repository_is_gone_for_all_and_can_be_created_again_over,
    ];
    for test in tests {
        let folder = tempfile::tempdir().expect("a directory");
        test(&|| open(folder.path(), &server.url()));
        assert!(!folder.path().join("team/r.git/generation").exists());
    }
    super::upkeep::small_packs_become_few_over(|store| open(store, &server.url()));
}

#[test]
fn generations_expire_by_the_clock_of_the_database() {
    let (server, folder) = (start!(), tempfile::tempdir().expect("a directory"));
    let node = open(folder.path(), &server.url());
    node.create();
    for number in 0..3 {
        let name = format!("refs/heads/{number}");
        node.push(&name, None, &name).expect("committed");
    }
    let expire = || node.store.wait(node.repository.expire()).expect("expired");
    assert_eq!(expire().generations, 0);
    server.execute(
        "UPDATE pronto_generations SET created = created - interval '30 days' WHERE number < 4",
    );
    assert_eq!(expire().generations, 2);
    let listed = node.store.generations(&node.repository).expect("readable");
    let numbers: Vec<u64> = listed.iter().map(|listed| listed.number).collect();
    assert_eq!(numbers, [4, 3]);
    // Files have the time of the store, in which no file has aged.
    let swept = node.store.wait(node.repository.sweep()).expect("swept");
    assert_eq!(swept.orphans, 0);
    assert_whole(&node);
}

#[test]
fn an_answer_that_is_lost_is_settled_by_the_nonce() {
    let (server, folder) = (start!(), tempfile::tempdir().expect("a directory"));
    let proxy = CutProxy::start(server.address(), 1);
    let node = open(folder.path(), &server.url_at(proxy.address()));
    node.create();
    for number in 0..5 {
        let name = format!("refs/heads/{number}");
        proxy.lose_next_answer("INSERT INTO pronto_generations");
        let outcome = node.push(&name, None, &name).expect("committed");
        assert_eq!(outcome.verdicts, [RefDecision::Applied]);
        assert_eq!(outcome.generation, 2 + number, "committed once");
        assert_eq!(proxy.cuts(), 1 + number);
    }
    let rows = server.execute("SELECT count(*) FROM pronto_generations");
    assert_eq!(rows.trim(), "6");
    assert_whole(&node);
}

#[test]
fn a_database_that_went_back_is_noticed() {
    let (server, folder) = (start!(), tempfile::tempdir().expect("a directory"));
    let node = open(folder.path(), &server.url());
    node.create();
    for number in 0..3 {
        let name = format!("refs/heads/{number}");
        node.push(&name, None, &name).expect("committed");
    }
    // An asynchronous standby takes over, so the newest generations are lost.
    server.execute("DELETE FROM pronto_generations WHERE number > 2");
    let pushed = node.push("refs/heads/new", None, "new");
    assert_eq!(pushed.expect_err("refused").kind(), ErrorKind::Restored);
    let rows = server.execute("SELECT max(number) FROM pronto_generations");
    assert_eq!(rows.trim(), "2");
}

#[test]
fn generations_have_one_place() {
    let (server, folder) = (start!(), tempfile::tempdir().expect("a directory"));
    let creating = Creating::default();
    let create = |node: &Server| {
        let created = node.repository.create(&creating, PackPush::default());
        node.store.wait(created)
    };
    let own = folder.path().join("own");
    let shared = folder.path().join("shared");
    for directory in [&own, &shared] {
        std::fs::create_dir(directory).expect("a directory");
    }
    create(&Server::new(&own)).expect("a new repository");
    let error = create(&open(&own, &server.url())).expect_err("they are in the store");
    assert!(
        error
            .to_string()
            .contains("the generations of 'team/r' are in the object store"),
        "{error}"
    );

    create(&open(&shared, &server.url())).expect("a new repository");
    let without = Server::new(&shared);
    for error in [
        create(&without).expect_err("they are in the database"),
        without
            .store
            .wait(without.repository.latest())
            .expect_err("they are in the database"),
    ] {
        assert!(error.to_string().contains("are in a database"), "{error}");
        assert!(
            error
                .hint()
                .is_some_and(|hint| hint.contains("--generations"))
        );
    }
    let renamed = open(&shared, &format!("{}?pronto_store=other", server.url()));
    let error = create(&renamed).expect_err("another name");
    assert!(
        error
            .hint()
            .is_some_and(|hint| hint.contains("pronto_store=file:///")),
        "{error}"
    );
}

#[test]
fn repositories_are_copied_between_places() {
    let server = start!();
    let world = super::blocks::World::new();
    let watch = Watch::none();
    let folders = ["plain", "database", "back"].map(|name| world.scratch.join(name));
    for folder in &folders {
        std::fs::create_dir(folder).expect("a directory");
    }
    let [plain, database, back] = [
        Server::new(&folders[0]),
        open(&folders[1], &server.url()),
        Server::new(&folders[2]),
    ];
    let source = world.scratch.join("source");
    let source = pronto::Repository::open(source, &environment()).expect("a repository");
    let imported = plain
        .store
        .import(&source, &plain.repository, world.scratch.path(), &watch);
    imported.expect("imported");
    for (from, to) in [(&plain, &database), (&database, &back)] {
        let newest = from.store.wait(from.repository.latest()).expect("readable");
        let source = CopySource {
            store: &from.store,
            repository: &from.repository,
        };
        let scratch = world.scratch.path();
        let copied = to
            .store
            .copy(&newest, source, &to.repository, scratch, &watch);
        copied.expect("copied");
        assert_whole(to);
        assert_eq!(to.store.repositories().expect("readable"), ["team/r"]);
    }
    let newest = back.store.wait(back.repository.latest()).expect("readable");
    let directory = world.scratch.join("export");
    let written = back
        .repository
        .write_view(&newest, &directory, None, &watch);
    back.store.wait(written).expect("written");
    let view = pronto::Repository::open(&directory, &environment()).expect("a view");
    let head = view.resolve("refs/heads/main").expect("it is there");
    assert_eq!(
        format!("{head}\n"),
        world.git("source", &["rev-parse", "main"])
    );
}

#[test]
fn a_database_that_refuses_says_why_and_never_the_password() {
    let (mut server, folder) = (start!(), tempfile::tempdir().expect("a directory"));
    let address = server.address();
    let check = |url: &str| {
        let node = open(folder.path(), url);
        let error = node.store.check().expect_err(url);
        let text = format!("{error} {error:?} {:?}", error.hint());
        assert!(text.contains("database '"), "{text}");
        let is_shown = text.contains("secret") || text.contains("%73") || shows_password(&text);
        assert!(!is_shown, "{text}");
        (error.kind(), text)
    };
    for password in ["secret", "%73ecret", "se%2Fcr%3Aet%40wrong%25"] {
        let (kind, text) = check(&format!(
            "postgres://postgres:{password}@{address}/postgres"
        ));
        assert_eq!(kind, ErrorKind::Denied, "{text}");
        assert!(
            text.contains("password authentication failed") && text.contains(".pgpass"),
            "{text}"
        );
    }
    let none = format!("{}/none", server.url().trim_end_matches("/postgres"));
    let (kind, text) = check(&none);
    assert_eq!(kind, ErrorKind::NoStore, "{text}");
    assert!(text.contains("createdb"), "{text}");
    let (kind, text) = check(&format!("{}?sslmode=require", server.url()));
    assert_eq!(kind, ErrorKind::Denied, "{text}");
    assert!(text.contains("sslmode=disable"), "{text}");
    // A later program version has changed the tables.
    let node = open(folder.path(), &server.url());
    node.store.check().expect("it answers");
    server.execute("UPDATE pronto_schema SET version = 9");
    let (kind, text) = check(&server.url());
    assert_eq!(kind, ErrorKind::Unsupported, "{text}");
    assert!(text.contains("version 9"), "{text}");
    server.execute("UPDATE pronto_schema SET version = 1");
    server.crash();
    let (kind, text) = check(&server.url());
    assert_eq!(kind, ErrorKind::Unavailable, "{text}");
    // The pool reconnects.
    server.resume();
    node.create();
    assert_eq!(
        server.execute("SELECT version FROM pronto_schema").trim(),
        "1"
    );
}

#[test]
fn connections_over_tls_need_a_certificate_that_is_trusted() {
    let (Some(authority), Some(other)) = (Authority::new(), Authority::new()) else {
        skip!("openssl is not installed");
    };
    let issued = authority.issue("database");
    let Some(server) = PostgresServer::start_secure(&issued.certificate, &issued.key) else {
        skip!("postgresql is not installed");
    };
    let folder = tempfile::tempdir().expect("a directory");
    let url = |authority: &Authority| {
        let file = authority.file().display().to_string();
        format!("{}?sslmode=require&sslrootcert={file}", server.url())
    };
    let node = open(folder.path(), &url(&authority));
    node.create();
    node.push("refs/heads/main", None, "a").expect("committed");
    assert_whole(&node);
    let encrypted = "SELECT count(*) > 0 FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
         WHERE ssl AND application_name = 'pronto'";
    assert_eq!(server.execute(encrypted).trim(), "t");

    for wrong in [url(&other), format!("{}?sslmode=require", server.url())] {
        let refused = open(folder.path(), &wrong);
        let error = refused.store.check().expect_err("it is not trusted");
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
        assert!(
            error.to_string().contains("an untrusted certificate"),
            "{error}"
        );
        let hint = error.hint().unwrap_or_default();
        assert!(hint.contains("sslrootcert=FILE"), "{hint}");
    }
}

#[test]
fn a_user_without_the_right_to_create_tables_uses_those_that_are_there() {
    let (server, folder) = (start!(), tempfile::tempdir().expect("a directory"));
    server.execute("CREATE USER git PASSWORD 'x'");
    let address = server.address();
    let limited = format!("postgres://git:x@{address}/postgres");
    let node = open(folder.path(), &limited);
    let error = node.store.check().expect_err("it may not make tables");
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    assert!(
        error
            .hint()
            .is_some_and(|hint| hint.contains("pronto_generations"))
    );
    let owner = open(folder.path(), &server.url());
    owner.store.check().expect("the tables are made");
    server.execute(
        "GRANT SELECT ON pronto_schema TO git; GRANT SELECT, INSERT, DELETE ON pronto_generations TO git",
    );
    node.create();
    node.push("refs/heads/main", None, "a").expect("committed");
    let newest = owner
        .store
        .wait(owner.repository.latest())
        .expect("readable");
    let found = newest.refs.find("refs/heads/main").expect("sound");
    assert_eq!(found.expect("there").value.object(), Some(&*id("a")));
}

#[test]
fn a_store_without_conditional_creation_is_found_out() {
    let Some(server) = S3Server::start() else {
        skip!("moto, a server of S3, is not installed");
    };
    let mut environment = environment();
    for (name, value) in variables(server.address()) {
        environment.set(name, value);
    }
    let url = format!("s3://{BUCKET}/prefix");
    let open = |environment: &Environment| BlockingStore::open(&url, environment).expect("a store");
    open(&environment).check_creation().expect("it has one");
    let ignoring = test_support::store_proxy::StoreProxy::start(server.address(), 1);
    ignoring.hide_header("if-none-match");
    let address = format!("http://{}", ignoring.address());
    environment.set("AWS_ENDPOINT_URL", address);
    let error = open(&environment)
        .check_creation()
        .expect_err("it has none");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(
        error
            .hint()
            .is_some_and(|hint| hint.contains("--generations postgres://"))
    );
    let location = StoreLocation::parse(&url, &environment).expect("an address");
    let left = Cloud::open(&location).expect("variables");
    let left = Runtime::new()
        .expect("a runtime")
        .block_on(left.list("upkeep/", 10, None));
    assert!(
        left.expect("readable").entries.is_empty(),
        "nothing is left"
    );
}

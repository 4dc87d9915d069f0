//! Tests of manifests and objects from a writer who has write access to the bucket, and computes checksums
//! and digests again.
//!
//! Whatever a manifest contains, no data of another repository is read, an error names the object, and loops
//! terminate.

mod form;
mod objects;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use pronto::config::canonical;
use pronto::config::edit::Document;
use pronto::{Environment, ObjectId, Repository, Watch};
use pronto_store::{
    BlockOptions, BlockingStore, ErrorKind, ExpectedRefValue, Generation, Manifest, PackPush,
    RefUpdate, StoreChange, StoreProblem, StoredRepository, ViewCache, check_key,
};

use super::support::Server;
use super::upkeep::World;
use form::{Form, Mutant};

/// The name of the repository of the hostile writer, and the name of another one.
const OWN: &str = "team/r";
const PRIVATE: &str = "vault/x";

/// Content that only the private repository has.
const SECRET: &str = "what only the vault holds";

/// A store with a private repository, and a repository with all kinds of objects, whose newest manifest is
/// changed.
struct Bucket {
    world: World,
    /// The newest generation, and the path of its manifest.
    manifest: Manifest,
    file: PathBuf,
    bytes: Vec<u8>,
    /// The manifest of the private repository, its Git objects, and the files of all repositories except the
    /// hostile one.
    other: Form,
    secrets: Vec<ObjectId>,
    others: BTreeSet<(PathBuf, Vec<u8>)>,
    cache: ViewCache,
    /// A number for each view that is exported.
    exports: u64,
}

impl Bucket {
    fn new() -> Self {
        let world = World::over(Server::new);
        world.noise("noise", 1_500_000);
        let newest = world.push_many(12);
        world.keep_up(&world.options());
        world.branches(newest, 1500);
        let after = world.change("after");
        world.push("refs/heads/after", None, after);
        let secrets = publish_private(&world);
        let manifest = world.manifest();
        let store = world.path("store");
        let newest = |name: &str| {
            let directory = store.join(format!("{name}.git/generation"));
            let entries = fs::read_dir(directory).expect("a directory").flatten();
            let newest = entries.map(|entry| entry.path()).min();
            newest.expect("a generation")
        };
        let file = newest(OWN);
        let other = Form::parse(&fs::read(newest(PRIVATE)).expect("a manifest"));
        let blocks = (world.server.store).block_cache(BlockOptions::default(), |_| ());
        let cache = ViewCache::open(&world.path("cache"), u64::MAX, blocks).expect("a directory");
        Bucket {
            bytes: fs::read(&file).expect("a manifest"),
            others: files(&store.join("vault")),
            world,
            manifest,
            file,
            other,
            secrets,
            cache,
            exports: 0,
        }
    }

    fn store(&self) -> &BlockingStore {
        &self.world.server.store
    }

    /// Returns the repository as seen by a server that has just started.
    fn fresh(&self) -> Arc<StoredRepository> {
        Arc::new(self.store().repository(OWN).expect("a name"))
    }

    fn form(&self) -> Form {
        Form::parse(&self.bytes)
    }

    /// Reads the repository as a server does. Returns the error for a client or an operator.
    fn serve(&self) -> Result<Arc<Generation>, String> {
        let repository = self.fresh();
        let newest = self
            .store()
            .wait(repository.latest())
            .map_err(|error| named(&error))?;
        let watch = Watch::none();
        let view = (self.cache).view(self.store(), &repository, &newest, &watch);
        let view = view.map_err(|error| named(&error))?;
        self.read(view.directory())?;
        Ok(newest)
    }

    /// Reads the refs of a view, and the reachable objects, which must not include objects of the private
    /// repository.
    fn read(&self, view: &Path) -> Result<(), String> {
        let failed = |error: pronto::Error| error.to_string();
        let opened = Repository::open(view, &Environment::empty("/")).map_err(failed)?;
        let objects = opened.objects().map_err(failed)?;
        for secret in &self.secrets {
            let found = objects.contains(secret);
            assert!(!found.unwrap_or(false), "{secret} is in the view");
        }
        for reference in opened.refs().all("refs/").map_err(failed)? {
            let name = reference.name.to_string();
            assert!(!name.contains("secret"), "{name} is in the view");
            if let pronto::refs::RefTarget::Object(id) = reference.target {
                let mut content = Vec::new();
                let found = objects.find(&id, &mut content);
                let found = found.map_err(|error| error.to_string());
                if let Ok(None) = found {
                    return Err(format!("{id} is missing"));
                }
                found?;
            }
        }
        Ok(())
    }

    /// Writes an export, as `pronto store export` does.
    fn export(&mut self, newest: &Generation) -> Result<PathBuf, String> {
        self.exports += 1;
        let directory = self.world.path(&format!("export-{}", self.exports));
        let watch = Watch::none();
        let repository = self.fresh();
        let written = repository.write_view(newest, &directory, None, &watch);
        self.store().wait(written).map_err(|error| named(&error))?;
        Ok(directory)
    }

    /// Verifies, as `pronto store verify` does.
    fn verify(&self, digests: bool) -> Result<Vec<StoreProblem>, String> {
        let (repository, watch) = (self.fresh(), Watch::none());
        let verified = self.store().wait(repository.verify(digests, &watch));
        Ok(verified.map_err(|error| named(&error))?.problems)
    }

    fn put(&self, bytes: &[u8]) {
        fs::write(&self.file, bytes).expect("a file");
    }

    /// Asserts that the other repository is unchanged.
    fn check_others(&self) {
        let now = files(&self.world.path("store/vault"));
        assert!(now == self.others, "another repository was changed");
    }
}

/// Returns the text of an error, which names an object of the repository unless the repository is no longer
/// in the store.
fn named(error: &pronto_store::Error) -> String {
    let text = error.to_string();
    let objects = ["generation/", "pack/", "refs/", "graph/"];
    let is_named = text.contains("team/r.git/") && objects.iter().any(|it| text.contains(it));
    let is_removed = error.kind() == ErrorKind::NotFound;
    assert!(is_named || is_removed, "no object is named: {text}");
    assert!(!text.contains("vault/x.git/pack/"), "{text}");
    text
}

/// Creates the private repository. Returns its objects.
fn publish_private(world: &World) -> Vec<ObjectId> {
    let at = world.path("secret");
    world.git("", &["init", "-q", "-b", "secret", "secret"]);
    fs::write(at.join("secret"), SECRET).expect("a file");
    world.git("secret", &["add", "."]);
    world.git("secret", &["commit", "-q", "-m", SECRET]);
    let source = Repository::open(at.join(".git"), &Environment::empty("/")).expect("a repository");
    let store = &world.server.store;
    let target = store.repository(PRIVATE).expect("a name");
    let imported = store.import(&source, &target, &world.path("scratch"), &Watch::none());
    imported.expect("imported");
    let ids = world.git(
        "secret",
        &["rev-list", "--objects", "--no-object-names", "HEAD"],
    );
    let ids = ids.lines().map(|id| ObjectId::from_hex(id.as_bytes()));
    ids.map(|id| id.expect("an id")).collect()
}

fn files(directory: &Path) -> BTreeSet<(PathBuf, Vec<u8>)> {
    let (mut found, mut waiting) = (BTreeSet::new(), vec![directory.to_owned()]);
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).expect("a directory").flatten() {
            match entry.path() {
                path if path.is_dir() => waiting.push(path),
                path => _ = found.insert((path.clone(), fs::read(path).expect("a file"))),
            }
        }
    }
    found
}

#[test]
fn every_word_and_line_of_a_manifest() {
    let mut bucket = Bucket::new();
    assert_eq!(
        bucket.form().bytes(),
        bucket.bytes,
        "the walker knows the form"
    );
    let drops = ["drop pack/0.idx", "drop pack/0.pack"].map(str::to_owned);
    let form = bucket.form().with_lines("drop", &drops);
    bucket.put(&form.bytes());
    bucket.serve().expect("it is whole");
    assert_eq!(bucket.verify(true), Ok(Vec::new()));
    let keywords: BTreeSet<String> = ["file", "layer", "table", "inline", "drop", "config"]
        .map(str::to_owned)
        .into();
    let mut mutants = Vec::new();
    form.each(&bucket.other, |mutant| mutants.push(mutant));
    let places: BTreeSet<&str> = mutants.iter().map(|it| it.place.as_str()).collect();
    for keyword in keywords {
        let start = format!("{keyword} ");
        assert!(places.iter().any(|it| it.starts_with(&start)), "{keyword}");
    }
    let mut exported = BTreeSet::new();
    let mut taken = 0;
    for Mutant {
        label,
        place,
        bytes,
    } in &mutants
    {
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            bucket.put(bytes);
            let decoded = Manifest::decode(&Bytes::copy_from_slice(bytes));
            let served = bucket.serve();
            if decoded.is_err() {
                served.expect_err("it is malformed");
                return;
            }
            taken += 1;
            let problems = bucket.verify(false);
            if let Ok(newest) = served
                && exported.insert(place.clone())
            {
                let is_whole = bucket.export(&newest).map(|at| bucket.read(&at));
                let problems = problems.map(|_| bucket.verify(true));
                drop((is_whole, problems));
            }
        }));
        assert!(checked.is_ok(), "{label}");
    }
    assert!(taken > 100, "{taken} of {} are manifests", mutants.len());
    bucket.check_others();
}

#[test]
fn every_setting_of_git_in_a_configuration() {
    let bucket = Bucket::new();
    let list = include_str!("../../../../docs/settings.tsv");
    let keys: Vec<String> = list
        .lines()
        .filter_map(|line| line.strip_prefix("config\t")?.split('\t').next())
        .map(|key| key.replace(['<', '>', '*'], "x"))
        .collect();
    assert!(keys.len() > 500, "{} settings", keys.len());
    for some in keys.chunks(100) {
        let mut document = Document::default();
        for key in some {
            if let Ok(key) = canonical(key.as_str().into()) {
                document.add(key.as_ref(), "touch canary".into());
            }
        }
        let include = b"[include]\n\tpath = /etc/passwd\n";
        let config = [&include[..], document.as_bytes()].concat();
        bucket.put(&bucket.form().with_content("config", &config).bytes());
        let repository = bucket.fresh();
        let newest = bucket
            .store()
            .wait(repository.latest())
            .expect("a manifest");
        let watch = Watch::none();
        let view = (bucket.cache).view(bucket.store(), &repository, &newest, &watch);
        let view = view.expect("a view");
        let text = fs::read_to_string(view.directory().join("config")).expect("a file");
        for line in text.lines().filter(|line| line.contains("canary")) {
            let name = line.split_once('=').expect("a setting").0.trim();
            let is_read = some.iter().any(|key| {
                let ends = key.to_lowercase().ends_with(&name.to_lowercase());
                ends && check_key(key.as_str().into()).is_ok()
            });
            assert!(is_read, "{line}");
        }
        assert!(!text.contains("passwd"), "{text}");
    }
    for config in ["[core\n\tbare", "[a]\n\tb = \"", "\u{feff}[", "=\n"] {
        bucket.put(
            &bucket
                .form()
                .with_content("config", config.as_bytes())
                .bytes(),
        );
        bucket.serve().expect_err(config);
    }
}

#[test]
fn the_greatest_numbers() {
    let bucket = Bucket::new();
    let directory = bucket.file.parent().expect("a directory").to_owned();
    for number in [1 << 62, (1 << 62) + 1, 1 << 63, u64::MAX - 1, u64::MAX] {
        let mut form = bucket.form().with_word("number", 1, &number.to_string());
        form = form.with_lines("drop", &[]);
        let file = directory.join(format!("{:016x}-{number}", u64::MAX - number));
        fs::write(&file, form.bytes()).expect("a file");
        let repository = bucket.fresh();
        for _ in 0..2 {
            match bucket.store().wait(repository.latest()) {
                Ok(newest) => assert_eq!(newest.number(), number),
                Err(error) => _ = named(&error),
            }
        }
        let mut push = PackPush::default();
        push.updates.push(RefUpdate {
            name: "refs/heads/after".into(),
            old: ExpectedRefValue::Any,
            new: None,
        });
        let change = StoreChange::Push(push);
        if let Err(error) = bucket.store().wait(repository.commit(change)) {
            assert_ne!(error.kind(), ErrorKind::Unknown, "{error}");
        }
        // A gap of 2^62 generations is a single problem.
        let problems = bucket.verify(false).expect("it can be listed");
        assert!(problems.len() < 10, "{}", problems.len());
        fs::remove_file(file).expect("a file");
    }
    bucket.check_others();
}

#[test]
fn generations_that_lead_to_one_another() {
    let mut bucket = Bucket::new();
    let newest = bucket.manifest.number;
    let directory = bucket.file.parent().expect("a directory").to_owned();
    let name = |number: u64| directory.join(format!("{:016x}-{number}", u64::MAX - number));
    // The manifests have chains of dropped objects that form a circle, under the names of older generations.
    for (number, dropped) in [(newest - 1, newest - 2), (newest - 2, newest - 1)] {
        let form = bucket.form().with_word("dropped", 1, &dropped.to_string());
        fs::write(name(number), form.bytes()).expect("a file");
    }
    let form = bucket
        .form()
        .with_word("dropped", 1, &(newest - 1).to_string());
    bucket.put(&form.bytes());
    // An old object that no generation references, so that upkeep searches all generations for it.
    let orphan = bucket.file.with_file_name("../pack/orphan-0.pack");
    fs::write(&orphan, b"x").expect("a file");
    age(&orphan);
    let options = bucket.world.options();
    let done = (bucket.store()).keep_up(&bucket.fresh(), &options, &Watch::none());
    named(&done.expect_err("a generation has another number"));
    bucket.exports += 1;
    bucket.check_others();
}

#[test]
fn upkeep_deletes_nothing_of_others() {
    let bucket = Bucket::new();
    let mut lines: Vec<String> = ["refs/0.ref", "pack/x.pack"]
        .map(|name| format!("drop {name}"))
        .to_vec();
    lines.sort();
    let drops = [
        "drop ../../vault/x.git/pack",
        "drop pack/../../../vault/x.git/generation",
        "drop /etc/passwd",
        "drop generation/0",
        "drop pack/",
    ];
    for drop in drops {
        let mut all = lines.clone();
        all.push(drop.to_owned());
        all.sort();
        bucket.put(&bucket.form().with_lines("drop", &all).bytes());
        bucket.serve().expect_err(drop);
    }
    // Valid names are deleted only below the name of the same repository.
    let (store, repository) = (bucket.store(), bucket.fresh());
    bucket.put(&bucket.form().with_lines("drop", &lines).bytes());
    for entry in files(&bucket.world.path("store/team")) {
        age(&entry.0);
    }
    let watch = Watch::none();
    let kept = store.keep_up(&repository, &bucket.world.options(), &watch);
    kept.expect("done");
    bucket.check_others();
}

/// Sets the time of a file before any retention.
fn age(path: &Path) {
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(90 * 24 * 3600);
    let file = fs::File::options().write(true).open(path);
    file.and_then(|file| file.set_modified(old))
        .expect("a file");
}

#[test]
fn sizes_that_are_only_claims() {
    let bucket = Bucket::new();
    let upload = |number: usize| format!("{number:016x}");
    let (id, digest) = ("1".repeat(40), "2".repeat(64));
    // The manifest has the largest packs that are read by range, whose digests are missing.
    let size: u64 = 4 << 40;
    let sums = (size >> 20) * 32;
    for count in [1, 15, 17, 5000] {
        let mut form = bucket.form();
        let lines: Vec<String> = (0..count)
            .flat_map(|number| {
                [
                    format!("pack {id} {} 1 -", upload(number)),
                    format!("file pack {size} {digest}"),
                    format!("file idx 100 {digest}"),
                    format!("file sum {sums} {digest}"),
                ]
            })
            .collect();
        form = form.without_objects().with_lines("pack", &lines);
        bucket.put(&form.bytes());
        bucket.serve().expect_err("the objects are not there");
    }
    let tables: Vec<String> = (0..900)
        .map(|number| {
            format!(
                "table {0} {0} {1} {2} {digest}",
                number + 1,
                upload(number),
                2_u64 << 30
            )
        })
        .collect();
    let form = bucket.form().without_objects().with_lines("table", &tables);
    bucket.put(&form.bytes());
    let error = bucket.serve().expect_err("they are too large");
    assert!(error.contains("too large"), "{error}");
}

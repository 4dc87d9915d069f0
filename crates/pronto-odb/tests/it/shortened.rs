//! Files that are truncated while another process has them mapped: it reports errors that name the
//! file, and does not crash.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use pronto_hash::{Kind, ObjectId};
use pronto_io::view::ViewAccess;
use pronto_odb::{Options, Store};

use super::support::{ListedObject, Repository};

/// The variable that names the object directory for the child.
const OBJECTS: &str = "PRONTO_TEST_OBJECTS";

/// The other process prints the result of [`Store::find`] for each id on a line, and opens its
/// files once.
#[test]
fn child() {
    let Some(objects) = std::env::var_os(OBJECTS) else {
        return;
    };
    let mut options = Options::default();
    options.access = ViewAccess::Mapped;
    // Caches are disabled.
    options.delta_base_cache_bytes = 0;
    let store = Store::open(objects, options).expect("it can be opened");
    let mut content = Vec::new();
    for line in std::io::stdin().lines() {
        let id = ObjectId::from_hex(line.expect("text").as_bytes()).expect("an id");
        let result = match store.find(&id, &mut content) {
            Ok(Some(kind)) => {
                let computed = gix_object::compute_hash(Kind::Sha1, kind, &content);
                assert_eq!(computed.expect("it can be hashed"), id);
                "whole".to_owned()
            }
            Ok(None) => "missing".to_owned(),
            Err(error) => format!("error {error}"),
        };
        let header = store.header(&id).is_ok_and(|header| header.is_some());
        let details = store.details(&id).is_ok_and(|details| details.is_some());
        let contains = store.contains(&id).unwrap_or_default();
        let batch = store.contains_batch(&[id]).is_ok_and(|found| found[0]);
        let others = [header, details, contains, batch].map(u8::from);
        println!("answer {others:?} {result}");
    }
}

struct Reader {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Reader {
    fn start(objects: &Path) -> Reader {
        let mut child = Command::new(std::env::current_exe().expect("it runs"))
            .args(["--exact", "shortened::child", "--nocapture"])
            .env(OBJECTS, objects)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it can be started");
        Reader {
            input: child.stdin.take().expect("it is piped"),
            output: BufReader::new(child.stdout.take().expect("it is piped")),
            child,
        }
    }

    /// Returns its answers for `objects`.
    fn ask(&mut self, objects: &[ListedObject]) -> Vec<String> {
        let ask = |object: &ListedObject| {
            writeln!(self.input, "{}", object.id).expect("it lives");
            loop {
                let mut line = String::new();
                let read = self.output.read_line(&mut line).expect("it is text");
                assert_ne!(read, 0, "it ended: {:?}", self.child.wait());
                if let Some((_, answer)) = line.split_once("answer ") {
                    return answer.trim_end().to_owned();
                }
            }
        };
        objects.iter().map(ask).collect()
    }

    fn end(mut self) {
        drop(self.input);
        let status = self.child.wait().expect("it was started");
        assert!(status.success(), "{status}");
    }
}

const WHOLE: &str = "[1, 1, 1, 1] whole";

fn repository() -> (Repository, Vec<ListedObject>) {
    let repository = Repository::new(Kind::Sha1);
    repository.commit_history(7, 80);
    repository.git(&["repack", "-adfq"]);
    let listed = repository.listed_objects();
    (repository, listed)
}

/// Opens `path` for writing although it is read-only.
fn careless(path: &Path) -> File {
    let mut permissions = path.metadata().expect("it is there").permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o644);
    std::fs::set_permissions(path, permissions).expect("it is ours");
    let file = File::options().write(true).open(path);
    file.expect("it can be written")
}

fn count(answers: &[String], wanted: &str) -> usize {
    let wanted = answers.iter().filter(|answer| answer.ends_with(wanted));
    wanted.count()
}

/// Asserts that every answer is right, or an error that names one of `paths`.
fn check(answers: &[String], paths: &[&Path]) -> usize {
    let mut errors = 0;
    for answer in answers.iter().filter(|answer| *answer != WHOLE) {
        errors += 1;
        let (_, result) = answer.split_once("] ").expect("an answer");
        let names = paths.iter().any(|path| {
            let path = format!("'{}'", path.display());
            result.contains(&path)
        });
        assert!(
            result == "whole" || result.starts_with("error ") && names,
            "{result}"
        );
    }
    errors
}

#[test]
fn packs_and_indexes_cut_short_are_errors() {
    for extension in ["pack", "idx"] {
        for share in [0, 1, 40, 99] {
            let (repository, listed) = repository();
            let (pack, index) = (repository.pack_file("pack"), repository.pack_file("idx"));
            let path = repository.pack_file(extension);
            let sound = std::fs::read(&path).expect("it can be read");
            let mut reader = Reader::start(&repository.objects());
            let (_, half) = listed.split_at(listed.len() / 2);
            assert_eq!(count(&reader.ask(half), WHOLE), half.len());
            let len = sound.len() as u64 * share / 100;
            careless(&path).set_len(len).expect("it is ours");
            let errors = check(&reader.ask(&listed), &[&pack, &index]);
            assert!(errors > 0, "{extension} {share}");
            // The file is repaired.
            replace(&path, &sound);
            assert_eq!(count(&reader.ask(&listed), WHOLE), listed.len());
            reader.end();
        }
    }
}

#[test]
fn a_hole_in_the_place_of_what_was_cut_off_is_seen() {
    for extension in ["pack", "idx"] {
        let (repository, listed) = repository();
        let (pack, index) = (repository.pack_file("pack"), repository.pack_file("idx"));
        let path = repository.pack_file(extension);
        let mut reader = Reader::start(&repository.objects());
        reader.ask(&listed[..10]);
        let len = path.metadata().expect("it is there").len();
        let file = careless(&path);
        file.set_len(2000).expect("it is ours");
        file.set_len(len).expect("it is ours");
        let answers = reader.ask(&listed);
        if extension == "pack" {
            let errors = check(&answers, &[&pack, &index]);
            assert!(errors > listed.len() / 2, "{errors}");
        } else {
            // The file is now an index of the right size without these objects.
            assert!(count(&answers, "whole") < listed.len() / 2);
        }
        reader.end();
    }
}

#[test]
fn a_multi_pack_index_cut_short_is_passed_over() {
    let (repository, listed) = repository();
    repository.git(&["multi-pack-index", "write"]);
    let mut reader = Reader::start(&repository.objects());
    reader.ask(&listed[..10]);
    let path = repository.objects().join("pack/multi-pack-index");
    careless(&path).set_len(1500).expect("it is ours");
    assert_eq!(count(&reader.ask(&listed), "whole"), listed.len());
    reader.end();
}

#[test]
fn other_copies_are_read_instead() {
    let (repository, listed) = repository();
    repository.git(&["repack", "-q", "-a", "-f", "--depth=1"]);
    let packs = repository.pack_files("pack");
    assert_eq!(packs.len(), 2);
    let index = packs[0].with_extension("idx");
    let mut reader = Reader::start(&repository.objects());
    reader.ask(&listed);
    for path in [&packs[0], &index] {
        careless(path).set_len(100).expect("it is ours");
        assert_eq!(count(&reader.ask(&listed), "whole"), listed.len());
    }
    reader.end();
}

fn replace(path: &Path, content: &[u8]) {
    let beside = path.with_extension("new");
    std::fs::write(&beside, content).expect("it can be written");
    std::fs::rename(&beside, path).expect("it can be moved");
}

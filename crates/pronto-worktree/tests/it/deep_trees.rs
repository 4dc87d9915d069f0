//! Trees that are nested deeper than the stack of a thread permits recursion. Every walk ends on a
//! small stack, with the result or with the error about the depth.

use bstr::BString;
use pronto_hash::{Kind, ObjectId, oid};
use pronto_index::{CachedTree, Entry, Flags, Index, IndexContent, Stat, Writer, mode};
use pronto_io::dir::Directory;
use pronto_io::interrupt::Interrupt;
use pronto_io::pool::Workers;
use pronto_worktree::diff::{IntentToAdd, cached_trees, tree_and_index};
use pronto_worktree::pathspec::Pathspec;
use pronto_worktree::sparse::{Sparse, outside};
use pronto_worktree::trees::{self, Workshop};
use pronto_worktree::unpack::merge::{MergeDecision, MergeRule, Request, merge};
use pronto_worktree::unpack::{self, WorktreeView};
use pronto_worktree::{Error, ObjectSource, Protect};

use crate::support::{Memory, Scratch};

/// A thread of this stack has room for some calls, not for one per level.
const STACK_BYTES: usize = 256 << 10;

/// A depth that Git permits, and one that it refuses.
const PERMITTED: usize = 2_000;
const REFUSED: usize = 5_000;

const REFUSAL: &str = "exceeded maximum allowed tree depth";

fn on_a_small_stack(test: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        let started = thread.spawn_scoped(scope, test).expect("a thread");
        started.join().expect("the test holds");
    });
}

/// A file below this many directories.
struct Nested {
    objects: Memory,
    top: ObjectId,
    blob: ObjectId,
    path: BString,
}

impl Nested {
    fn new(levels: usize) -> Nested {
        let digest = |kind: &str, content: &[u8]| {
            let header = format!("{kind} {}\0", content.len());
            pronto_hash::digest(Kind::Sha1, &[header.as_bytes(), content]).expect("no collision")
        };
        let entry = |mode: &str, name: &str, id: ObjectId| {
            let mut content = format!("{mode} {name}\0").into_bytes();
            content.extend_from_slice(id.as_bytes());
            content
        };
        let blob = digest("blob", b"x\n");
        let mut objects = Memory::default();
        let mut content = entry("100644", "x", blob);
        let mut top = digest("tree", &content);
        objects.insert_tree(top, content);
        for _ in 0..levels {
            content = entry("40000", "d", top);
            top = digest("tree", &content);
            objects.insert_tree(top, content);
        }
        let path = ["d/".repeat(levels).as_str(), "x"].concat().into();
        Nested {
            objects,
            top,
            blob,
            path,
        }
    }

    fn entry(&self, flags: Flags) -> Entry {
        Entry {
            path: self.path.clone(),
            id: self.blob,
            mode: mode::FILE,
            flags,
            stat: Stat::default(),
        }
    }

    /// An index of the file.
    fn index(&self) -> Index {
        let entry = self.entry(Flags::default());
        let content = IndexContent::new(Kind::Sha1, [entry.as_ref()]);
        let bytes = Writer::default().encode(&content).expect("it encodes");
        Index::from_bytes(bytes, Kind::Sha1).expect("it is whole")
    }

    fn read(&self) -> impl FnMut(&oid, &mut Vec<u8>) -> Result<(), Error> + '_ {
        |id, content| self.objects.object(id, content).map(|_| ())
    }
}

fn is_refusal<T>(result: Result<T, Error>) {
    let error = result.err().expect("the tree is too deep");
    assert_eq!(error.message(), REFUSAL);
}

#[test]
fn a_plan_is_made() {
    on_a_small_stack(|| {
        let nested = Nested::new(PERMITTED);
        let all =
            |nested: &Nested| unpack::all(nested.top, &nested.objects, Protect::default(), None);
        let unpacked = all(&nested).expect("it is not too deep");
        assert_eq!(unpacked.plan.write.len(), 1);
        let cached = unpacked.cached_tree.expect("it comes with the plan");
        assert_eq!(cached.known_count(), PERMITTED + 1);
        is_refusal(all(&Nested::new(REFUSED)));
    });
}

#[test]
fn two_trees_are_compared() {
    on_a_small_stack(|| {
        let nested = Nested::new(PERMITTED);
        for (old, new) in [(None, Some(nested.top)), (Some(nested.top), None)] {
            let mut changes = 0;
            unpack::diff(&nested.objects, old, new, &mut |change| {
                assert_eq!(change.path, nested.path);
                changes += 1;
                Ok(())
            })
            .expect("it is not too deep");
            assert_eq!(changes, 1);
        }
        let nested = Nested::new(REFUSED);
        let new = Some(nested.top);
        is_refusal(unpack::diff(&nested.objects, None, new, &mut |_| Ok(())));
    });
}

#[test]
fn trees_are_made_of_an_index() {
    fn make(nested: &Nested, cached: Option<&CachedTree>) -> Result<(ObjectId, CachedTree), Error> {
        let write = &mut |content: &[u8]| {
            let header = format!("tree {}\0", content.len());
            let id = pronto_hash::digest(Kind::Sha1, &[header.as_bytes(), content]);
            Ok(id.expect("no collision"))
        };
        let mut workshop = Workshop {
            contains: &mut |_| Ok(true),
            write,
            missing_ok: true,
        };
        trees::make(&nested.index(), cached, &mut workshop)
    }
    on_a_small_stack(|| {
        let nested = Nested::new(PERMITTED);
        let (id, cached) = make(&nested, None).expect("it is not too deep");
        assert_eq!(id, nested.top);
        let (id, copied) = make(&nested, Some(&cached)).expect("all is known");
        assert_eq!((id, copied), (nested.top, cached));
        is_refusal(make(&Nested::new(REFUSED), None));
    });
}

#[test]
fn a_tree_and_an_index_are_compared() {
    fn compare(nested: &Nested, index: &Index) -> Result<usize, Error> {
        let pathspec = Pathspec::default();
        let (root, read) = (Some(nested.top.as_ref()), &mut nested.read());
        let compared = tree_and_index(root, index, None, &pathspec, IntentToAdd::Absent, read);
        compared.map(|compared| compared.differences.len())
    }
    on_a_small_stack(|| {
        let empty = Index::empty(Kind::Sha1);
        let nested = Nested::new(PERMITTED);
        assert_eq!(compare(&nested, &nested.index()).ok(), Some(0));
        assert_eq!(compare(&nested, &empty).ok(), Some(1));
        is_refusal(compare(&Nested::new(REFUSED), &empty));
    });
}

#[test]
fn cached_trees_are_found() {
    on_a_small_stack(|| {
        let find =
            |nested: &Nested| cached_trees(&nested.top, &nested.index(), None, &mut nested.read());
        let cached = find(&Nested::new(PERMITTED)).expect("it is not too deep");
        assert_eq!(cached.known_count(), PERMITTED + 1);
        is_refusal(find(&Nested::new(REFUSED)));
    });
}

#[test]
fn trees_are_merged() {
    fn merged(nested: &Nested, rule: MergeRule) -> Result<usize, Error> {
        let scratch = Scratch::new();
        let (index, interrupt) = (Index::empty(Kind::Sha1), Interrupt::new());
        let top = Directory::open(scratch.path()).expect("it is there");
        let view = WorktreeView {
            index: &index,
            objects: &nested.objects,
            top: &top,
            protect: Protect::default(),
            rules: Default::default(),
            stat_decides: false,
            file_mode: true,
            symlinks: true,
            to_git: &|| unreachable!("no file is examined"),
            sparse: None,
            workers: Workers::Exactly(1),
            keep_directory: None,
            interrupt: &interrupt,
        };
        let trees = match rule {
            MergeRule::Three { .. } => vec![nested.top; 3],
            _ => vec![nested.top],
        };
        let request = Request {
            trees: &trees,
            rule,
            reset: false,
            update: false,
            look: false,
        };
        match merge(&request, &view, &mut |_, _| Ok(true))? {
            MergeDecision::Plan(merged) => Ok(merged.entries(&index).len()),
            MergeDecision::Refused(refusals) => panic!("{refusals:?}"),
        }
    }
    on_a_small_stack(|| {
        let nested = Nested::new(PERMITTED);
        assert_eq!(merged(&nested, MergeRule::One).ok(), Some(1));
        let three = MergeRule::Three { aggressive: true };
        assert_eq!(merged(&nested, three).ok(), Some(1));
        is_refusal(merged(&Nested::new(REFUSED), MergeRule::One));
    });
}

#[test]
fn directories_outside_of_a_cone_are_found() {
    on_a_small_stack(|| {
        let nested = Nested::new(REFUSED);
        let (sparse, warning) = Sparse::parse(b"/*\n!/*/\n", true, false);
        assert_eq!(warning, None);
        let found = |flags| {
            let entry = nested.entry(flags);
            outside(&[entry.as_ref()], &sparse)
        };
        assert_eq!(found(Flags::SKIP_WORKTREE), ["d"]);
        // A file that is there keeps every directory above it.
        assert_eq!(found(Flags::default()), [""; 0]);
    });
}

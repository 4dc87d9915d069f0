//! Numbers of packed objects, and sets of objects.

use std::collections::HashSet;
use std::sync::Arc;

use pronto_hash::Kind;
use pronto_odb::ObjectSet;

use super::support::Repository;

/// The objects of `repository`: some in two packs, some in a third, some loose.
fn mixed(kind: Kind, with_multi: bool) -> Repository {
    let repository = Repository::new(kind);
    repository.commit_history(3, 12);
    repository.git(&["repack", "-a", "-d", "-q"]);
    if with_multi {
        repository.git(&["multi-pack-index", "write"]);
    }
    repository.commit_history(5, 12);
    repository.git(&["repack", "-d", "-q"]);
    // The same objects once more, in a pack of all.
    repository.git(&["repack", "-a", "-q"]);
    repository.commit_history(7, 3);
    repository
}

#[test]
fn numbers_lead_back_to_ids() {
    for kind in [Kind::Sha1, Kind::Sha256] {
        for with_multi in [false, true] {
            let repository = mixed(kind, with_multi);
            let numbered = repository
                .store()
                .numbered()
                .expect("the indexes are sound");
            let mut packed = 0;
            for object in repository.listed_objects() {
                let number = numbered.find(&object.id).expect("the indexes are sound");
                if let Some(number) = number {
                    assert_eq!(numbered.id(number).expect("it is known"), object.id);
                    packed += 1;
                }
            }
            assert!(packed > 0);
            assert!(numbered.id(u32::MAX).is_err());
        }
    }
}

#[test]
fn a_set_holds_what_was_added() {
    for with_multi in [false, true] {
        let repository = mixed(Kind::Sha1, with_multi);
        let store = repository.store();
        let numbered = Arc::new(store.numbered().expect("the indexes are sound"));
        let mut set = ObjectSet::new(Arc::clone(&numbered));
        let mut model = HashSet::new();
        let objects = repository.listed_objects();
        for object in objects.iter().step_by(2) {
            let was_absent = set.insert(&object.id).expect("the indexes are sound");
            assert_eq!(was_absent, model.insert(object.id), "{}", object.id);
        }
        // Packs are removed; the set still contains them.
        repository.git(&["repack", "-a", "-d", "-q"]);
        store.refresh().expect("the packs can be listed");
        for object in &objects {
            let contains = set.contains(&object.id).expect("the indexes are sound");
            assert_eq!(contains, model.contains(&object.id), "{}", object.id);
        }
        let absent = Kind::Sha1.null();
        assert!(!set.contains(&absent).expect("the indexes are sound"));
        assert!(set.insert(&absent).expect("the indexes are sound"));
        assert!(!set.insert(&absent).expect("the indexes are sound"));
        assert!(set.contains(&absent).expect("the indexes are sound"));
    }
}

//! Fuzzes the path of a ref: for every name, the file is inside the repository.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use bstr::ByteSlice;
use pronto_refs::RefNameRef;

pub(crate) fn run(data: &[u8]) {
    if RefNameRef::new(data.as_bstr()).is_ok() {
        assert!(
            RefNameRef::existing(data.as_bstr()).is_ok(),
            "every name that may be made may be read"
        );
    }
    let Ok(name) = RefNameRef::existing(data.as_bstr()) else {
        return;
    };
    let path = Path::new(OsStr::from_bytes(&name));
    assert!(path.components().count() > 0);
    assert!(
        path.components()
            .all(|part| matches!(part, Component::Normal(_)))
    );
    assert!(!data.contains(&0));
    assert_ne!(path, Path::new("config"));
}

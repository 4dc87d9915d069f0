//! Fuzzes the manifest of a generation in an object store: unchanged, and with a matching checksum.
//! A valid manifest has exactly one form.

use pronto_store::{Digest, Manifest};

pub(crate) fn run(data: &[u8]) {
    let _ = Manifest::decode(&data.to_vec().into());
    let mut whole = data.to_vec();
    whole.extend_from_slice(format!("checksum {}\n", Digest::of(data)).as_bytes());
    let whole = whole.into();
    let Ok(manifest) = Manifest::decode(&whole) else {
        return;
    };
    let again = manifest.encode().expect("it was one");
    assert_eq!(again, whole);
    assert!(manifest.objects().all(|object| !object.name.contains("..")));
}

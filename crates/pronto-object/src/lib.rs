//! Parses and encodes Git objects: commits, tags and trees, with the identities, dates and messages
//! in them.
//!
//! Parsing does not allocate and is as lenient as Git's. Each part is parsed on request, and a
//! malformed part is `None`. The strict checks of `git fsck` are in `pronto_storage::fsck`.
//!
//! ```
//! use pronto_object::CommitRef;
//!
//! let commit = CommitRef::new(
//!     b"tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n\
//!       author A U Thor <author@example.com> 1112911993 -0700\n\
//!       committer C O Mitter <committer@example.com> 1112911993 -0700\n\
//!       \n\
//!       Subject\n",
//! );
//! assert_eq!(commit.parents().count(), 0);
//! assert_eq!(commit.author().expect("the line is there").name, "A U Thor");
//! assert_eq!(commit.subject(), "Subject");
//! ```

pub mod commit;
pub mod date;
mod headers;
pub mod identity;
pub mod message;
pub mod tag;
pub mod tree;

pub use commit::{CommitLinks, CommitRef};
pub use identity::{IdentityRef, Signature, header_time};
pub use tag::TagRef;
pub use tree::{TreeEntries, TreeEntry};

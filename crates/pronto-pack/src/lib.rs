//! Packs and their indexes: reading, indexing a stream, writing.

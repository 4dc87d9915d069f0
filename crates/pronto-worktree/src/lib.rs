//! Between index and files: checkout, status walk, attributes, ignores, filters.

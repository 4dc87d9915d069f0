//! A Git-compatible version control engine: repositories and their operations as a library.

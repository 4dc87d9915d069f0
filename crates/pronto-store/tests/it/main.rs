//! The store over a directory and over S3, with several processes' worth of state.

mod blocks;
mod blocks_counted;
mod blocks_damaged;
mod damage;
mod database;
mod database_killed;
mod directory;
mod hostile;
mod s3;
mod served;
mod support;
mod upkeep;

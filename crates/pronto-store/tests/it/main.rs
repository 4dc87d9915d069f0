//! Tests of the store in a directory and on S3, with the state of several processes.

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

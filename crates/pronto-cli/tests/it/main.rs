//! The command line as its users see it: real processes, a real git beside them.

#![expect(clippy::print_stdout, reason = "tests say what they skip")]

mod aliases;
mod contention;
mod entry_lengths;
mod fallback;
mod faults;
mod filters;
mod folding;
mod hostile;
mod hostile_links;
mod in_place;
mod known_trees;
mod large_blobs;
mod many_trees;
mod matrix;
mod memory;
mod merges;
mod monitor;
mod monitor_socket;
mod monitor_storm;
mod multi_pack_index;
mod netsync;
mod netsync_hidden;
mod netsync_hostile;
mod netsync_kills;
mod netsync_large;
mod netsync_peers;
mod netsync_protocols;
mod netsync_pull;
mod netsync_puppet;
mod netsync_stalled;
mod options;
mod packing;
mod pairs;
mod reflinks;
mod repack;
#[path = "../../../pronto-wire/tests/servers/lib.rs"]
mod servers;
mod serving;
mod signals;
mod slow_status;
mod small_directories;
mod status_verbose;
mod streams;
mod support;
mod system_calls;
mod traces;
mod transports;
mod unreadable;
mod whole;
mod worktrees;

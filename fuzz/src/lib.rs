//! Fuzz targets: one function for each parser of untrusted bytes.
//!
//! A target panics if the parser breaks a promise. `cargo test -p fuzz-targets` runs each with random bytes.
//! The programs in `fuzz_targets` run them under libFuzzer; they need the feature `libfuzzer`.

mod archive_request;
mod attributes_file;
mod bitmap;
mod bundle_header;
mod bundle_list;
mod client_certificate;
mod commit_graph;
mod compressed_bitmap;
mod database_address;
mod deflate;
mod delta;
mod entry_lengths;
mod fsck_object;
mod fsmonitor;
mod gitmodules;
mod greeting;
mod ignore_file;
mod monitor_events;
mod monitor_protocol;
mod mtimes;
mod multi_pack_index;
mod netrc;
mod netsync_frames;
mod netsync_ranges;
mod netsync_segment;
mod netsync_session;
mod pack_ahead;
mod pack_entry;
mod pack_index;
mod pack_stream;
mod packet_lines;
mod push_certificate;
mod push_end;
mod push_report;
mod push_request;
mod ref_name;
mod reftable;
mod remote_address;
mod reverse_index;
mod server_address;
mod server_authorization;
mod server_config;
mod ssh_command;
mod staging_index;
mod store_manifest;
mod tree_links;
mod untracked_cache;
mod untracked_list;
mod upload_request;
mod url_origin;

/// A function that takes untrusted bytes.
pub type Target = fn(&[u8]);

/// All targets by name, sorted.
pub const TARGETS: &[(&str, Target)] = &[
    ("archive_request", archive_request::run),
    ("attributes_file", attributes_file::run),
    ("bitmap", bitmap::run),
    ("bundle_header", bundle_header::run),
    ("bundle_list", bundle_list::run),
    ("client_certificate", client_certificate::run),
    ("commit_graph", commit_graph::run),
    ("compressed_bitmap", compressed_bitmap::run),
    ("database_address", database_address::run),
    ("deflate", deflate::run),
    ("delta", delta::run),
    ("entry_lengths", entry_lengths::run),
    ("fsck_object", fsck_object::run),
    ("fsmonitor", fsmonitor::run),
    ("gitmodules", gitmodules::run),
    ("greeting", greeting::run),
    ("ignore_file", ignore_file::run),
    ("monitor_events", monitor_events::run),
    ("monitor_protocol", monitor_protocol::run),
    ("mtimes", mtimes::run),
    ("multi_pack_index", multi_pack_index::run),
    ("netrc", netrc::run),
    ("netsync_frames", netsync_frames::run),
    ("netsync_ranges", netsync_ranges::run),
    ("netsync_segment", netsync_segment::run),
    ("netsync_session", netsync_session::run),
    ("pack_ahead", pack_ahead::run),
    ("pack_entry", pack_entry::run),
    ("pack_index", pack_index::run),
    ("pack_stream", pack_stream::run),
    ("packet_lines", packet_lines::run),
    ("push_certificate", push_certificate::run),
    ("push_end", push_end::run),
    ("push_report", push_report::run),
    ("push_request", push_request::run),
    ("ref_name", ref_name::run),
    ("reftable", reftable::run),
    ("remote_address", remote_address::run),
    ("reverse_index", reverse_index::run),
    ("server_address", server_address::run),
    ("server_authorization", server_authorization::run),
    ("server_config", server_config::run),
    ("ssh_command", ssh_command::run),
    ("staging_index", staging_index::run),
    ("store_manifest", store_manifest::run),
    ("tree_links", tree_links::run),
    ("untracked_cache", untracked_cache::run),
    ("untracked_list", untracked_list::run),
    ("upload_request", upload_request::run),
    ("url_origin", url_origin::run),
];

/// Runs the target `name` with `data`.
///
/// # Panics
/// If there is no such target, or the parser breaks a promise.
pub fn run(name: &str, data: &[u8]) {
    let at = TARGETS.binary_search_by_key(&name, |(name, _)| name);
    let at = at.unwrap_or_else(|_| panic!("there is no target '{name}'"));
    TARGETS[at].1(data);
}

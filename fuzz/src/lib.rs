//! Fuzz targets: one function for each parser of untrusted bytes.
//!
//! A target panics if the parser breaks a guarantee. `cargo test -p fuzz-targets` runs each target
//! with random bytes. The programs in `fuzz_targets` run the targets under libFuzzer. They need the
//! feature `libfuzzer`.

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
mod server_certificate;
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
pub type FuzzTarget = fn(&[u8]);

/// Defines [`TARGETS`], and a function for each target. A program calls one function by its name,
/// so that the linker omits the code of the other targets.
macro_rules! targets {
    ($($name:ident,)*) => {
        /// All targets by name, sorted.
        pub const TARGETS: &[(&str, FuzzTarget)] = &[$((stringify!($name), $name),)*];

        $(
            #[doc = concat!("Runs the target `", stringify!($name), "`.\n\n# Panics\nIf the parser breaks a promise.")]
            pub fn $name(data: &[u8]) {
                $name::run(data);
            }
        )*
    };
}

targets! {
    archive_request,
    attributes_file,
    bitmap,
    bundle_header,
    bundle_list,
    client_certificate,
    commit_graph,
    compressed_bitmap,
    database_address,
    deflate,
    delta,
    entry_lengths,
    fsck_object,
    fsmonitor,
    gitmodules,
    greeting,
    ignore_file,
    monitor_events,
    monitor_protocol,
    mtimes,
    multi_pack_index,
    netrc,
    netsync_frames,
    netsync_ranges,
    netsync_segment,
    netsync_session,
    pack_ahead,
    pack_entry,
    pack_index,
    pack_stream,
    packet_lines,
    push_certificate,
    push_end,
    push_report,
    push_request,
    ref_name,
    reftable,
    remote_address,
    reverse_index,
    server_address,
    server_authorization,
    server_certificate,
    server_config,
    ssh_command,
    staging_index,
    store_manifest,
    tree_links,
    untracked_cache,
    untracked_list,
    upload_request,
    url_origin,
}

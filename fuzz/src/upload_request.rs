//! Fuzzes requests to upload-pack: single lines, filters, and whole conversations about a small
//! repository. The first byte selects version and transport, so that the fuzzer reaches all of
//! them.

use std::sync::OnceLock;

use bstr::ByteSlice;
use pronto::init::Options as InitOptions;
use pronto::pack_objects::ObjectFilter;
use pronto::upload_pack::{Options, UploadStreams, answer};
use pronto::{Environment, Repository};
use pronto_hash::Kind;
use pronto_io::watch::Watch;
use pronto_wire::advertisement::ProtocolVersion;
use pronto_wire::request::RequestLine;

/// Returns a repository without objects, in which everything is permitted.
fn repository() -> &'static Repository {
    static MADE: OnceLock<Repository> = OnceLock::new();
    MADE.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder").keep();
        let mut environment = Environment::empty(&folder);
        environment.set("HOME", &folder);
        environment.set("GIT_CONFIG_NOSYSTEM", "1");
        let git_dir = folder.join("served.git");
        let _ = Repository::init(&git_dir, &InitOptions::default(), &environment)
            .expect("a repository");
        let settings = "[uploadpack]\n\tallowFilter\n\tallowAnySHA1InWant\n\tallowRefInWant\n\
                        \tallowSidebandAll\n\tadvertiseBundleURIs\n[transfer]\n\
                        \tadvertiseObjectInfo\n";
        let path = git_dir.join("config");
        let config = std::fs::read_to_string(&path).expect("a configuration");
        std::fs::write(&path, config + settings).expect("a configuration");
        Repository::open(&git_dir, &environment).expect("a repository")
    })
}

pub(crate) fn run(data: &[u8]) {
    let _ = RequestLine::of_needs(data, Kind::Sha1);
    let _ = RequestLine::of_negotiation(data, Kind::Sha1);
    let _ = RequestLine::of_fetch(data, Kind::Sha256);
    if let Ok(filter) = ObjectFilter::parse(data.as_bstr()) {
        let spec = filter.to_spec();
        assert_eq!(
            ObjectFilter::parse(spec.as_bstr()).ok(),
            Some(filter),
            "{spec}"
        );
    }
    let Some((choice, mut request)) = data.split_first() else {
        return;
    };
    let mut options = Options::default();
    options.version = match choice & 3 {
        0 => ProtocolVersion::V0,
        1 => ProtocolVersion::V1,
        _ => ProtocolVersion::V2,
    };
    options.is_stateless = choice & 4 != 0;
    let mut output = Vec::new();
    let streams = UploadStreams {
        input: &mut request,
        output: &mut output,
    };
    let _ = answer(repository(), &options, streams, &Watch::none());
}

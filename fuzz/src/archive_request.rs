//! Fuzzes requests for archives: packets with arguments, the arguments themselves, and whole
//! responses for a repository without objects.

use std::sync::OnceLock;

use pronto::archive::ArchiveArguments;
use pronto::bstr::ByteSlice;
use pronto::init::Options as InitOptions;
use pronto::upload_archive::{ArchiveStreams, Options, serve};
use pronto::{Environment, Repository};
use pronto_io::watch::Watch;
use pronto_wire::archive::{MOST_ARGUMENTS, read_arguments};
use pronto_wire::reader::PacketReader;

/// Returns a repository without objects, in which any object name may be requested.
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
        let path = git_dir.join("config");
        let config = std::fs::read_to_string(&path).expect("a configuration");
        let settings = "[uploadarchive]\n\tallowUnreachable\n";
        std::fs::write(&path, config + settings).expect("a configuration");
        Repository::open(&git_dir, &environment).expect("a repository")
    })
}

pub(crate) fn run(data: &[u8]) {
    if let Ok(arguments) = read_arguments(&mut PacketReader::new(data)) {
        assert!(arguments.len() <= MOST_ARGUMENTS);
    }
    let _ = ArchiveArguments::parse(data.lines().map(|line| line.as_bstr()));
    let (mut input, mut output) = (data, Vec::new());
    let streams = ArchiveStreams {
        input: &mut input,
        output: &mut output,
    };
    let _ = serve(
        Ok(repository()),
        &Options::default(),
        streams,
        &Watch::none(),
    );
    assert!(output.starts_with(b"0008ACK\n0000"));
}

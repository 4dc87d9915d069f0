//! Queries a remote for its refs.

use pronto_io::watch::Watch;
use pronto_wire::advertisement::{LsRefs, RemoteRef};

use crate::remote::Remote;
use crate::remote::connection::{self, Settings, from_wire};
use crate::{Repository, Result};

/// Connects to `remote` and returns all its refs.
pub(super) fn refs(
    repository: &Repository,
    remote: &Remote,
    watch: &Watch<'_>,
) -> Result<Vec<RemoteRef>> {
    let (config, environment) = (repository.config(), repository.environment());
    let settings = Settings::default().for_remote(remote, config)?;
    let mut client = connection::connect(remote.url()?, &settings, config, environment, watch)?;
    let request = LsRefs {
        prefixes: Vec::new(),
        server_options: remote.server_options.clone(),
    };
    let refs = client.refs(&request).map_err(from_wire)?;
    // All refs are received; an error while closing the connection does not matter.
    let _ = client.close();
    Ok(refs)
}

//! Bundles that are fetched before the remotes (`fetch.bundleURI`).

use pronto::{Repository, Watch, bundle_uri};

use crate::{CliError, Context};

pub(super) fn take(repository: &Repository, context: &mut Context) -> Result<(), CliError> {
    let Some(uri) = repository.config().string("fetch.bundleuri")? else {
        return Ok(());
    };
    let progress = context.progress(Some(false), false);
    let watch = Watch::from(&context.interrupt).with_progress(&*progress);
    let taken = bundle_uri::fetch(repository, uri, &watch)?;
    if !taken.succeeded {
        context.warn(&format!("failed to fetch bundles from '{uri}'"));
    }
    context.report();
    Ok(())
}

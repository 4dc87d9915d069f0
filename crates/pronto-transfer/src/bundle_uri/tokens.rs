//! Fetches bundles of lists with creation tokens (`bundle.heuristic=creationToken`): newer bundles
//! have larger tokens, and only the needed bundles are downloaded.

use bstr::BStr;
use pronto_config::config::edit::set_in_file;

use super::{
    AddressResult, BundleImport, BundleList, BundleResult, NamedAddress, Provenance, list,
};
use crate::Result;

/// The setting with the largest creation token of a landed bundle.
const TOKEN_KEY: &str = "fetch.bundleCreationToken";

/// The state of one bundle of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BundleState {
    /// The bundle is not downloaded yet.
    Unknown,
    /// The bundle is downloaded, at this position among the downloaded bundles; the repository
    /// lacks prerequisites.
    Waiting(usize),
    /// The bundle is landed, or unusable.
    Settled,
}

impl BundleImport<'_> {
    /// Fetches the bundles of `list`, the newest first. If the repository lacks prerequisites of a
    /// bundle, the next older bundle is fetched, and then the newer bundle is tried again. Returns
    /// whether the newest bundle was landed.
    pub(super) fn take_by_tokens(
        &mut self,
        list: &BundleList,
        from: &Provenance,
        depth: u32,
    ) -> Result<bool> {
        let mut entries: Vec<(u64, NamedAddress<'_>)> = list
            .in_order()
            .into_iter()
            .filter(|entry| entry.creation_token > 0)
            .filter_map(|entry| Some((entry.creation_token, entry.named()?)))
            .collect();
        entries.sort_by_key(|(token, _)| std::cmp::Reverse(*token));
        let mut largest = self.largest_token();
        if let (Some(known), Some((newest, _))) = (largest, entries.first())
            && *newest <= known
        {
            return Ok(true);
        }
        let mut states = vec![BundleState::Unknown; entries.len()];
        let (mut at, mut is_forward) = (0_usize, true);
        while let (Some((token, named)), Some(state)) = (entries.get(at), states.get_mut(at)) {
            if *state == BundleState::Unknown {
                match self.take(*named, from, depth + 1)? {
                    AddressResult::Bundle => *state = BundleState::Waiting(self.bundles.len() - 1),
                    AddressResult::List => {
                        let uri = named.uri;
                        self.warn(&format!("file downloaded from '{uri}' is not a bundle"));
                        return Ok(false);
                    }
                    AddressResult::Nothing => {
                        *state = BundleState::Settled;
                        is_forward = true;
                    }
                }
            }
            if let BundleState::Waiting(place) = *state {
                let landing = self.land(place)?;
                is_forward = landing != Some(BundleResult::Landed);
                if !is_forward {
                    largest = largest.max(Some(*token));
                }
                if landing != Some(BundleResult::Waiting) {
                    *state = BundleState::Settled;
                }
            }
            match (is_forward, at) {
                (true, _) => at += 1,
                (false, 0) => {
                    self.store_token(largest.unwrap_or(0));
                    return Ok(true);
                }
                (false, _) => at -= 1,
            }
        }
        Ok(false)
    }

    fn largest_token(&self) -> Option<u64> {
        let value = self.repository.config().raw(TOKEN_KEY)?;
        list::leading_number(value)
    }

    fn store_token(&self, token: u64) {
        let file = self.repository.common_dir().join("config");
        let text = token.to_string();
        let config = self.repository.config();
        if set_in_file(&file, TOKEN_KEY, BStr::new(&text), config).is_err() {
            self.warn("failed to store maximum creation token");
        }
    }
}

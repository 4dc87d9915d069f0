//! Lookups by URL: the value of the key `section.<url>.variable` that matches best.

use super::{Config, ConfigEntry, ConfigKey};
use crate::url::{NormalUrl, UrlMatch};

/// Returns the best match of all entries `section.<url>.variable` and `section.variable`.
pub(super) fn best<'a>(
    config: &'a Config,
    section: &str,
    variable: &str,
    url: &NormalUrl,
) -> Option<ConfigEntry<'a>> {
    let mut best: Option<(UrlMatch, ConfigEntry<'a>)> = None;
    for entry in config.iter() {
        let key = ConfigKey::split(entry.key);
        if key.section != section || !key.variable.eq_ignore_ascii_case(variable.as_bytes()) {
            continue;
        }
        let found = match key.subsection {
            None => Some(UrlMatch::default()),
            Some(pattern) => url.matched_by(pattern),
        };
        if let Some(found) = found
            && best.as_ref().is_none_or(|(before, _)| found >= *before)
        {
            best = Some((found, entry));
        }
    }
    best.map(|(_, entry)| entry)
}

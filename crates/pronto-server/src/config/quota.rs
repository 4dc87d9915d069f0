//! The quotas of the configuration (`[[quota]]`).

use serde::Deserialize;
use toml::Spanned;

use super::problem::{ConfigProblem, glob, problem, within};
use crate::quota::Quota;

/// A quota as written in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    repository: Spanned<String>,
    bytes: Option<Spanned<u64>>,
    refs: Option<Spanned<u64>>,
    repositories: Option<Spanned<u64>>,
    #[serde(default)]
    per_namespace: bool,
}

impl Entry {
    pub(super) fn resolved(&self) -> Result<Quota, ConfigProblem> {
        let limits = [&self.bytes, &self.refs, &self.repositories];
        for limit in limits.into_iter().flatten() {
            within(limit, 1, u64::MAX >> 1, "must be at least 1")?;
        }
        if limits.iter().all(|limit| limit.is_none()) {
            let message = "a quota needs 'bytes', 'refs' or 'repositories'";
            return Err(problem(&self.repository, message.to_owned()));
        }
        if self.per_namespace && self.repositories.is_none() {
            let message = "'per_namespace' can be used only with 'repositories'";
            return Err(problem(&self.repository, message.to_owned()));
        }
        let number = |limit: &Option<Spanned<u64>>| limit.as_ref().map(|limit| *limit.get_ref());
        Ok(Quota {
            repository: glob(&self.repository)?,
            bytes: number(&self.bytes),
            refs: number(&self.refs),
            repositories: number(&self.repositories),
            per_namespace: self.per_namespace,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::ServerConfig;
    use crate::quota::Quota;

    fn parse(text: &str) -> crate::Result<ServerConfig> {
        let text = format!("[[quota]]\n{text}");
        ServerConfig::parse(&text, Path::new("x.toml"), Path::new("/srv"))
    }

    #[test]
    fn quotas_are_read() {
        let text = "repository = \"*/**\"\nrepositories = 3\nper_namespace = true\nbytes = 7";
        let found = parse(text).expect("valid").quotas;
        let expected = Quota {
            repository: "*/**".to_owned(),
            bytes: Some(7),
            refs: None,
            repositories: Some(3),
            per_namespace: true,
        };
        assert_eq!(found, [expected]);
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (text, expected) in [
            ("repository = \"**\"", "x.toml:2: a quota needs"),
            (
                "repository = \"**\"\nbytes = 0",
                "x.toml:3: must be at least 1",
            ),
            (
                "repository = \"[\"\nbytes = 1",
                "x.toml:2: '[' has a '[' without",
            ),
            ("bytes = 1", "missing field `repository`"),
            (
                "repository = \"**\"\nrefs = 1\nper_namespace = true",
                "x.toml:2: 'per_namespace' can be used only",
            ),
            (
                "repository = \"**\"\nsize = 1",
                "unknown setting 'size' in [quota]",
            ),
        ] {
            let error = parse(text).expect_err(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}

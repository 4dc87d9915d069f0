//! URLs of stores.

use std::path::PathBuf;

use pronto::Environment;

use crate::{Error, ErrorKind, Result};

/// The service that stores the objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BucketService {
    /// A directory of this machine.
    Directory(PathBuf),
    /// A bucket of S3, or of a service with a compatible interface.
    S3(String),
    /// A bucket of Google Cloud Storage.
    Google(String),
    /// A container of Azure Blob Storage.
    Azure(String),
}

/// The URL of a store: `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`, `az://CONTAINER/PREFIX` or
/// `file:///DIRECTORY`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreLocation {
    pub(super) service: BucketService,
    /// The prefix of all names, which is empty or ends with a slash.
    pub(super) prefix: String,
    /// The environment variables with the credentials and the endpoint of the service.
    pub(super) variables: Vec<(String, String)>,
}

impl StoreLocation {
    /// Parses a URL. The credentials, the region and the endpoint of a service are read from the
    /// variables of `environment` that the tools of the service use (`AWS_*`, `GOOGLE_*`,
    /// `AZURE_*`).
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Options`] if `url` is not the URL of a store.
    pub fn parse(url: &str, environment: &Environment) -> Result<Self> {
        let wrong = |why: &str| {
            let message = format!("invalid store URL '{url}': {why}");
            let hint = "use s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or file:///DIRECTORY";
            Error::new(ErrorKind::Options, message).with_hint(hint)
        };
        let (scheme, rest) = url
            .split_once("://")
            .ok_or_else(|| wrong("it has no scheme"))?;
        if scheme == "file" {
            if !rest.starts_with('/') {
                return Err(wrong("the directory must be an absolute path"));
            }
            return Ok(StoreLocation {
                service: BucketService::Directory(rest.into()),
                prefix: String::new(),
                variables: Vec::new(),
            });
        }
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        if bucket.is_empty() || !bucket.bytes().all(plain) {
            return Err(wrong("the bucket name is invalid"));
        }
        let prefix = prefix.trim_end_matches('/');
        let is_sound = |part: &str| !matches!(part, "" | "." | "..") && part.bytes().all(plain);
        if !prefix.is_empty() && !prefix.split('/').all(is_sound) {
            return Err(wrong("the prefix is invalid"));
        }
        let bucket = bucket.to_owned();
        let (service, variables) = match scheme {
            "s3" => (BucketService::S3(bucket), "AWS_"),
            "gs" => (BucketService::Google(bucket), "GOOGLE_"),
            "az" => (BucketService::Azure(bucket), "AZURE_"),
            _ => return Err(wrong("its scheme is unknown")),
        };
        let variables = environment.variables().filter_map(|(name, value)| {
            let name = name.to_str().filter(|name| name.starts_with(variables))?;
            Some((name.to_owned(), value.to_str()?.to_owned()))
        });
        Ok(StoreLocation {
            service,
            prefix: match prefix {
                "" => String::new(),
                prefix => format!("{prefix}/"),
            },
            variables: variables.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_a_service_and_a_prefix() {
        let mut environment = Environment::empty("/");
        environment.set("AWS_REGION", "eu-1");
        environment.set("AZURE_X", "y");
        let parse = |url: &str| StoreLocation::parse(url, &environment);
        let found = parse("s3://bucket/a/b/").expect("valid");
        assert_eq!(found.service, BucketService::S3("bucket".into()));
        assert_eq!(found.prefix, "a/b/");
        assert_eq!(
            found.variables,
            [("AWS_REGION".to_owned(), "eu-1".to_owned())]
        );
        let found = parse("gs://bucket").expect("valid");
        assert_eq!((found.prefix.as_str(), found.variables.len()), ("", 0));
        let found = parse("file:///srv/store").expect("valid");
        assert_eq!(found.service, BucketService::Directory("/srv/store".into()));
        for bad in [
            "bucket",
            "s3://",
            "s3:///x",
            "s3://a b/c",
            "s3://a/../c",
            "s3://a//c",
            "ftp://a/b",
            "file://relative",
        ] {
            let error = parse(bad).expect_err(bad);
            assert_eq!(error.kind(), ErrorKind::Options, "{bad}");
        }
    }
}

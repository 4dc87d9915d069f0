//! URLs of stores.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

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

/// The variable that selects where credentials are looked up.
pub(super) const CREDENTIALS: &str = "PRONTO_STORE_CREDENTIALS";

/// The value of [`CREDENTIALS`] for the metadata service of a machine in a cloud.
pub(super) const INSTANCE: &str = "instance";

/// The file with the credentials that `gcloud` has stored, below the home directory.
const GOOGLE_FILE: &str = ".config/gcloud/application_default_credentials.json";

/// The variables that set the address of the service, in the order of their effect.
const ENDPOINTS: [&str; 6] = [
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT",
    "GOOGLE_BASE_URL",
    "AZURE_STORAGE_ENDPOINT",
    "AZURE_ENDPOINT",
];

/// The variables that set the region of S3.
const REGIONS: [&str; 2] = ["AWS_REGION", "AWS_DEFAULT_REGION"];

/// The places where credentials are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreCredentialSource {
    /// The variables of the environment, and the files that they name.
    Environment,
    /// The metadata service of the machine, if the environment has no credentials.
    Instance,
}

impl StoreCredentialSource {
    fn read(environment: &Environment) -> Result<Self> {
        match environment.text(CREDENTIALS) {
            None | Some("" | "environment") => Ok(StoreCredentialSource::Environment),
            Some(INSTANCE) => Ok(StoreCredentialSource::Instance),
            Some(other) => {
                let message = format!("invalid value '{other}' of {CREDENTIALS}");
                let hint = format!("use '{INSTANCE}' or 'environment'");
                Err(Error::new(ErrorKind::Options, message).with_hint(hint))
            }
        }
    }
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
    /// The places where credentials are looked up.
    pub(super) source: StoreCredentialSource,
    /// Whether the user has a file with the credentials of `gcloud`.
    pub(super) has_default_file: bool,
}

impl StoreLocation {
    /// Parses a URL. The credentials, the region and the endpoint of a service are read from the
    /// variables of `environment` that the tools of the service use (`AWS_*`, `GOOGLE_*`,
    /// `AZURE_*`). `PRONTO_STORE_CREDENTIALS=instance` adds the metadata service of the machine.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Options`] if `url` is not the URL of a store, or if the value of
    /// `PRONTO_STORE_CREDENTIALS` is invalid.
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
                source: StoreCredentialSource::Environment,
                has_default_file: false,
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
            // An empty variable is as good as none, as for the command lines of the services.
            let value = value.to_str().filter(|value| !value.is_empty())?;
            Some((name.to_owned(), value.to_owned()))
        });
        let location = StoreLocation {
            service,
            prefix: match prefix {
                "" => String::new(),
                prefix => format!("{prefix}/"),
            },
            variables: variables.collect(),
            source: StoreCredentialSource::read(environment)?,
            has_default_file: environment
                .path("HOME")
                .is_some_and(|home| home.join(GOOGLE_FILE).exists()),
        };
        location.check_variables()?;
        Ok(location)
    }

    /// Checks the variables from which the library makes URLs, because it panics if a URL is malformed.
    fn check_variables(&self) -> Result<()> {
        let wrong = |name: &str, value: &str, why: &str, hint: &str| {
            let message = format!("{name} '{value}' {why}");
            Err(Error::new(ErrorKind::Options, message).with_hint(hint))
        };
        for (name, value) in &self.variables {
            if is_address(name) && !is_http(value) {
                let hint = "begin it with https:// or http://, as in https://s3.example.org:9000";
                return wrong(name, value, "is not an address of HTTP", hint);
            }
            let is_sound = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            if REGIONS.contains(&name.as_str()) && !value.bytes().all(is_sound) {
                let hint = "a region has letters, digits and '-', as in eu-central-1";
                return wrong(name, value, "is not the name of a region", hint);
            }
        }
        Ok(())
    }

    /// Returns whether a variable has the setting that `is_wanted` accepts.
    pub(super) fn has<K: FromStr>(&self, is_wanted: impl Fn(&K) -> bool) -> bool {
        let names = self.variables.iter().map(|(name, _)| name);
        names
            .filter_map(|name| name.to_ascii_lowercase().parse::<K>().ok())
            .any(|key| is_wanted(&key))
    }

    /// Returns the address of the service, if a variable sets it.
    pub(super) fn endpoint(&self) -> Option<&str> {
        let value = |name: &&str| {
            let found = self.variables.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.as_str())
        };
        ENDPOINTS.iter().find_map(value)
    }
}

/// Returns whether the value of the variable `name` is the address of a service.
fn is_address(name: &str) -> bool {
    name.ends_with("ENDPOINT") || name.contains("ENDPOINT_URL") || name == "GOOGLE_BASE_URL"
}

/// Returns whether `value` is a URL of HTTP or HTTPS with a host.
fn is_http(value: &str) -> bool {
    let is_web = |url: &hyper::Uri| matches!(url.scheme_str(), Some("http" | "https"));
    let url = value.parse::<hyper::Uri>();
    url.is_ok_and(|url| is_web(&url) && url.host().is_some_and(|host| !host.is_empty()))
}

/// Formats the URL.
impl fmt::Display for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = self.prefix.trim_end_matches('/');
        let (scheme, bucket) = match &self.service {
            BucketService::Directory(path) => return write!(f, "file://{}", path.display()),
            BucketService::S3(bucket) => ("s3", bucket),
            BucketService::Google(bucket) => ("gs", bucket),
            BucketService::Azure(container) => ("az", container),
        };
        match prefix {
            "" => write!(f, "{scheme}://{bucket}"),
            prefix => write!(f, "{scheme}://{bucket}/{prefix}"),
        }
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
        assert_eq!(found.to_string(), "s3://bucket/a/b");
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

    #[test]
    fn variables_that_would_make_a_malformed_url_are_refused() {
        let parse = |url: &str, name: &str, value: &str| {
            let mut environment = Environment::empty("/");
            environment.set(name, value);
            StoreLocation::parse(url, &environment)
        };
        for (url, name) in [
            ("s3://b", "AWS_ENDPOINT"),
            ("s3://b", "AWS_ENDPOINT_URL"),
            ("s3://b", "AWS_ENDPOINT_URL_S3"),
            ("s3://b", "AWS_ENDPOINT_URL_STS"),
            ("s3://b", "AWS_METADATA_ENDPOINT"),
            ("gs://b", "GOOGLE_BASE_URL"),
            ("az://b", "AZURE_STORAGE_ENDPOINT"),
        ] {
            for bad in [
                "127.0.0.1:9000",
                "host",
                "http://",
                "http:///x",
                "http://a b",
                "ftp://a",
            ] {
                let error = parse(url, name, bad).expect_err(bad);
                assert_eq!(error.kind(), ErrorKind::Options, "{name}={bad}");
            }
            let found = parse(url, name, "").expect("an empty variable is none");
            assert_eq!(found.endpoint(), None, "{name}");
            parse(url, name, "https://host:9000/path").expect(name);
        }
        let found = parse("s3://b", "AWS_ENDPOINT_URL", "http://[::1]:9000").expect("valid");
        assert_eq!(found.endpoint(), Some("http://[::1]:9000"));
        for region in ["us east", "a/b", "a.b", "\u{e9}", "a\nb"] {
            for name in REGIONS {
                parse("s3://b", name, region).expect_err(region);
            }
        }
        parse("s3://b", "AWS_REGION", "eu-central-1").expect("valid");
    }
}

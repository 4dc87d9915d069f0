//! Errors of calls of a store, with their causes.

use std::error::Error as StdError;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use object_store::Error as StoreError;
use object_store::client::HttpError;

use super::url::{BucketService, StoreCredentialSource, StoreLocation};
use crate::{Error, ErrorKind};

/// The largest number of characters of the explanation of a service in a message.
const MOST_EXPLAINED: usize = 200;

/// The names of a store in the messages of failed calls.
#[derive(Clone, Debug)]
pub(super) struct StoreNames {
    /// The directory, if the store is one.
    directory: Option<PathBuf>,
    /// The URL of the store, and the address of the service if the environment has it.
    place: String,
    /// Whether the credentials come from the metadata service of the machine.
    is_instance: bool,
    /// The advice for a store that denies access.
    denied: &'static str,
}

impl StoreNames {
    pub(super) fn of(location: &StoreLocation) -> Self {
        let url = location.to_string();
        let (directory, denied) = match &location.service {
            BucketService::Directory(path) => (Some(path.clone()), ""),
            BucketService::S3(_) => (
                None,
                "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and that they may use the bucket",
            ),
            BucketService::Google(_) => (
                None,
                "check GOOGLE_SERVICE_ACCOUNT, and that the account may use the bucket",
            ),
            BucketService::Azure(_) => (
                None,
                "check AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, and that they may use \
                 the container",
            ),
        };
        StoreNames {
            directory,
            place: match location.endpoint() {
                Some(endpoint) => format!("'{url}' at '{endpoint}'"),
                None => format!("'{url}'"),
            },
            is_instance: location.source == StoreCredentialSource::Instance,
            denied,
        }
    }

    /// Returns the error of a call about the object `name`.
    pub(super) fn failed(&self, error: &StoreError, name: impl Display) -> Error {
        let name = name.to_string();
        let cause = causes(error).find_map(|cause| cause.downcast_ref::<io::Error>());
        if let (Some(directory), Some(cause)) = (&self.directory, cause) {
            return on_disk(cause, &directory.join(&name));
        }
        let code = ServiceResponse::of(error).code.as_deref().and_then(of_code);
        let failed = match error {
            _ if code == Some(Refusal::Clock) => {
                let message = format!("the store {} rejects the time of this machine", self.place);
                Error::new(ErrorKind::Denied, message)
                    .because(explanation(error))
                    .with_hint("set the clock of this machine, for example with 'timedatectl set-ntp true'")
            }
            _ if code == Some(Refusal::Access) => self.access_denied(error),
            StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. } => {
                self.access_denied(error)
            }
            StoreError::NotSupported { .. } | StoreError::NotImplemented { .. } => {
                let message = "the store does not support this operation";
                Error::new(ErrorKind::Unsupported, message).because(explanation(error))
            }
            _ if code == Some(Refusal::Bucket) => self.missing(error),
            StoreError::NotFound { .. } => self.missing(error),
            StoreError::InvalidPath { .. } => {
                let message = "the store rejects the object name";
                Error::new(ErrorKind::Options, message).because(explanation(error))
            }
            _ if self.is_instance && is_about_credentials(error) => {
                let message = format!(
                    "the metadata service of this machine gives no credentials for the store {}",
                    self.place
                );
                Error::new(ErrorKind::NoCredentials, message).because(root_cause(error))
            }
            _ => match causes(error).any(|cause| cause.is::<HttpError>()) {
                true => return self.unreachable(error),
                false => {
                    let message = format!("the call to the store {} failed", self.place);
                    Error::new(ErrorKind::Unavailable, message).because(explanation(error))
                }
            },
        };
        match name.is_empty() {
            true => failed,
            false => failed.at_path(name),
        }
    }

    /// Returns the error of a store that denies access.
    fn access_denied(&self, error: &StoreError) -> Error {
        let message = format!("the store {} denies access", self.place);
        Error::new(ErrorKind::Denied, message)
            .because(explanation(error))
            .with_hint(self.denied)
    }

    /// Returns the error of a bucket that the service does not have.
    fn missing(&self, error: &StoreError) -> Error {
        let message = format!("the bucket of the store {} does not exist", self.place);
        Error::new(ErrorKind::NoStore, message)
            .because(explanation(error))
            .with_hint("create the bucket, or check its name and the region")
    }

    /// Returns the error of a service that cannot be reached, or that speaks another protocol.
    fn unreachable(&self, error: &StoreError) -> Error {
        let place = &self.place;
        let speaks_no_http = causes(error).any(|cause| {
            let cause = cause.downcast_ref::<hyper::Error>();
            cause.is_some_and(hyper::Error::is_parse)
        });
        let speaks_no_tls = causes(error).any(|cause| {
            let cause = cause.downcast_ref::<rustls::Error>();
            matches!(cause, Some(rustls::Error::InvalidMessage(_)))
        });
        if speaks_no_http {
            let message = format!("the service of the store {place} does not speak HTTP");
            return Error::new(ErrorKind::NoStore, message)
                .with_hint("if the port speaks TLS, use an address that begins with https://");
        }
        if speaks_no_tls {
            let message = format!("the service of the store {place} does not speak TLS");
            return Error::new(ErrorKind::NoStore, message)
                .with_hint("if the port speaks HTTP, use an address that begins with http://");
        }
        let message = format!("cannot reach the store {place}");
        Error::new(ErrorKind::Unavailable, message).because(root_cause(error))
    }
}

/// Returns the error of a call of a store in a directory about the file at `path`. A full disk and a
/// missing permission stay until the disk is changed, so a retry does not help.
fn on_disk(cause: &io::Error, path: &Path) -> Error {
    use io::ErrorKind as Kind;
    let is_for_writes = matches!(
        cause.kind(),
        Kind::StorageFull | Kind::QuotaExceeded | Kind::ReadOnlyFilesystem | Kind::FileTooLarge
    );
    let is_lasting = is_for_writes
        || matches!(
            cause.kind(),
            Kind::PermissionDenied
                | Kind::NotADirectory
                | Kind::IsADirectory
                | Kind::InvalidFilename
        );
    let kind = match is_lasting {
        true => ErrorKind::Io,
        false => ErrorKind::Unavailable,
    };
    let verb = match is_for_writes {
        true => "write",
        false => "access",
    };
    let message = format!("cannot {verb} '{}'", path.display());
    let failed = Error::new(kind, message).because(pronto_io::error::reason(cause));
    match cause.kind() {
        Kind::StorageFull | Kind::QuotaExceeded => {
            failed.with_hint("free space there, and run the command again")
        }
        _ => failed,
    }
}

/// Returns `error` and its causes, the outermost first. The error inside of an [`io::Error`] is one
/// of them.
fn causes<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&cause| {
        let inner = cause
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        match inner {
            Some(inner) => {
                let inner: &(dyn StdError + 'static) = inner;
                Some(inner)
            }
            None => cause.source(),
        }
    })
}

/// Returns the first line of the innermost error, in the words of the system if it is one of the
/// system.
fn root_cause(error: &StoreError) -> String {
    let last = causes(error).last();
    let text = match last.and_then(|last| last.downcast_ref::<io::Error>()) {
        Some(cause) => pronto_io::error::reason(cause),
        None => last.map(ToString::to_string).unwrap_or_default(),
    };
    text.lines().next().unwrap_or_default().to_owned()
}

/// The code and the message in the XML response of a service.
#[derive(Debug, Default, PartialEq)]
struct ServiceResponse {
    code: Option<String>,
    message: Option<String>,
}

impl ServiceResponse {
    /// Returns the response that the text of `error` quotes. The library gives no other access to it.
    fn of(error: &StoreError) -> Self {
        Self::parse(&error.to_string())
    }

    fn parse(text: &str) -> Self {
        let element = |name: &str| {
            let (_, rest) = text.split_once(&format!("<{name}>"))?;
            let (value, _) = rest.split_once(&format!("</{name}>"))?;
            let value = value.chars().filter(|letter| !letter.is_control());
            Some(value.take(MOST_EXPLAINED).collect::<String>())
        };
        ServiceResponse {
            code: element("Code"),
            message: element("Message"),
        }
    }
}

/// A lasting refusal of a service, which no retry changes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Refusal {
    /// The credentials are wrong, or do not suffice.
    Access,
    /// The clocks of the service and of this machine differ.
    Clock,
    /// There is no such bucket, or it is in another region.
    Bucket,
}

/// Returns the refusal for an error code of S3, Google Cloud Storage or Azure Blob Storage, from
/// their lists of error codes, or `None` if the call may succeed later or the code is not known.
fn of_code(code: &str) -> Option<Refusal> {
    Some(match code {
        "AccessDenied"
        | "AccountProblem"
        | "AllAccessDisabled"
        | "AuthenticationFailed"
        | "AuthenticationRequired"
        | "AuthorizationFailure"
        | "AuthorizationPermissionMismatch"
        | "AccountIsDisabled"
        | "ExpiredToken"
        | "InsufficientAccountPermissions"
        | "InvalidAccessKeyId"
        | "InvalidAuthenticationInfo"
        | "InvalidSecurity"
        | "InvalidToken"
        | "KeyBasedAuthenticationNotPermitted"
        | "NotSignedUp"
        | "SignatureDoesNotMatch"
        | "UnauthorizedAccess" => Refusal::Access,
        "RequestTimeTooSkewed" | "RequestExpired" => Refusal::Clock,
        "ContainerNotFound"
        | "IllegalLocationConstraintException"
        | "InvalidBucketName"
        | "NoSuchBucket"
        | "PermanentRedirect" => Refusal::Bucket,
        _ => return None,
    })
}

/// Returns the code and the message in the response of the service, or the first line of the
/// innermost error.
fn explanation(error: &StoreError) -> String {
    let response = ServiceResponse::of(error);
    match (response.code, response.message) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code,
        _ => root_cause(error).trim_end_matches([':', ' ']).to_owned(),
    }
}

/// The addresses of the services that give credentials to machines.
const CREDENTIAL_HOSTS: [&str; 3] = [
    "169.254.169.254",
    "169.254.170.",
    "metadata.google.internal",
];

/// Returns whether the failed request was one for credentials.
fn is_about_credentials(error: &StoreError) -> bool {
    let text = error.to_string();
    CREDENTIAL_HOSTS.iter().any(|host| text.contains(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lasting_refusals_are_told_from_faults_that_pass() {
        let names = StoreNames {
            directory: None,
            place: "'s3://bucket'".to_owned(),
            is_instance: false,
            denied: "check the credentials",
        };
        for (code, kind) in [
            ("InvalidAccessKeyId", ErrorKind::Denied),
            ("RequestTimeTooSkewed", ErrorKind::Denied),
            ("NoSuchBucket", ErrorKind::NoStore),
            ("PermanentRedirect", ErrorKind::NoStore),
            ("SlowDown", ErrorKind::Unavailable),
            ("InternalError", ErrorKind::Unavailable),
        ] {
            let body = format!("<Error><Code>{code}</Code><Message>The\nreason</Message></Error>");
            let error = StoreError::Generic {
                store: "S3",
                source: body.into(),
            };
            let failed = names.failed(&error, "upkeep/");
            assert_eq!(failed.kind(), kind, "{code}");
            assert!(
                failed.to_string().contains(&format!("{code}: Thereason")),
                "{failed}"
            );
        }
    }
}

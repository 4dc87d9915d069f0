//! The routes of requests.

use crate::names::{RepositoryName, percent_decoded};
use crate::{Error, ErrorKind, Result};

/// A requested Git service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestedService {
    /// A fetch: `git-upload-pack`.
    UploadPack,
    /// A push: `git-receive-pack`.
    ReceivePack,
    /// An archive of a tree: `git-upload-archive`.
    UploadArchive,
}

impl RequestedService {
    /// Returns the service with this name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "git-upload-pack" => Some(RequestedService::UploadPack),
            "git-receive-pack" => Some(RequestedService::ReceivePack),
            "git-upload-archive" => Some(RequestedService::UploadArchive),
            _ => None,
        }
    }

    /// Returns the name of the service in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            RequestedService::UploadPack => "git-upload-pack",
            RequestedService::ReceivePack => "git-receive-pack",
            RequestedService::UploadArchive => "git-upload-archive",
        }
    }
}

/// The service and the repository of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestTarget {
    /// The service.
    pub service: RequestedService,
    /// The repository.
    pub name: RepositoryName,
}

/// The target of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// The health check of the server: `/healthz`.
    Health,
    /// The metrics: `/metrics`.
    Metrics,
    /// A call of the JSON API, with the path components after `/api/v1/`.
    Api(Vec<String>),
    /// The advertisement of a service: `/NAME/info/refs?service=...`.
    Advertise(RepositoryName, RequestedService),
    /// The bundle of a repository with this file name.
    Bundle(RepositoryName, String),
    /// A request to a service.
    Call(RepositoryName, RequestedService),
}

/// The error message for clients of the dumb protocol.
const DUMB: &str = "this server only speaks Git's smart HTTP protocol";

/// Parses the path and the query of a URL.
///
/// # Errors
/// Fails if the URL is malformed, is not a URL of this server, or belongs to the dumb protocol.
pub fn parse(path: &str, query: Option<&str>) -> Result<Route> {
    match path {
        "/healthz" => return Ok(Route::Health),
        "/metrics" => return Ok(Route::Metrics),
        _ => {}
    }
    let malformed = || Error::new(ErrorKind::Malformed, "malformed URL");
    let path = percent_decoded(path).ok_or_else(malformed)?;
    let path = path.strip_prefix('/').ok_or_else(malformed)?;
    if let Some(rest) = path.strip_prefix("api/v1/") {
        return Ok(Route::Api(rest.split('/').map(str::to_owned).collect()));
    }
    if let Some(name) = path.strip_suffix("/info/refs") {
        let name = RepositoryName::parse(name)?;
        return match service_asked(query)? {
            Some(service) => Ok(Route::Advertise(name, service)),
            None => Err(Error::new(ErrorKind::Unsupported, DUMB)),
        };
    }
    if let Some((name, service)) = path.rsplit_once('/')
        && let Some(service) = RequestedService::named(service)
    {
        return Ok(Route::Call(RepositoryName::parse(name)?, service));
    }
    if let Some((directory, file)) = path.rsplit_once('/')
        && let Some(name) = directory.strip_suffix("/bundle")
        && file.ends_with(".bundle")
    {
        return Ok(Route::Bundle(RepositoryName::parse(name)?, file.to_owned()));
    }
    if path.ends_with("/HEAD") || path.contains("/objects/") {
        return Err(Error::new(ErrorKind::Unsupported, DUMB));
    }
    Err(Error::new(
        ErrorKind::NotFound,
        "no repository or page at this URL",
    ))
}

/// Returns the service in a query, or `None` for a query without a service, which clients of the
/// dumb protocol send.
fn service_asked(query: Option<&str>) -> Result<Option<RequestedService>> {
    let mut pairs = query.unwrap_or_default().split('&');
    let Some(name) = pairs.find_map(|pair| pair.strip_prefix("service=")) else {
        return Ok(None);
    };
    // Archives are not advertised: clients request the version of the protocol from
    // git-upload-pack.
    let service =
        RequestedService::named(name).filter(|service| *service != RequestedService::UploadArchive);
    let service = service.ok_or_else(|| {
        let message = "unknown service: use git-upload-pack or git-receive-pack";
        Error::new(ErrorKind::Denied, message)
    })?;
    Ok(Some(service))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_apart() {
        let name = |name| RepositoryName::parse(name).expect("allowed");
        let upload = RequestedService::UploadPack;
        assert_eq!(
            parse("/a/b.git/info/refs", Some("service=git-upload-pack")).expect("known"),
            Route::Advertise(name("a/b"), upload)
        );
        assert_eq!(
            parse("/a%20b/git-receive-pack", None).expect("known"),
            Route::Call(name("a b"), RequestedService::ReceivePack)
        );
        assert_eq!(
            parse("/a/git-upload-archive", None).expect("known"),
            Route::Call(name("a"), RequestedService::UploadArchive)
        );
        assert_eq!(
            parse("/a/b.git/bundle/1-2.bundle", None).expect("known"),
            Route::Bundle(name("a/b"), "1-2.bundle".to_owned())
        );
        assert_eq!(
            parse("/api/v1/users/alice", None).expect("known"),
            Route::Api(vec!["users".to_owned(), "alice".to_owned()])
        );
        let kind = |path, query| parse(path, query).expect_err(path).kind();
        assert_eq!(kind("/a/info/refs", None), ErrorKind::Unsupported);
        assert_eq!(kind("/a/HEAD", None), ErrorKind::Unsupported);
        assert_eq!(kind("/a/info/refs", Some("service=x")), ErrorKind::Denied);
        let archive = Some("service=git-upload-archive");
        assert_eq!(kind("/a/info/refs", archive), ErrorKind::Denied);
        assert_eq!(kind("/a", None), ErrorKind::NotFound);
        for path in ["/%2e%2e/a/git-upload-pack", "/a/.git/git-upload-pack"] {
            assert_eq!(kind(path, None), ErrorKind::InvalidName, "{path}");
        }
        assert_eq!(kind("/a%/git-upload-pack", None), ErrorKind::Malformed);
    }
}

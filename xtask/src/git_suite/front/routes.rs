//! The URLs that Git's tests use, and the response to each.

/// The Git server for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GitServer {
    Main,
    /// The server whose environment sets a committer.
    Custom,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RouteAction {
    /// The response of a Git server to a request for `target`.
    Forward {
        server: GitServer,
        target: String,
    },
    /// The response of the server to a request for this target, changed by the one-time script of
    /// the test if there is one.
    Once(String),
    /// The response of the server to a request for this target, if the client has the credentials
    /// of the test.
    Challenge(String),
    /// The file at this path below `www`.
    File(String),
    /// A redirect with this status to this location.
    Redirect(u16, String),
    /// An error. The path selects its content type and character set.
    Error(String),
    BadGateway,
    /// A successful push without a report about refs.
    NoReport,
}

/// The number of rounds after which the redirect loop ends.
const ROUNDS: usize = 20;

/// Returns the response to a request for `target`.
pub(super) fn action(target: &str) -> RouteAction {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let with_query = |path: &str| match query {
        "" => path.to_owned(),
        query => format!("{path}?{query}"),
    };
    let (first, rest) = path
        .trim_start_matches('/')
        .split_once('/')
        .unwrap_or((path, ""));
    let smart = with_query(&format!("/smart/{rest}"));
    match first {
        "smart" if rest == "no_report/git-receive-pack" => RouteAction::NoReport,
        "smart_custom_env" => RouteAction::Forward {
            server: GitServer::Custom,
            target: target.to_owned(),
        },
        "one_time_script" => RouteAction::Once(smart),
        "custom_auth" => RouteAction::Challenge(smart),
        "error" => RouteAction::Error(rest.to_owned()),
        "error_git_upload_pack" => match path.ends_with("/git-upload-pack") {
            true => RouteAction::Error(String::new()),
            false => main(with_query(&format!("/{rest}"))),
        },
        "dumb-redir" => RouteAction::Redirect(301, with_query(&format!("/dumb/{rest}"))),
        "smart-redir-perm" => RouteAction::Redirect(301, smart),
        "smart-redir-temp" => RouteAction::Redirect(302, smart),
        "ftp-redir" => {
            RouteAction::Redirect(302, with_query(&format!("ftp://localhost:1000/{rest}")))
        }
        "loop-redir" => RouteAction::Redirect(302, with_query(&round(rest))),
        "redir-to" if rest.starts_with("502/") => RouteAction::BadGateway,
        "redir-to" => RouteAction::Redirect(302, with_query(&format!("/{rest}"))),
        "redir-objects" if rest.contains("/objects/") => {
            RouteAction::Redirect(301, with_query(&format!("/dumb/{rest}")))
        }
        "redir-objects" | "dumb" => RouteAction::File(rest.to_owned()),
        _ if path.contains("/smart/") => main(target.to_owned()),
        _ => RouteAction::File(path.trim_start_matches('/').to_owned()),
    }
}

fn main(target: String) -> RouteAction {
    RouteAction::Forward {
        server: GitServer::Main,
        target,
    }
}

/// Returns the next URL of the redirect loop.
fn round(rest: &str) -> String {
    match rest.strip_prefix("x-".repeat(ROUNDS).as_str()) {
        Some(rest) => format!("/{rest}"),
        None => format!("/loop-redir/x-{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_git_go_to_the_server() {
        for target in [
            "/smart/a.git/info/refs?service=git-upload-pack",
            "/auth/smart/a.git/git-receive-pack",
            "/half-auth-complete/smart/a/git-upload-pack",
        ] {
            assert_eq!(action(target), main(target.to_owned()));
        }
        assert_eq!(
            action("/one_time_script/a/git-upload-pack"),
            RouteAction::Once("/smart/a/git-upload-pack".to_owned())
        );
        assert_eq!(
            action("/error_git_upload_pack/smart/a/info/refs?x"),
            main("/smart/a/info/refs?x".to_owned())
        );
    }

    #[test]
    fn other_addresses_are_the_fronts() {
        let file = |path: &str| RouteAction::File(path.to_owned());
        assert_eq!(action("/dumb/a.git/HEAD"), file("a.git/HEAD"));
        assert_eq!(
            action("/auth/dumb/a.git/HEAD"),
            file("auth/dumb/a.git/HEAD")
        );
        assert_eq!(action("/info/refs"), file("info/refs"));
        let redirect = |status, to: &str| RouteAction::Redirect(status, to.to_owned());
        assert_eq!(action("/dumb-redir/a?b"), redirect(301, "/dumb/a?b"));
        assert_eq!(
            action("/redir-objects/a/objects/x"),
            redirect(301, "/dumb/a/objects/x")
        );
        assert_eq!(action("/loop-redir/a"), redirect(302, "/loop-redir/x-a"));
        let last = format!("/loop-redir/{}a", "x-".repeat(20));
        assert_eq!(action(&last), redirect(302, "/a"));
        assert_eq!(action("/redir-to/502/info/refs"), RouteAction::BadGateway);
    }
}

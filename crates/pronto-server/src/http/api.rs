//! The JSON API for users, tokens and repositories, below `/api/v1/`.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::{Method, Request};
use serde::Deserialize;
use serde_json::{Value, json};

use super::HttpExchange;
use super::reply::HttpResponse;
use crate::keys::UserKey;
use crate::names::RepositoryName;
use crate::permission::{Question, RepositoryAction as Act};
use crate::state::Setup;
use crate::users::{TokenMode, Users};
use crate::{Error, ErrorKind, Result};

/// The largest size in bytes of the body of a call.
pub(crate) const LARGEST_BYTES: usize = 64 * 1024;

/// A parsed call.
#[derive(Debug)]
enum ApiAction {
    ListUsers,
    AddUser(String),
    RemoveUser(String),
    AddToken(String, TokenMode),
    ListKeys(String),
    AddKey(String, UserKey),
    RemoveKey(String, String),
    ListRepositories,
    CreateRepository(RepositoryName),
    RemoveRepository(RepositoryName),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NameBody {
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyBody {
    key: String,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ReplaceQuery {
    replace: bool,
}

/// The result of a call, with its HTTP status.
struct Outcome {
    status: u16,
    value: Value,
}

impl HttpExchange {
    /// Answers a call at `path`, the path components after `/api/v1/`.
    pub(super) async fn api(
        &mut self,
        path: &[String],
        request: Request<Incoming>,
    ) -> Result<HttpResponse> {
        let Some(user) = self.user.clone() else {
            let message =
                "authentication required: use a token as the bearer token or as the password";
            return Err(Error::new(ErrorKind::Unauthenticated, message));
        };
        let method = request.method().clone();
        let body = body_of(request, self.setup.config.limits.head).await?;
        let Some(action) = action(&method, path, &body)? else {
            let message = "unknown API call";
            return Err(Error::new(ErrorKind::NotFound, message));
        };
        let owner = self.setup.owner(Some(&user), self.client.address.ip());
        let slot = (self.setup.admission)
            .slot(&owner, Some(&self.client.connection))
            .await?;
        let setup = Arc::clone(&self.setup);
        let tally = Arc::clone(&self.record.tally);
        let task = tokio::task::spawn_blocking(move || {
            let _slot = slot;
            let _entered = tally.enter();
            act(&setup, &user, action)
        });
        let crashed = |_| Error::new(ErrorKind::Failed, "internal error: the call panicked");
        let outcome = task.await.map_err(crashed)??;
        let text = match outcome.status {
            204 => String::new(),
            _ => format!("{}\n", outcome.value),
        };
        Ok(HttpResponse::text(outcome.status, text).with_type("application/json"))
    }
}

/// Reads the body of a call, which is short and has the timeout of a request head. A body that is
/// present must be JSON.
async fn body_of(request: Request<Incoming>, patience: Duration) -> Result<Vec<u8>> {
    let malformed = |message: &str| Error::new(ErrorKind::Malformed, message);
    let content_type = request.headers().get(CONTENT_TYPE);
    let is_json = content_type.is_some_and(|value| {
        let value = value.as_bytes();
        value.starts_with(b"application/json")
    });
    let body = Limited::new(request.into_body(), LARGEST_BYTES).collect();
    let body = tokio::time::timeout(patience, body)
        .await
        .map_err(|_| malformed("timeout: the request body is incomplete"))?
        .map_err(|_| malformed("the request body is too large or cannot be read"))?
        .to_bytes()
        .to_vec();
    match body.is_empty() || is_json {
        true => Ok(body),
        false => Err(malformed(
            "the content type of the request must be application/json",
        )),
    }
}

/// Parses a call. Returns `None` if no call has this method and path.
fn action(method: &Method, path: &[String], body: &[u8]) -> Result<Option<ApiAction>> {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    Ok(match (method.as_str(), path.as_slice()) {
        ("GET", ["users"]) => Some(ApiAction::ListUsers),
        ("POST", ["users"]) => Some(ApiAction::AddUser(parse::<NameBody>(body)?.name)),
        ("DELETE", ["users", name]) => Some(ApiAction::RemoveUser((*name).to_owned())),
        ("POST", ["users", name, "tokens"]) => {
            let replacing = match body.is_empty() {
                true => ReplaceQuery::default(),
                false => parse(body)?,
            };
            let mode = match replacing.replace {
                true => TokenMode::Replace,
                false => TokenMode::Add,
            };
            Some(ApiAction::AddToken((*name).to_owned(), mode))
        }
        ("GET", ["users", name, "keys"]) => Some(ApiAction::ListKeys((*name).to_owned())),
        ("POST", ["users", name, "keys"]) => {
            let key = UserKey::parse(&parse::<KeyBody>(body)?.key)?;
            Some(ApiAction::AddKey((*name).to_owned(), key))
        }
        // A fingerprint may contain slashes.
        ("DELETE", ["users", name, "keys", fingerprint @ ..]) if !fingerprint.is_empty() => {
            let fingerprint = fingerprint.join("/");
            Some(ApiAction::RemoveKey((*name).to_owned(), fingerprint))
        }
        ("GET", ["repositories"]) => Some(ApiAction::ListRepositories),
        ("POST", ["repositories"]) => {
            let name = parse::<NameBody>(body)?.name;
            Some(ApiAction::CreateRepository(RepositoryName::parse(&name)?))
        }
        ("DELETE", ["repositories", name @ ..]) if !name.is_empty() => {
            let name = RepositoryName::parse(&name.join("/"))?;
            Some(ApiAction::RemoveRepository(name))
        }
        _ => None,
    })
}

fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T> {
    serde_json::from_slice(body).map_err(|error| {
        let message = format!("invalid request body: {error}");
        Error::new(ErrorKind::Malformed, message)
    })
}

/// The result of a call that returns no data.
const DONE: Outcome = Outcome {
    status: 204,
    value: Value::Null,
};

fn found(value: Value) -> Outcome {
    Outcome { status: 200, value }
}

fn created(value: Value) -> Outcome {
    Outcome { status: 201, value }
}

fn act(setup: &Setup, user: &str, action: ApiAction) -> Result<Outcome> {
    match action {
        ApiAction::ListUsers => {
            check_admin(setup, user)?;
            let users = users(setup)?;
            let listed = users.users.iter().map(|user| {
                json!({
                    "name": user.name,
                    "added": user.added,
                    "tokens": user.tokens.len(),
                    "keys": user.keys.len(),
                })
            });
            Ok(found(json!({"users": listed.collect::<Vec<_>>()})))
        }
        ApiAction::AddUser(name) => {
            check_admin(setup, user)?;
            setup.users.change(|users| users.add(&name))?;
            Ok(created(json!({"name": name})))
        }
        ApiAction::RemoveUser(name) => {
            check_admin(setup, user)?;
            setup.users.change(|users| users.remove(&name))?;
            Ok(DONE)
        }
        ApiAction::AddToken(name, mode) => {
            check_self_or_admin(setup, user, &name)?;
            let token = setup.users.change(|users| users.add_token(&name, mode))?;
            Ok(created(json!({"name": name, "token": token})))
        }
        ApiAction::ListKeys(name) => {
            check_self_or_admin(setup, user, &name)?;
            list_keys(setup, &name)
        }
        ApiAction::AddKey(name, key) => {
            check_self_or_admin(setup, user, &name)?;
            setup.users.change(|users| users.add_key(&name, &key))?;
            Ok(created(
                json!({"name": name, "fingerprint": key.fingerprint()}),
            ))
        }
        ApiAction::RemoveKey(name, fingerprint) => {
            check_self_or_admin(setup, user, &name)?;
            setup
                .users
                .change(|users| users.remove_key(&name, &fingerprint))?;
            Ok(DONE)
        }
        ApiAction::ListRepositories => {
            let mut names = setup.repositories.list()?;
            let access = &setup.config.access;
            names.retain(|name| access.role(Some(user), name).is_some());
            Ok(found(json!({"repositories": names})))
        }
        ApiAction::CreateRepository(name) => {
            setup.may(&managing(user, &name))?;
            setup.create(&name)?;
            Ok(created(json!({"name": name.as_str()})))
        }
        ApiAction::RemoveRepository(name) => {
            setup.may(&managing(user, &name))?;
            setup.repositories.remove(&name)?;
            Ok(DONE)
        }
    }
}

fn managing<'a>(user: &'a str, repository: &'a RepositoryName) -> Question<'a> {
    Question {
        user: Some(user),
        protocol: "http",
        repository,
        action: Act::Manage,
    }
}

fn check_admin(setup: &Setup, user: &str) -> Result<()> {
    match setup.config.access.is_server_admin(user) {
        true => Ok(()),
        false => {
            let message = "only users with the role 'admin' for '**' may manage users";
            Err(Error::new(ErrorKind::Denied, message))
        }
    }
}

/// Checks that `user` manages the tokens and keys of the user `name`, as the same user or as an
/// administrator.
fn check_self_or_admin(setup: &Setup, user: &str, name: &str) -> Result<()> {
    match name == user {
        true => Ok(()),
        false => check_admin(setup, user),
    }
}

fn users(setup: &Setup) -> Result<Users> {
    match setup.users.path() {
        Some(path) => Users::read(path),
        None => Ok(Users::default()),
    }
}

fn list_keys(setup: &Setup, name: &str) -> Result<Outcome> {
    let users = users(setup)?;
    let user = users.users.iter().find(|user| user.name == name);
    let none = || Error::new(ErrorKind::NotFound, format!("no user '{name}'"));
    let mut listed = Vec::new();
    for key in &user.ok_or_else(none)?.keys {
        let key = UserKey::parse(&key.public)?;
        listed.push(json!({
            "fingerprint": key.fingerprint(),
            "kind": key.kind(),
            "comment": key.comment(),
            "key": key.line(),
            "netsync": key.netsync(),
        }));
    }
    Ok(found(json!({"name": name, "keys": listed})))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_apart() {
        let call = |method: &str, path: &str, body: &str| {
            let path: Vec<String> = path.split('/').map(str::to_owned).collect();
            let method = Method::from_bytes(method.as_bytes()).expect("a method");
            action(&method, &path, body.as_bytes())
        };
        let found = call("POST", "users/a/tokens", "{\"replace\":true}").expect("known");
        assert!(
            matches!(found, Some(ApiAction::AddToken(name, TokenMode::Replace)) if name == "a")
        );
        let found = call("DELETE", "repositories/a/b.git", "").expect("known");
        assert!(matches!(found, Some(ApiAction::RemoveRepository(name)) if name.as_str() == "a/b"));
        let found = call("DELETE", "users/a/keys/SHA256:x/y+z", "").expect("known");
        assert!(matches!(found, Some(ApiAction::RemoveKey(_, print)) if print == "SHA256:x/y+z"));
        assert!(call("PUT", "users", "").expect("no error").is_none());
        assert!(call("GET", "nothing", "").expect("no error").is_none());
        for (path, body) in [
            ("users", ""),
            ("users", "{}"),
            ("users", "{\"name\":1}"),
            ("users", "{\"name\":\"a\",\"x\":1}"),
            ("users/a/keys", "{\"key\":\"ssh-dss AAAA\"}"),
            ("repositories", "{\"name\":\"../a\"}"),
        ] {
            call("POST", path, body).expect_err(body);
        }
    }
}

//! Tests of the JSON API.

use crate::stored::{Place, in_both_places};
use crate::support::{Server, Site, status};

in_both_places!(
    users_and_repositories_are_managed,
    users_manage_their_own_keys,
);

const CONFIG: &str = r#"
[[grant]]
repository = "**"
users = ["root"]
role = "admin"
[[grant]]
repository = "team/*"
users = ["alice"]
role = "read"
"#;

fn users_and_repositories_are_managed(place: Place) {
    let site = Site::new(place);
    let (root, alice) = (site.user("root"), site.user("alice"));
    let server = Server::start(&site, site.config(CONFIG));
    let call = |token: &str, method: &str, path: &str, body: &str| {
        let headers =
            format!("authorization: Bearer {token}\r\ncontent-type: application/json\r\n");
        server.request(method, &format!("/api/v1/{path}"), &headers, body)
    };
    let answer = call(&root, "POST", "users", "{\"name\":\"bob\"}");
    assert_eq!(status(&answer), 201, "{answer}");
    assert_eq!(
        status(&call(&root, "POST", "users", "{\"name\":\"bob\"}")),
        409
    );
    assert_eq!(
        status(&call(&alice, "POST", "users", "{\"name\":\"eve\"}")),
        403
    );
    let answer = call(&root, "POST", "users/bob/tokens", "");
    assert_eq!(status(&answer), 201, "{answer}");
    let token = answer.split("\"token\":\"").nth(1).expect("a token");
    let bob = token.split('"').next().expect("an end").to_owned();
    let answer = call(&bob, "GET", "repositories", "");
    assert!(answer.contains("{\"repositories\":[]}"), "{answer}");
    let answer = call(&root, "POST", "repositories", "{\"name\":\"team/new\"}");
    assert_eq!(status(&answer), 201, "{answer}");
    let answer = call(&alice, "GET", "repositories", "");
    assert!(answer.contains("[\"team/a\",\"team/new\"]"), "{answer}");
    assert_eq!(
        status(&call(&alice, "DELETE", "repositories/team/new", "")),
        403
    );
    assert_eq!(
        status(&call(&root, "DELETE", "repositories/team/new", "")),
        204
    );
    assert!(!site.has("team/new"));
    let answer = call(&root, "GET", "users", "");
    assert!(
        answer.contains("\"name\":\"alice\"") && !answer.contains(&alice),
        "{answer}"
    );
    assert_eq!(status(&call(&root, "DELETE", "users/bob", "")), 204);
    assert_eq!(status(&call(&bob, "GET", "repositories", "")), 401);
    let answer = server.request("GET", "/api/v1/users", "", "");
    assert_eq!(status(&answer), 401, "{answer}");
}

fn users_manage_their_own_keys(place: Place) {
    const KEY: &str = "ssh-ed25519 \
        AAAAC3NzaC1lZDI1NTE5AAAAIGx5cH9BBm4i2X1vDlmGl0ZQw7JkQ3q4lq6N2m3b1x2D bob@home";
    let site = Site::new(place);
    let (root, bob, eve) = (site.user("root"), site.user("bob"), site.user("eve"));
    let server = Server::start(&site, site.config(CONFIG));
    let call = |token: &str, method: &str, path: &str, body: &str| {
        let headers =
            format!("authorization: Bearer {token}\r\ncontent-type: application/json\r\n");
        server.request(method, &format!("/api/v1/users/{path}"), &headers, body)
    };
    let body = format!("{{\"key\":\"{KEY}\"}}");
    assert_eq!(status(&call(&eve, "POST", "bob/keys", &body)), 403);
    let answer = call(&bob, "POST", "bob/keys", &body);
    assert_eq!(status(&answer), 201, "{answer}");
    let print = answer.split("\"fingerprint\":\"").nth(1).expect("there");
    let print = print.split('"').next().expect("an end").to_owned();
    assert!(print.starts_with("SHA256:"), "{answer}");
    // A key belongs to one user.
    assert_eq!(status(&call(&eve, "POST", "eve/keys", &body)), 409);
    let broken = "{\"key\":\"ssh-ed25519 AAAA\"}";
    assert_eq!(status(&call(&bob, "POST", "bob/keys", broken)), 400);
    assert_eq!(status(&call(&eve, "GET", "bob/keys", "")), 403);
    let answer = call(&root, "GET", "bob/keys", "");
    assert!(answer.contains(&print) && answer.contains("bob@home"));
    assert_eq!(status(&call(&root, "GET", "nobody/keys", "")), 404);
    let removed = format!("bob/keys/{}", print.replace('+', "%2B"));
    assert_eq!(status(&call(&eve, "DELETE", &removed, "")), 403);
    assert_eq!(status(&call(&bob, "DELETE", &removed, "")), 204);
    assert_eq!(status(&call(&bob, "DELETE", &removed, "")), 404);
    let answer = call(&bob, "GET", "bob/keys", "");
    assert!(answer.contains("\"keys\":[]"), "{answer}");
}

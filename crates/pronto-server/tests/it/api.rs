//! The interface for programs.

use crate::support::{Server, Site, status};

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

#[test]
fn users_and_repositories_are_managed() {
    let site = Site::new();
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
    assert!(!site.path("root/team/new.git").exists());
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

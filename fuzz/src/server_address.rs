//! Fuzzes URLs of the Git server: no repository name leads out of the root or into a repository.

use pronto_server::daemon;
use pronto_server::names::RepositoryName;
use pronto_server::route::{self, Route};

pub(crate) fn run(data: &[u8]) {
    if let Ok(request) = daemon::parse(data) {
        check(&request.name);
    }
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (path, query) = match text.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (text, None),
    };
    if let Ok(Route::Advertise(name, _) | Route::Call(name, _) | Route::Bundle(name, _)) =
        route::parse(path, query)
    {
        check(&name);
    }
}

fn check(name: &RepositoryName) {
    let text = name.as_str();
    let again = RepositoryName::parse(text).expect("a name stays one");
    assert_eq!(&again, name);
    let root = std::path::Path::new("/root");
    let path = root.join(text);
    assert!(path.starts_with(root) && !text.contains('\0'));
    for component in path.components().skip(2) {
        let component = component.as_os_str().to_str().expect("it was text");
        assert!(!component.starts_with('.') && component != ".git");
    }
}

//! Fuzzes the address of a database with generations, which may contain a password: no message
//! shows the password.

use pronto::Environment;
use pronto_store::DatabaseAddress;

const PASSWORD: &str = "pa55w0rd";

pub(crate) fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let environment = Environment::empty("/");
    for url in [
        text.to_owned(),
        format!("postgres://{text}"),
        format!("postgres://a:{PASSWORD}@b/c?{text}"),
    ] {
        let shown = match DatabaseAddress::parse(&url, &environment) {
            Ok(address) => format!("{address:?}"),
            Err(error) => error.to_string(),
        };
        assert!(
            text.contains(PASSWORD) || !shown.contains(PASSWORD),
            "{shown}"
        );
    }
}

//! Fuzzes the configuration of the Git server, and its user file.

use std::path::Path;

use pronto_server::config::ServerConfig;
use pronto_server::users::Users;

pub(crate) fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match ServerConfig::parse(text, Path::new("file"), Path::new("/")) {
        Ok(config) => {
            assert!(config.limits.requests >= 1 && config.limits.requests_per_user >= 1);
            assert!(config.limits.requests_per_user <= config.limits.requests);
            assert!(!config.access.grants.is_empty());
        }
        Err(error) => {
            let line = error
                .message()
                .strip_prefix("file:")
                .expect("it names the file");
            let line: usize = line
                .split(':')
                .next()
                .and_then(|line| line.parse().ok())
                .expect("a line");
            assert!(line >= 1 && line <= 1 + text.bytes().filter(|byte| *byte == b'\n').count());
        }
    }
    let _ = Users::parse(text.as_bytes());
}

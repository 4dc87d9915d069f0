//! Fuzzes the command of a request over SSH, and lines of public keys.

use pronto_server::command::parse;
use pronto_server::keys::UserKey;

pub(crate) fn run(data: &[u8]) {
    if let Ok(target) = parse(data) {
        // The name is a valid repository name in any quoting.
        assert!(pronto_server::names::RepositoryName::parse(target.name.as_str()).is_ok());
        let quoted = format!(
            "{} '{}'",
            target.service.name(),
            target.name.as_str().replace('\'', "'\\''")
        );
        assert_eq!(parse(quoted.as_bytes()).ok(), Some(target));
    }
    if let Ok(line) = std::str::from_utf8(data)
        && let Ok(key) = UserKey::parse(line)
    {
        let again = UserKey::parse(key.line());
        assert_eq!(again.map(|again| again.hash()).ok(), Some(key.hash()));
        assert!(!key.line().contains('\n') && key.fingerprint().starts_with("SHA256:"));
    }
}

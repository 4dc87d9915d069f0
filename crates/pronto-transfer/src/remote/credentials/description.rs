//! The credential descriptions that are exchanged with helpers (`git-credential(1)`).

use bstr::{BStr, BString, ByteSlice};
use pronto_wire::transport::http::HttpSecret;

/// The known fields of a credential. Unknown ones are `None` or empty.
#[derive(Clone, Default)]
pub(super) struct Description {
    pub(super) protocol: BString,
    pub(super) host: BString,
    pub(super) path: BString,
    pub(super) username: Option<BString>,
    pub(super) password: Option<BString>,
    /// The scheme of the header `Authorization`.
    pub(super) authtype: BString,
    pub(super) credential: BString,
    /// Whether a helper supports `authtype` and `credential`.
    pub(super) has_authtype: bool,
    /// Whether a helper supports `state[]`.
    pub(super) has_state: bool,
    pub(super) is_ephemeral: bool,
    pub(super) refresh_token: BString,
    /// The expiry time of the password, in seconds since 1970.
    pub(super) expires: Option<u64>,
    /// The values of `WWW-Authenticate`.
    pub(super) challenges: Vec<BString>,
    /// The `state[]` values of helpers: the ones to send, and the received ones.
    pub(super) states: Vec<BString>,
    pub(super) new_states: Vec<BString>,
    /// Whether the credential is one stage of a multistage authentication (`continue`).
    pub(super) continues: bool,
    pub(super) quits: bool,
}

/// The operation of a helper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HelperOperation {
    Get,
    Store,
    Erase,
}

impl HelperOperation {
    pub(super) fn name(self) -> &'static str {
        match self {
            HelperOperation::Get => "get",
            HelperOperation::Store => "store",
            HelperOperation::Erase => "erase",
        }
    }
}

impl Description {
    /// Returns the input for a helper.
    ///
    /// # Errors
    /// Fails if a value contains a character that a helper could misread. `protects` is
    /// `credential.protectProtocol`.
    pub(super) fn input(
        &self,
        operation: HelperOperation,
        protects: bool,
    ) -> Result<Vec<u8>, String> {
        let is_get = operation == HelperOperation::Get;
        let mut lines = CredentialLines {
            text: Vec::new(),
            protects,
        };
        for (name, is_known) in [("authtype", self.has_authtype), ("state", self.has_state)] {
            if is_get || is_known {
                lines.add("capability[]", name.into())?;
            }
        }
        if is_get || self.has_authtype {
            lines.add_known("authtype", &self.authtype)?;
            lines.add_known("credential", &self.credential)?;
            if self.is_ephemeral {
                lines.add("ephemeral", "1".into())?;
            }
        }
        for (name, value) in [
            ("protocol", &self.protocol),
            ("host", &self.host),
            ("path", &self.path),
        ] {
            lines.add_known(name, value)?;
        }
        for (name, value) in [("username", &self.username), ("password", &self.password)] {
            if let Some(value) = value {
                lines.add(name, value.as_bstr())?;
            }
        }
        lines.add_known("oauth_refresh_token", &self.refresh_token)?;
        if let Some(expires) = self.expires {
            lines.add("password_expiry_utc", expires.to_string().as_str().into())?;
        }
        if operation != HelperOperation::Store {
            for challenge in &self.challenges {
                lines.add("wwwauth[]", challenge.as_bstr())?;
            }
        }
        if is_get || self.has_state {
            for state in &self.states {
                lines.add("state[]", state.as_bstr())?;
            }
        }
        Ok(lines.text)
    }

    /// Parses the output of a helper, and merges it into the description.
    ///
    /// # Errors
    /// Fails if a line is not `NAME=VALUE`.
    pub(super) fn take(&mut self, output: &[u8], now: u64) -> Result<(), String> {
        for line in output.lines().take_while(|line| !line.is_empty()) {
            let Some((name, value)) = line.split_once_str("=") else {
                // The line may be a secret.
                return Err("a credential helper answered with a line without '='".to_owned());
            };
            self.set(name, value.as_bstr());
        }
        if self.expires.is_some_and(|expires| expires < now) {
            self.expires = None;
            self.password = None;
            self.refresh_token.clear();
        }
        Ok(())
    }

    fn set(&mut self, name: &[u8], value: &BStr) {
        let is_true = matches!(
            value.to_ascii_lowercase().as_slice(),
            b"1" | b"true" | b"yes" | b"on"
        );
        match name {
            b"username" => self.username = Some(value.into()),
            b"password" => self.password = Some(value.into()),
            b"authtype" => {
                self.authtype = value.into();
                self.has_authtype = true;
            }
            b"credential" => {
                self.credential = value.into();
                self.has_authtype = true;
            }
            b"ephemeral" => self.is_ephemeral = is_true,
            b"oauth_refresh_token" => self.refresh_token = value.into(),
            b"password_expiry_utc" => {
                self.expires = value.to_str().ok().and_then(|value| value.parse().ok());
            }
            b"state[]" => {
                self.new_states.push(value.into());
                self.has_state = true;
            }
            b"continue" => self.continues = is_true,
            b"quit" => self.quits = is_true,
            b"capability[]" if value == "authtype" => self.has_authtype = true,
            b"capability[]" if value == "state" => self.has_state = true,
            // Helpers cannot change the server of a credential, and may send unknown fields.
            _ => {}
        }
    }

    /// Whether the credential is complete.
    pub(super) fn is_complete(&self) -> bool {
        let has_login = self.username.is_some() && self.password.is_some();
        has_login || !self.credential.is_empty()
    }

    /// Whether a helper ended the operation (`quit`).
    pub(super) fn quits(&self) -> bool {
        self.quits
    }

    /// Whether the credential is one stage of a multistage authentication: the server sends another
    /// challenge, and receives the next stage.
    pub(super) fn continues(&self) -> bool {
        self.continues
    }

    /// Makes the received `state[]` values the ones to send.
    pub(super) fn advance(&mut self) {
        self.states = std::mem::take(&mut self.new_states);
    }

    /// Returns the description for the next stage, without secrets.
    pub(super) fn next_stage(mut self, challenges: &[String]) -> Self {
        self.advance();
        self.password = None;
        self.credential.clear();
        self.continues = false;
        self.challenges = challenges.iter().map(|text| text.as_str().into()).collect();
        self
    }

    /// Returns the secret. A user name and a password are returned only if the server
    /// `takes_passwords`.
    pub(super) fn secret(&self, takes_passwords: bool) -> Option<HttpSecret> {
        if !self.authtype.is_empty() && !self.credential.is_empty() {
            let value = format!("{} {}", self.authtype, self.credential);
            // Other characters are not allowed in a header.
            let is_plain = value
                .bytes()
                .all(|byte| byte == b' ' || byte.is_ascii_graphic());
            return is_plain.then_some(HttpSecret::Header(value));
        }
        let (user, password) = (self.username.clone()?, self.password.clone()?);
        takes_passwords.then_some(HttpSecret::Basic { user, password })
    }

    /// Returns the server for a prompt, with the user name if it is known.
    pub(super) fn shown(&self) -> String {
        let mut text = format!("{}://", self.protocol);
        if let Some(username) = &self.username {
            push_encoded(&mut text, username, b"-._~");
            text.push('@');
        }
        text.push_str(&self.host.to_str_lossy());
        if !self.path.is_empty() {
            text.push('/');
            push_encoded(&mut text, &self.path, b"-._~/");
        }
        text
    }
}

/// Adds `value` percent-encoded, except for letters, digits and `plain`.
fn push_encoded(text: &mut String, value: &[u8], plain: &[u8]) {
    for byte in value {
        match byte.is_ascii_alphanumeric() || plain.contains(byte) {
            true => text.push(char::from(*byte)),
            false => text.push_str(&format!("%{byte:02x}")),
        }
    }
}

/// Lines `NAME=VALUE`.
struct CredentialLines {
    text: Vec<u8>,
    protects: bool,
}

impl CredentialLines {
    /// Adds a value, unless it is empty.
    fn add_known(&mut self, name: &str, value: &BString) -> Result<(), String> {
        match value.is_empty() {
            true => Ok(()),
            false => self.add(name, value.as_bstr()),
        }
    }

    fn add(&mut self, name: &str, value: &BStr) -> Result<(), String> {
        let is_bad = |byte: u8| match byte {
            b'\n' | 0 => true,
            b'\r' => self.protects,
            _ => false,
        };
        if value.bytes().any(is_bad) {
            return Err(format!(
                "the value of '{name}' for a credential helper has a line break"
            ));
        }
        self.text.extend_from_slice(name.as_bytes());
        self.text.push(b'=');
        self.text.extend_from_slice(value);
        self.text.push(b'\n');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described() -> Description {
        Description {
            protocol: "https".into(),
            host: "x".into(),
            challenges: vec!["Basic realm=\"r\"".into()],
            ..Description::default()
        }
    }

    fn input(description: &Description, operation: HelperOperation) -> String {
        let input = description.input(operation, true).expect("plain values");
        String::from_utf8(input).expect("text")
    }

    #[test]
    fn helpers_see_the_other_fields_that_they_know() {
        let mut description = described();
        let both = "capability[]=authtype\ncapability[]=state\n";
        let place = "protocol=https\nhost=x\n";
        let challenge = "wwwauth[]=Basic realm=\"r\"\n";
        let get = input(&description, HelperOperation::Get);
        assert_eq!(get, format!("{both}{place}{challenge}"));
        let output = b"username=me\npassword=p=q\nhost=elsewhere\n";
        description.take(output, 1).expect("lines");
        let store = input(&description, HelperOperation::Store);
        assert_eq!(store, format!("{place}username=me\npassword=p=q\n"));
        let erase = input(&description, HelperOperation::Erase);
        assert!(erase.ends_with(challenge));
        assert!(description.secret(true).is_some() && description.secret(false).is_none());
        // A password may be empty.
        description.take(b"password=\n", 1).expect("lines");
        assert!(description.is_complete() && description.secret(true).is_some());
    }

    #[test]
    fn stages_have_a_state() {
        let mut description = described();
        let output = b"capability[]=authtype\ncapability[]=state\nauthtype=Steps\n\
            credential=one\nstate[]=h:1\ncontinue=1\n";
        description.take(output, 1).expect("lines");
        assert!(description.continues());
        assert!(description.secret(false) == Some(HttpSecret::Header("Steps one".to_owned())));
        let next = description.next_stage(&["Steps 2".to_owned()]);
        assert!(!next.is_complete() && !next.continues());
        let get = input(&next, HelperOperation::Get);
        assert!(get.contains("authtype=Steps\n") && !get.contains("credential="));
        assert!(get.ends_with("wwwauth[]=Steps 2\nstate[]=h:1\n"), "{get}");
    }

    #[test]
    fn passwords_expire() {
        let mut description = described();
        let output = b"username=me\npassword=p\npassword_expiry_utc=5\n";
        description.take(output, 5).expect("lines");
        assert!(description.is_complete());
        description.take(output, 6).expect("lines");
        assert!(!description.is_complete());
    }

    #[test]
    fn values_that_could_be_misread_are_refused() {
        for (value, protects) in [("a\nb", false), ("a\0b", false), ("a\rb", true)] {
            let mut description = described();
            description.username = Some(value.into());
            assert!(description.input(HelperOperation::Get, protects).is_err());
        }
        let mut description = described();
        assert!(description.take(b"nonsense\n", 0).is_err());
        description
            .take(b"authtype=a\ncredential=b\x01\n", 0)
            .expect("lines");
        assert!(description.secret(true).is_none());
        description.username = Some("user@host".into());
        description.path = "a/\x1b[2J".into();
        assert_eq!(description.shown(), "https://user%40host@x/a/%1b%5b2J");
    }
}

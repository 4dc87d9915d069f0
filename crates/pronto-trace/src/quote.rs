//! Quotes arguments for a shell.

/// Appends `text`, quoted for a shell if necessary.
pub(crate) fn pretty(text: &str, out: &mut String) {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"+,-./:=@_^".contains(&byte);
    if text.is_empty() {
        out.push_str("''");
    } else if text.bytes().all(is_plain) {
        out.push_str(text);
    } else {
        out.push('\'');
        for character in text.chars() {
            match character {
                '\'' | '!' => out.extend(['\'', '\\', character, '\'']),
                _ => out.push(character),
            }
        }
        out.push('\'');
    }
}

/// Joins `arguments` with spaces. Each argument is quoted if necessary.
pub(crate) fn arguments<S: AsRef<str>>(arguments: &[S]) -> String {
    let mut out = String::new();
    for (at, argument) in arguments.iter().enumerate() {
        if at > 0 {
            out.push(' ');
        }
        pretty(argument.as_ref(), &mut out);
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_what_a_shell_would_change_is_quoted() {
        let given = ["git", "-c", "a.b=c", "", "a b", "it's!", "x~y"];
        assert_eq!(
            super::arguments(&given),
            r"git -c a.b=c '' 'a b' 'it'\''s'\!'' 'x~y'"
        );
    }
}

//! Quotes words of a shell command line as Git does.

/// Appends `text` in single quotes. Single quotes and exclamation marks are escaped outside of the
/// quotes, so that any shell reads the same bytes back.
pub fn quote_into(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'\'');
    for &byte in text {
        match byte {
            b'\'' | b'!' => out.extend_from_slice(&[b'\'', b'\\', byte, b'\'']),
            _ => out.push(byte),
        }
    }
    out.push(b'\'');
}

/// Appends `text` unchanged if no shell would change it, else quoted like [`quote_into`].
pub fn quote_if_needed_into(text: &[u8], out: &mut Vec<u8>) {
    let harmless = |&byte: &u8| byte.is_ascii_alphanumeric() || b"+,-./:=@_^".contains(&byte);
    if !text.is_empty() && text.iter().all(harmless) {
        out.extend_from_slice(text);
    } else {
        quote_into(text, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_shell_would_change_is_quoted() {
        let mut line = Vec::new();
        for word in ["a.b=c", "", "a b", "it's!", "x~y"] {
            quote_if_needed_into(word.as_bytes(), &mut line);
            line.push(b' ');
        }
        quote_into(b"plain", &mut line);
        assert_eq!(
            String::from_utf8(line).expect("text"),
            r"a.b=c '' 'a b' 'it'\''s'\!'' 'x~y' 'plain'"
        );
    }
}

//! Converts colours of the configuration (`color.*`) to terminal escape sequences.

/// Returns the escape sequence for `[reset] [foreground [background]] [attribute…]`. The sequence
/// is empty for an empty value. Returns `None` for an unknown word.
pub fn parse(value: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(value).ok()?;
    let (mut reset, mut attributes) = (false, 0u32);
    let mut colors: Vec<Color> = Vec::new();
    for word in text.split_ascii_whitespace() {
        if word.eq_ignore_ascii_case("reset") {
            reset = true;
        } else if let Some(color) = parse_color(word) {
            if colors.len() == 2 {
                return None;
            }
            colors.push(color);
        } else {
            attributes |= 1 << parse_attribute(word)?;
        }
    }
    let mut codes: Vec<String> = Vec::new();
    if reset {
        codes.push(String::new());
    }
    codes.extend(
        (0..32)
            .filter(|bit| attributes & (1 << bit) != 0)
            .map(|bit| bit.to_string()),
    );
    codes.extend(
        colors
            .iter()
            .enumerate()
            .filter_map(|(at, color)| color.code(at == 1)),
    );
    if codes.is_empty() {
        return Some(String::new());
    }
    Some(format!("\x1b[{}m", codes.join(";")))
}

#[derive(Clone, Copy)]
enum Color {
    Normal,
    Ansi(u8),
    Palette(u8),
    Rgb(u8, u8, u8),
}

impl Color {
    fn code(self, background: bool) -> Option<String> {
        let offset = if background { 10 } else { 0 };
        match self {
            Color::Normal => None,
            Color::Ansi(code) => Some((code + offset).to_string()),
            Color::Palette(number) => Some(format!("{};5;{number}", 38 + offset)),
            Color::Rgb(red, green, blue) => Some(format!("{};2;{red};{green};{blue}", 38 + offset)),
        }
    }
}

fn parse_color(word: &str) -> Option<Color> {
    if word.eq_ignore_ascii_case("normal") {
        return Some(Color::Normal);
    }
    if let Some(digits) = word.strip_prefix('#') {
        return parse_rgb(digits);
    }
    if word.eq_ignore_ascii_case("default") {
        return Some(Color::Ansi(39));
    }
    let lower = word.to_ascii_lowercase();
    let (base, name) = match lower.strip_prefix("bright") {
        Some(name) => (90, name),
        None => (30, lower.as_str()),
    };
    let names = [
        "black", "red", "green", "yellow", "blue", "magenta", "cyan", "white",
    ];
    if let Some(at) = names.iter().position(|&known| known == name) {
        return Some(Color::Ansi(base + at as u8));
    }
    match word.parse::<i16>().ok()? {
        -1 => Some(Color::Normal),
        number @ 0..8 => Some(Color::Ansi(30 + number as u8)),
        number @ 8..16 => Some(Color::Ansi(82 + number as u8)),
        number @ 16..256 => Some(Color::Palette(number as u8)),
        _ => None,
    }
}

fn parse_rgb(digits: &str) -> Option<Color> {
    let width = match digits.len() {
        3 => 1,
        6 => 2,
        _ => return None,
    };
    let part = |at: usize| {
        let text = digits.get(at * width..(at + 1) * width)?;
        let doubled = if width == 1 {
            text.repeat(2)
        } else {
            text.to_owned()
        };
        u8::from_str_radix(&doubled, 16).ok()
    };
    Some(Color::Rgb(part(0)?, part(1)?, part(2)?))
}

fn parse_attribute(word: &str) -> Option<u32> {
    let (negative, name) = match word.strip_prefix("no") {
        Some(rest) => (true, rest.strip_prefix('-').unwrap_or(rest)),
        None => (false, word),
    };
    let (on, off) = match name {
        "bold" => (1, 22),
        "dim" => (2, 22),
        "italic" => (3, 23),
        "ul" => (4, 24),
        "blink" => (5, 25),
        "reverse" => (7, 27),
        "strike" => (9, 29),
        _ => return None,
    };
    Some(if negative { off } else { on })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn colours_become_escape_sequences() {
        for (value, expected) in [
            ("", ""),
            ("normal", ""),
            ("red", "\x1b[31m"),
            ("bold red blue", "\x1b[1;31;44m"),
            ("reset", "\x1b[m"),
            ("brightgreen no-ul", "\x1b[24;92m"),
            ("254 #ff0ab3", "\x1b[38;5;254;48;2;255;10;179m"),
            ("normal default", "\x1b[49m"),
            ("9", "\x1b[91m"),
        ] {
            assert_eq!(
                parse(value.as_bytes()).as_deref(),
                Some(expected),
                "{value}"
            );
        }
        for value in ["blurple", "red green blue", "256", "#12", "-2"] {
            assert_eq!(parse(value.as_bytes()), None, "{value}");
        }
    }
}

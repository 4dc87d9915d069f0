//! JSON values and their text, for the documents that `--json` requests.
//!
//! A command passes the fields of its document to `Context::print_document`. No code of this module
//! runs without `--json`. `docs/reference/json.md` describes the documents, and
//! `docs/reference/schema` has their schemas.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bstr::{BStr, BString, ByteSlice as _};
use pronto_hash::ObjectId;

/// The version of the documents. A change that breaks readers increments it.
pub(crate) const VERSION: u64 = 1;

/// The name and the value of a field of an object.
pub(crate) type JsonField = (&'static str, Json);

/// A JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Json {
    /// The value for something that does not exist.
    Null,
    /// A truth value.
    Bool(bool),
    /// A count, a size or a number of milliseconds.
    Number(u64),
    /// A text.
    Text(String),
    /// Values in their order.
    List(Vec<Json>),
    /// Fields in their order.
    Object(Vec<JsonField>),
}

impl Json {
    /// Creates the value of a path, a ref name or another name: a string, or
    /// `{"base64": "…"}` for bytes that are not UTF-8.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Json {
        match bytes.to_str() {
            Ok(text) => Json::Text(text.to_owned()),
            Err(_) => Json::Object(vec![("base64", Json::Text(STANDARD.encode(bytes)))]),
        }
    }

    /// Creates the value of an object id: its hexadecimal digits, or null for a null id.
    pub(crate) fn of_id(id: &ObjectId) -> Json {
        match id.is_null() {
            true => Json::Null,
            false => Json::Text(id.to_string()),
        }
    }

    /// Creates the value of a list of names.
    pub(crate) fn of_names<'a>(names: impl IntoIterator<Item = &'a BString>) -> Json {
        names.into_iter().map(Json::from).collect()
    }

    /// Appends the text of the value to `out`.
    pub(crate) fn render(&self, out: &mut String) {
        match self {
            Json::Null => out.push_str("null"),
            Json::Bool(true) => out.push_str("true"),
            Json::Bool(false) => out.push_str("false"),
            Json::Number(number) => out.push_str(&number.to_string()),
            Json::Text(text) => render_text(text, out),
            Json::List(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    item.render(out);
                }
                out.push(']');
            }
            Json::Object(fields) => {
                out.push('{');
                for (at, (name, value)) in fields.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    render_text(name, out);
                    out.push(':');
                    value.render(out);
                }
                out.push('}');
            }
        }
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Json::Bool(value)
    }
}

impl From<u64> for Json {
    fn from(value: u64) -> Self {
        Json::Number(value)
    }
}

impl From<usize> for Json {
    fn from(value: usize) -> Self {
        Json::Number(value as u64)
    }
}

impl From<&str> for Json {
    fn from(value: &str) -> Self {
        Json::Text(value.to_owned())
    }
}

impl From<String> for Json {
    fn from(value: String) -> Self {
        Json::Text(value)
    }
}

impl From<&BStr> for Json {
    fn from(value: &BStr) -> Self {
        Json::of_bytes(value)
    }
}

impl From<&BString> for Json {
    fn from(value: &BString) -> Self {
        Json::of_bytes(value)
    }
}

impl From<ObjectId> for Json {
    fn from(value: ObjectId) -> Self {
        Json::of_id(&value)
    }
}

impl<T: Into<Json>> From<Option<T>> for Json {
    fn from(value: Option<T>) -> Self {
        value.map_or(Json::Null, Into::into)
    }
}

impl FromIterator<Json> for Json {
    fn from_iter<I: IntoIterator<Item = Json>>(items: I) -> Self {
        Json::List(items.into_iter().collect())
    }
}

/// Returns the text of a name: a JSON string, or an object for bytes that are not UTF-8.
pub(crate) fn name(bytes: &[u8]) -> String {
    let mut out = String::new();
    Json::of_bytes(bytes).render(&mut out);
    out
}

/// Appends a JSON string to `out`. Control characters are escaped, also those of ISO 8859, which
/// terminals obey.
fn render_text(text: &str, out: &mut String) {
    out.push('"');
    for each in text.chars() {
        match each {
            '"' | '\\' => out.extend(['\\', each]),
            '\n' => out.push_str("\\n"),
            each if each.is_control() => {
                out.push_str(&format!("\\u{:04x}", u32::from(each)));
            }
            each => out.push(each),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &Json) -> String {
        let mut out = String::new();
        value.render(&mut out);
        out
    }

    #[test]
    fn values_are_rendered_in_their_order() {
        let value = Json::Object(vec![
            ("b", Json::List(vec![1_u64.into(), Json::Null])),
            ("a", true.into()),
            ("c", Json::Object(Vec::new())),
            ("d", Json::from(None::<u64>)),
        ]);
        assert_eq!(text(&value), r#"{"b":[1,null],"a":true,"c":{},"d":null}"#);
    }

    #[test]
    fn texts_are_escaped_and_other_bytes_are_base64() {
        let name = Json::of_bytes(b"a\"\\\n\x1b[31m\xc2\x9b\xe2\x82\xac");
        assert_eq!(text(&name), r#""a\"\\\n\u001b[31m\u009b€""#);
        assert_eq!(
            text(&Json::of_bytes(b"caf\xe9")),
            r#"{"base64":"Y2Fm6Q=="}"#
        );
    }

    #[test]
    fn rendered_values_are_read_back() {
        let raw: String = (0..0x250)
            .chain([0x2028, 0xfeff, 0x1_f600])
            .filter_map(char::from_u32)
            .collect();
        let read: String =
            serde_json::from_str(&text(&raw.as_str().into())).expect("it is well formed");
        assert_eq!(read, raw);
    }
}

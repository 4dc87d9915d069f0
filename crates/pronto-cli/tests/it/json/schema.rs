//! Validates documents with the schemas of `docs/reference/schema`: the keywords of JSON Schema that
//! these files use. An unknown keyword is an error.

use std::path::Path;

use serde_json::{Map, Value};

/// The directory of the schemas.
const SCHEMAS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/schema");

/// A schema file.
pub(super) struct Schema {
    root: Value,
}

impl Schema {
    /// Reads the schema `name`.
    pub(super) fn read(name: &str) -> Self {
        let path = Path::new(SCHEMAS).join(format!("{name}.json"));
        let text = std::fs::read_to_string(&path).expect(name);
        Schema {
            root: serde_json::from_str(&text).expect(name),
        }
    }

    /// Fails if `document` does not obey the schema, or has a field that the schema does not describe.
    pub(super) fn validate(&self, document: &Value) {
        let mut problems = Vec::new();
        self.check(&self.root, document, "", &mut problems);
        assert!(problems.is_empty(), "{problems:#?}\n{document:#}");
    }

    fn check(&self, schema: &Value, value: &Value, at: &str, problems: &mut Vec<String>) {
        let rules = schema.as_object().expect("a schema is an object");
        for (keyword, rule) in rules {
            let holds = match keyword.as_str() {
                "$schema" | "$defs" | "title" | "properties" => true,
                "$ref" => {
                    let pointer = rule.as_str().and_then(|it| it.strip_prefix('#'));
                    let target = self.root.pointer(pointer.expect("a local reference"));
                    self.check(target.expect("it is defined"), value, at, problems);
                    true
                }
                "type" => is_of_type(rule, value),
                "const" => rule == value,
                "enum" => rule.as_array().expect("a list").contains(value),
                "minimum" => value
                    .as_i64()
                    .is_none_or(|number| Some(number) >= rule.as_i64()),
                "required" => {
                    let names = rule.as_array().expect("a list");
                    let mut names = names.iter().filter_map(Value::as_str);
                    value
                        .as_object()
                        .is_none_or(|object| names.all(|it| object.contains_key(it)))
                }
                "items" => {
                    for (number, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.check(rule, item, &format!("{at}/{number}"), problems);
                    }
                    true
                }
                "anyOf" => rule.as_array().expect("a list").iter().any(|one| {
                    let mut found = Vec::new();
                    self.check(one, value, at, &mut found);
                    found.is_empty()
                }),
                _ => panic!("unknown keyword {keyword}"),
            };
            if !holds {
                problems.push(format!("{at}: {keyword} {rule}: {value}"));
            }
        }
        if let (Some(properties), Some(object)) = (rules.get("properties"), value.as_object()) {
            let properties = properties.as_object().expect("an object");
            self.check_fields(properties, object, at, problems);
        }
    }

    fn check_fields(
        &self,
        properties: &Map<String, Value>,
        object: &Map<String, Value>,
        at: &str,
        problems: &mut Vec<String>,
    ) {
        for (name, field) in object {
            let at = format!("{at}/{name}");
            match properties.get(name) {
                Some(schema) => self.check(schema, field, &at, problems),
                None => problems.push(format!("{at} is not described")),
            }
        }
    }
}

fn is_of_type(rule: &Value, value: &Value) -> bool {
    let is = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => panic!("unknown type {name}"),
    };
    match rule {
        Value::String(name) => is(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(is),
        _ => panic!("unknown type {rule}"),
    }
}

#[test]
fn wrong_documents_are_found() {
    let schema = Schema::read("serve-user-list");
    let good = serde_json::json!({
        "version": 1,
        "command": "serve user list",
        "users": [{"name": "a", "added": null, "tokens": 0, "keys": 1}],
    });
    schema.validate(&good);
    for (pointer, wrong) in [
        ("/version", serde_json::json!(2)),
        ("/users/0/tokens", serde_json::json!(-1)),
        ("/users/0/name", Value::Null),
        ("/users/0", serde_json::json!({})),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).expect("it exists") = wrong;
        let mut problems = Vec::new();
        schema.check(&schema.root, &bad, "", &mut problems);
        assert!(!problems.is_empty(), "{pointer}");
    }
}

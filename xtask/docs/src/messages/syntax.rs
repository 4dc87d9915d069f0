//! Finds messages in the syntax of a file.

use std::collections::BTreeMap;
use std::ops::Range;

use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, File, Item, Lit, Local, Pat, Token};

/// The text in place of a parameter without a name.
const ARGUMENT: &str = "<…>";

/// A message with its kind and its advice.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MessageRow {
    pub(super) text: String,
    pub(super) kind: String,
    pub(super) hints: Vec<String>,
}

/// A function or closure that makes an error of its only argument.
#[derive(Clone)]
struct ErrorMaker {
    kind: String,
    /// The message, with `<…>` for the argument; empty if the argument is the message.
    template: String,
}

/// The messages of a part of the source.
#[derive(Default)]
pub(super) struct Messages {
    /// The kinds of errors, with the first sentences of their descriptions.
    pub(super) kinds: BTreeMap<String, String>,
    /// Functions and closures that make an error of their only argument.
    makers: BTreeMap<String, ErrorMaker>,
    rows: Vec<MessageRow>,
    /// The expressions of the variables of the current function.
    variables: BTreeMap<String, Vec<Expr>>,
    /// The rows that were made for a variable of the current function.
    errors: BTreeMap<String, Range<usize>>,
}

impl Messages {
    pub(super) fn rows(&self) -> impl Iterator<Item = &MessageRow> {
        self.rows.iter()
    }

    /// Learns the kinds of errors and the functions that make errors.
    pub(super) fn learn(&mut self, file: &File) {
        for item in &file.items {
            match item {
                Item::Enum(item) if item.ident == "ErrorKind" => {
                    for variant in &item.variants {
                        let meaning = description(&variant.attrs);
                        self.kinds.insert(variant.ident.to_string(), meaning);
                    }
                }
                Item::Fn(item) => {
                    let takes_text = item.sig.inputs.len() == 1;
                    let mut inner = Messages::default();
                    inner.visit_block(&item.block);
                    if let (true, Some(maker)) = (takes_text, inner.maker()) {
                        self.makers.insert(item.sig.ident.to_string(), maker);
                    }
                }
                _ => {}
            }
        }
    }

    /// Adds the messages of a file.
    pub(super) fn read(&mut self, file: &File) {
        self.visit_file(file);
        self.rows.retain(|row| !row.text.is_empty());
    }

    /// Returns the only error, if its message is not a literal.
    fn maker(&self) -> Option<ErrorMaker> {
        match self.rows.as_slice() {
            [only] if only.text.is_empty() || only.text.contains(ARGUMENT) => Some(ErrorMaker {
                kind: only.kind.clone(),
                template: only.text.clone(),
            }),
            _ => None,
        }
    }

    /// Adds a row for each text that `message` can be; a row without a text if none is known.
    fn add(&mut self, message: &Expr, kind: &str) {
        let mut texts = self.texts(message, None);
        if texts.is_empty() {
            texts.push(String::new());
        }
        for text in texts {
            self.rows.push(MessageRow {
                text,
                kind: kind.to_owned(),
                hints: Vec::new(),
            });
        }
    }

    /// Returns the texts that an expression can be, or the element `at` of the tuples that it can be.
    fn texts(&self, expression: &Expr, at: Option<usize>) -> Vec<String> {
        match expression {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) if at.is_none() => vec![text.value()],
                _ => Vec::new(),
            },
            Expr::Macro(call) if call.mac.path.is_ident("format") => {
                format_text(call).into_iter().collect()
            }
            Expr::Tuple(tuple) => match at.and_then(|at| tuple.elems.get(at)) {
                Some(element) => self.texts(element, None),
                None => Vec::new(),
            },
            Expr::Match(matched) => {
                let arms = matched.arms.iter();
                arms.flat_map(|arm| self.texts(&arm.body, at)).collect()
            }
            Expr::If(choice) => {
                let mut texts = self.last(&choice.then_branch, at);
                if let Some((_, other)) = &choice.else_branch {
                    texts.extend(self.texts(other, at));
                }
                texts
            }
            Expr::Block(block) => self.last(&block.block, at),
            Expr::Reference(inner) => self.texts(&inner.expr, at),
            Expr::Paren(inner) => self.texts(&inner.expr, at),
            Expr::MethodCall(call) => self.texts(&call.receiver, at),
            Expr::Call(call) if name_of(&call.func) == "Some" => call
                .args
                .first()
                .map_or_else(Vec::new, |inner| self.texts(inner, at)),
            Expr::Path(path) => match path.path.get_ident() {
                Some(name) => {
                    let known = self.variables.get(&name.to_string()).into_iter().flatten();
                    known.flat_map(|known| self.texts(known, None)).collect()
                }
                None => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    fn last(&self, block: &syn::Block, at: Option<usize>) -> Vec<String> {
        match block.stmts.last() {
            Some(syn::Stmt::Expr(last, None)) => self.texts(last, at),
            _ => Vec::new(),
        }
    }

    /// Records the values of the variables of a pattern.
    fn bind(&mut self, pattern: &Pat, value: &Expr) {
        match pattern {
            Pat::Ident(name) => {
                let name = name.ident.to_string();
                self.variables.insert(name, vec![value.clone()]);
            }
            Pat::Type(typed) => self.bind(&typed.pat, value),
            Pat::Tuple(tuple) => {
                for (at, pattern) in tuple.elems.iter().enumerate() {
                    let mut elements = Vec::new();
                    tuple_elements(value, at, &mut elements);
                    if let Pat::Ident(name) = pattern {
                        self.variables.insert(name.ident.to_string(), elements);
                    }
                }
            }
            _ => {}
        }
    }

    /// Returns the kind that an expression names, or that the values of a variable name.
    fn kind(&self, expression: &Expr) -> String {
        let Expr::Path(path) = expression else {
            return String::new();
        };
        if path.path.segments.len() > 1 {
            let last = path.path.segments.last();
            return last.map_or_else(String::new, |last| last.ident.to_string());
        }
        let name = path
            .path
            .get_ident()
            .map(ToString::to_string)
            .unwrap_or_default();
        let values = self.variables.get(&name).map_or(&[][..], Vec::as_slice);
        match values {
            [only] => self.kind(only),
            _ => String::new(),
        }
    }
}

impl<'ast> Visit<'ast> for Messages {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if item.ident != "tests" {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_block(&mut self, block: &'ast syn::Block) {
        // An inner block can hide variables of the outer one.
        let (variables, errors) = (self.variables.clone(), self.errors.clone());
        visit::visit_block(self, block);
        (self.variables, self.errors) = (variables, errors);
    }

    fn visit_local(&mut self, local: &'ast Local) {
        let from = self.rows.len();
        visit::visit_local(self, local);
        let Some(init) = &local.init else { return };
        if let (Pat::Ident(name), Expr::Closure(closure)) = (&local.pat, &*init.expr) {
            let mut inner = Messages::default();
            inner.visit_expr(&closure.body);
            if let Some(maker) = inner.maker() {
                self.makers.insert(name.ident.to_string(), maker);
            }
        }
        if let Pat::Ident(name) = &local.pat {
            self.errors
                .insert(name.ident.to_string(), from..self.rows.len());
        }
        self.bind(&local.pat, &init.expr);
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        let arguments: Vec<&Expr> = call.args.iter().collect();
        match (name_of(&call.func).as_str(), arguments.as_slice()) {
            ("Error::new", [kind, message]) => {
                let kind = self.kind(kind);
                self.add(message, &kind);
            }
            ("CliError::fatal" | "CliError::error", [message]) => self.add(message, "fatal"),
            ("CliError::usage" | "CliError::misuse", [message]) => self.add(message, "usage"),
            (name, [message]) => {
                if let Some(maker) = self.makers.get(name).cloned() {
                    let from = self.rows.len();
                    self.add(message, &maker.kind);
                    for row in self.rows.iter_mut().skip(from) {
                        if !row.text.is_empty() && !maker.template.is_empty() {
                            row.text = maker.template.replace(ARGUMENT, &row.text);
                        }
                    }
                }
            }
            _ => {}
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let from = self.rows.len();
        self.visit_expr(&call.receiver);
        let mut made = from..self.rows.len();
        let arguments: Vec<&Expr> = call.args.iter().collect();
        match (call.method.to_string().as_str(), arguments.as_slice()) {
            ("context", [kind, message, _]) => {
                let kind = self.kind(kind);
                for text in self.texts(message, None) {
                    self.rows.push(MessageRow {
                        text: format!("{text} '<…>': <reason of the system>"),
                        kind: kind.clone(),
                        hints: Vec::new(),
                    });
                }
            }
            ("with_hint", [hint]) => {
                if made.is_empty()
                    && let Expr::Path(path) = &*call.receiver
                    && let Some(name) = path.path.get_ident()
                {
                    made = self.errors.get(&name.to_string()).cloned().unwrap_or(made);
                }
                let hints = self.texts(hint, None);
                for row in self.rows.get_mut(made).into_iter().flatten() {
                    row.hints.extend(hints.iter().cloned());
                }
            }
            _ => {}
        }
        for argument in &call.args {
            self.visit_expr(argument);
        }
    }
}

/// Appends the element `at` of each tuple that an expression can be.
fn tuple_elements(expression: &Expr, at: usize, found: &mut Vec<Expr>) {
    match expression {
        Expr::Tuple(tuple) => found.extend(tuple.elems.get(at).cloned()),
        Expr::Match(matched) => {
            for arm in &matched.arms {
                tuple_elements(&arm.body, at, found);
            }
        }
        Expr::Paren(inner) => tuple_elements(&inner.expr, at, found),
        Expr::Block(block) => {
            if let Some(syn::Stmt::Expr(last, None)) = block.block.stmts.last() {
                tuple_elements(last, at, found);
            }
        }
        _ => {}
    }
}

/// Returns the last two components of a path: `Error::new`.
fn name_of(function: &Expr) -> String {
    let Expr::Path(path) = function else {
        return String::new();
    };
    let segments = path.path.segments.iter();
    let names: Vec<String> = segments.map(|segment| segment.ident.to_string()).collect();
    names[names.len().saturating_sub(2)..].join("::")
}

/// Returns the text of a `format!`.
fn format_text(call: &syn::ExprMacro) -> Option<String> {
    let read = |input: syn::parse::ParseStream<'_>| {
        let text: syn::LitStr = input.parse()?;
        if input.peek(Token![,]) {
            input.parse::<Token![,]>()?;
            Punctuated::<Expr, Token![,]>::parse_terminated(input)?;
        }
        Ok(text.value())
    };
    let text = call.mac.parse_body_with(read).ok()?;
    Some(placeholders(&text))
}

/// Replaces the parameters of a format string.
fn placeholders(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.chars().peekable();
    while let Some(each) = rest.next() {
        match each {
            '{' | '}' if rest.peek() == Some(&each) => {
                rest.next();
                out.push(each);
            }
            '{' => {
                let name: String = rest.by_ref().take_while(|each| *each != '}').collect();
                let name = name.split(':').next().unwrap_or_default();
                let is_number = name.chars().all(|each| each.is_ascii_digit());
                out.push_str(match is_number {
                    true => ARGUMENT,
                    false => "<",
                });
                if !is_number {
                    out.push_str(name);
                    out.push('>');
                }
            }
            _ => out.push(each),
        }
    }
    out
}

/// Returns the first sentence of a doc comment.
fn description(attributes: &[Attribute]) -> String {
    let mut text = String::new();
    for attribute in attributes {
        if let syn::Meta::NameValue(pair) = &attribute.meta
            && pair.path.is_ident("doc")
            && let Expr::Lit(literal) = &pair.value
            && let Lit::Str(line) = &literal.lit
        {
            text.push_str(&line.value());
        }
    }
    let text = text.trim();
    let end = text.find(". ").map_or(text.len(), |end| end + 1);
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(source: &str) -> Vec<(String, String, Vec<String>)> {
        let file = syn::parse_file(source).expect("it is well formed");
        let mut messages = Messages::default();
        messages.learn(&file);
        messages.read(&file);
        let rows = messages.rows.into_iter();
        rows.map(|row| (row.text, row.kind, row.hints)).collect()
    }

    #[test]
    fn messages_are_found_through_variables_and_helpers() {
        let source = r#"
            fn malformed(message: &str) -> Error { Error::new(ErrorKind::Malformed, message) }
            fn f() {
                let message = format!("no user '{name}' at {}", 1);
                let hint = "use another";
                let error = Error::new(ErrorKind::NotFound, message);
                error.with_hint(hint);
                malformed("too long").with_hint("shorten it");
                let (kind, text) = match x { 1 => (ErrorKind::Io, "one"), _ => (ErrorKind::Io, "two") };
                Error::new(kind, text);
                file.context(ErrorKind::Io, "cannot read", path);
            }
            mod tests { fn g() { Error::new(ErrorKind::Io, "of a test"); } }
        "#;
        let found = rows(source);
        let text = |at: usize| {
            (
                found[at].0.as_str(),
                found[at].1.as_str(),
                found[at].2.clone(),
            )
        };
        assert_eq!(
            text(0),
            (
                "no user '<name>' at <…>",
                "NotFound",
                vec!["use another".to_owned()]
            )
        );
        assert_eq!(
            text(1),
            ("too long", "Malformed", vec!["shorten it".to_owned()])
        );
        assert_eq!((text(2).0, text(3).0), ("one", "two"));
        assert_eq!(text(4).0, "cannot read '<…>': <reason of the system>");
        assert_eq!(found.len(), 5);
    }
}

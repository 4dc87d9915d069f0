//! The table of attacks.

mod access;
mod accounts;
mod archives;
mod bombs;
mod bucket;
mod budgets;
mod crowds;
mod hooks;
mod inputs;
mod logs;
mod overload;
mod paths;
mod policies;
mod pushes;
mod refs;
mod roles;
mod secure;
mod shell;
mod slow;
mod smuggling;
mod streams;
mod wants;

use crate::stage::{Stage, Verdict};
use crate::stored::Behind;

/// An attack. Returns the violated conditions.
type Attack = Box<dyn Fn(&mut Stage) -> Verdict + Send + Sync>;

/// A row of the table.
pub(crate) struct Row {
    pub(crate) class: &'static str,
    pub(crate) name: String,
    pub(crate) attack: Attack,
    /// The reason for which the row does not apply to a store.
    pub(crate) not_in_a_store: Option<&'static str>,
    /// Whether the row attacks the bucket, so that it does not run with a directory.
    pub(crate) is_of_a_bucket: bool,
}

impl Row {
    pub(crate) fn full_name(&self) -> String {
        format!("{}/{}", self.class, self.name)
    }
}

/// Collects the rows of one class.
pub(crate) struct Table {
    class: &'static str,
    rows: Vec<Row>,
}

impl Table {
    fn new(class: &'static str) -> Self {
        Table {
            class,
            rows: Vec::new(),
        }
    }

    fn row<A>(&mut self, name: impl Into<String>, attack: A)
    where
        A: Fn(&mut Stage) -> Verdict + Send + Sync + 'static,
    {
        self.rows.push(Row {
            class: self.class,
            name: name.into(),
            attack: Box::new(attack),
            not_in_a_store: None,
            is_of_a_bucket: false,
        });
    }

    /// Adds a row that attacks a bucket. It has no run with a directory.
    fn row_in_a_store<A>(&mut self, name: &str, attack: A)
    where
        A: Fn(&mut Stage, &Behind) -> Verdict + Send + Sync + 'static,
    {
        self.row(name, move |stage| match stage.site.share_behind() {
            Some(behind) => attack(stage, &behind),
            None => Err("there is no bucket".to_owned()),
        });
        if let Some(row) = self.rows.last_mut() {
            row.is_of_a_bucket = true;
        }
    }

    /// Adds a row that attacks repository files in a directory. The reason names the part that a
    /// store lacks.
    fn row_on_disk<A>(&mut self, name: &str, reason: &'static str, attack: A)
    where
        A: Fn(&mut Stage) -> Verdict + Send + Sync + 'static,
    {
        self.row(name, attack);
        if let Some(row) = self.rows.last_mut() {
            row.not_in_a_store = Some(reason);
        }
    }
}

/// Returns all rows.
pub(crate) fn all() -> Vec<Row> {
    let tables = [
        access::table(),
        accounts::table(),
        archives::table(),
        bombs::table(),
        bucket::table(),
        budgets::table(),
        crowds::table(),
        hooks::table(),
        inputs::table(),
        logs::table(),
        overload::table(),
        paths::table(),
        policies::table(),
        pushes::table(),
        refs::table(),
        roles::table(),
        secure::table(),
        shell::table(),
        slow::table(),
        smuggling::table(),
        streams::table(),
        wants::table(),
    ];
    tables.into_iter().flat_map(|table| table.rows).collect()
}

//! The table of attacks.

mod bounds;
mod bundles;
mod clients;
mod credentials;
mod files;
mod local;
mod modules;
mod origins;
mod packs;
mod peers;
mod pushes;
mod redirects;
mod refs;
mod settings;
mod submodules;
mod terminal;
mod trees;

use crate::attack::{Attack, Scene};

/// Prepares the sandbox of a row and returns its attack.
type Arm = Box<dyn Fn(&mut Scene) -> Attack + Send + Sync>;

/// An attack.
pub(crate) struct Row {
    pub(crate) class: &'static str,
    pub(crate) name: String,
    pub(crate) arm: Arm,
    /// The reason why the row cannot run with git.
    pub(crate) only_pronto: Option<&'static str>,
}

/// Collects the rows of one class.
pub(crate) struct Table {
    class: &'static str,
    only_pronto: Option<&'static str>,
    rows: Vec<Row>,
}

impl Table {
    fn new(class: &'static str) -> Self {
        Table {
            class,
            only_pronto: None,
            rows: Vec::new(),
        }
    }

    /// Starts a class without control runs, for a reason.
    fn without_control(class: &'static str, reason: &'static str) -> Self {
        Table {
            only_pronto: Some(reason),
            ..Table::new(class)
        }
    }

    fn row<A>(&mut self, name: impl Into<String>, arm: A)
    where
        A: Fn(&mut Scene) -> Attack + Send + Sync + 'static,
    {
        self.rows.push(Row {
            class: self.class,
            name: name.into(),
            arm: Box::new(arm),
            only_pronto: self.only_pronto,
        });
    }
}

/// Returns all rows.
pub(crate) fn all() -> Vec<Row> {
    let tables = [
        bounds::table(),
        bundles::table(),
        clients::table(),
        credentials::table(),
        files::table(),
        local::table(),
        modules::table(),
        origins::table(),
        packs::table(),
        peers::table(),
        pushes::table(),
        redirects::table(),
        refs::table(),
        settings::table(),
        submodules::table(),
        terminal::table(),
        trees::table(),
    ];
    tables.into_iter().flat_map(|table| table.rows).collect()
}

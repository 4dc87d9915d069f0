//! Cargo's metadata of the workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

/// The members of the workspace, and all packages that they use.
#[derive(Debug, Default)]
pub(crate) struct WorkspaceMetadata {
    /// The members by name, with their direct dependencies.
    pub(crate) members: BTreeMap<String, Dependencies>,
    pub(crate) packages: BTreeSet<String>,
}

/// The direct dependencies of a member, and the manifest that names them.
#[derive(Debug, Default)]
pub(crate) struct Dependencies {
    /// The dependencies of shipped code.
    pub(crate) normal: BTreeSet<String>,
    /// The dependencies of tests.
    pub(crate) development: BTreeSet<String>,
    /// The dependencies of all kinds from outside of the workspace.
    pub(crate) external: BTreeSet<String>,
    pub(crate) manifest: String,
}

impl WorkspaceMetadata {
    pub(crate) fn read(root: &Path) -> Result<Self, String> {
        let output = crate::cargo()
            .args(["metadata", "--format-version=1", "--locked"])
            .current_dir(root)
            .output()
            .map_err(|error| format!("cannot run cargo metadata: {error}"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("cargo metadata failed: {said}"));
        }
        let value: Value = serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("cargo metadata is not JSON: {error}"))?;
        Ok(Self::from_json(&value))
    }

    fn from_json(value: &Value) -> Self {
        let mut metadata = WorkspaceMetadata::default();
        for package in list(&value["packages"]) {
            let name = text(&package["name"]);
            metadata.packages.insert(name.clone());
            if !package["source"].is_null() {
                continue;
            }
            let manifest = text(&package["manifest_path"]);
            let mut dependencies = Dependencies {
                manifest,
                ..Dependencies::default()
            };
            for dependency in list(&package["dependencies"]) {
                let name = text(&dependency["name"]);
                if dependency["kind"].is_null() {
                    dependencies.normal.insert(name.clone());
                }
                if dependency["kind"] == "dev" {
                    dependencies.development.insert(name.clone());
                }
                if dependency["path"].is_null() {
                    dependencies.external.insert(name);
                }
            }
            metadata.members.insert(name, dependencies);
        }
        metadata
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

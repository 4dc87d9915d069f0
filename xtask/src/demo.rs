//! `cargo xtask demo [URL [DIRECTORY]]`: the main job on a real repository, start to end.

use std::path::Path;
use std::process::Command;

/// Builds pronto, clones, shows the status, and lets stock git check the result. Says what went
/// wrong, if anything did.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Vec<String> {
    match demonstrate(root, arguments) {
        Ok(()) => Vec::new(),
        Err(message) => vec![format!("demo: {message}")],
    }
}

fn demonstrate(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let own = format!("file://{}", root.display());
    let url = arguments.first().copied().unwrap_or(&own);
    let made = std::env::temp_dir().join(format!("pronto-demo-{}", std::process::id()));
    let target = arguments.get(1).map_or(made.as_path(), Path::new);
    let pronto = crate::released_pronto(root);
    let pronto = pronto.to_string_lossy();
    let target = target.to_string_lossy();
    step(
        root,
        "cargo",
        &["build", "--release", "--package", "pronto-cli"],
    )?;
    step(root, &pronto, &["clone", url, &target])?;
    step(root, &pronto, &["-C", &target, "status"])?;
    step(root, "git", &["-C", &target, "fsck", "--full", "--strict"])?;
    println!("the clone is in {target}");
    Ok(())
}

/// Shows a command as it would be typed and runs it.
fn step(root: &Path, program: &str, arguments: &[&str]) -> Result<(), String> {
    println!("$ {program} {}", arguments.join(" "));
    let status = Command::new(program)
        .args(arguments)
        .current_dir(root)
        .status();
    let status = status.map_err(|error| format!("cannot run '{program}': {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("'{program}' failed with {status}"))
    }
}

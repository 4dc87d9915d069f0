//! The image for containers: an archive of a directory in the layout of the Open Container
//! Initiative (image-layout, version 1.0.0), which podman, docker, skopeo and containerd load.
//!
//! The first layer is a small Debian with git, because `pronto serve` hands requests that it lacks
//! to git, and hooks need a shell. The second layer has the programs.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::tree::{PackageTree, gzip};
use super::{PackageParts, sha256};

/// A blob of the image, as other parts refer to it.
struct ImageBlob {
    digest: String,
    length: usize,
}

/// Returns the bytes of the image with the layer `base`, an archive of a root directory.
///
/// # Errors
/// Fails if the archive cannot be made.
pub(super) fn build(parts: &PackageParts<'_>, base: &[u8]) -> Result<Vec<u8>, String> {
    let programs = layer(parts)?.to_tar(".", parts.time)?;
    let mut files = PackageTree::default();
    let layers = [base, programs.as_slice()];
    let identities = layers.map(|layer| format!("sha256:{}", sha256(layer)));
    let mut blobs = Vec::new();
    for layer in layers {
        blobs.push(add_blob(&mut files, gzip(layer)?));
    }
    let config = add_json(&mut files, &config(parts, &identities)?)?;
    let layers = blobs
        .iter()
        .map(|blob| descriptor("application/vnd.oci.image.layer.v1.tar+gzip", blob));
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": descriptor("application/vnd.oci.image.config.v1+json", &config),
        "layers": layers.collect::<Vec<_>>(),
    });
    let manifest = add_json(&mut files, &manifest)?;
    let mut entry = descriptor(MANIFEST, &manifest);
    entry["annotations"] = json!({ "org.opencontainers.image.ref.name": parts.version });
    entry["platform"] = json!({ "architecture": parts.platform.image, "os": "linux" });
    let index = json!({ "schemaVersion": 2, "manifests": [entry] });
    files.add("index.json", bytes(&index)?);
    files.add("oci-layout", "{\"imageLayoutVersion\":\"1.0.0\"}");
    files.to_tar(".", parts.time)
}

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// Returns the files of the second layer, in the places of `contrib/Containerfile`.
fn layer(parts: &PackageParts<'_>) -> Result<PackageTree, String> {
    let mut tree = PackageTree::default();
    tree.add_program("usr/local/bin/pronto", parts.pronto.clone());
    tree.add_program("usr/local/bin/pronto-server", parts.server.clone());
    let folder = "usr/local/share/doc/pronto";
    let copyright = parts.read("contrib/packages/copyright")?;
    tree.add(&format!("{folder}/copyright"), copyright);
    let licences = gzip(parts.licences.as_bytes())?;
    tree.add(
        &format!("{folder}/LICENSES-OF-DEPENDENCIES.txt.gz"),
        licences,
    );
    Ok(tree)
}

/// Returns the configuration of the image, as `contrib/Containerfile` sets it.
fn config(parts: &PackageParts<'_>, layers: &[String]) -> Result<Value, String> {
    let seconds = i64::try_from(parts.time).map_err(|error| error.to_string())?;
    let time = Timestamp::from_second(seconds).map_err(|error| error.to_string())?;
    Ok(json!({
        "created": time.to_string(),
        "architecture": parts.platform.image,
        "os": "linux",
        "config": {
            "User": "git",
            "WorkingDir": "/srv/git",
            "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
            "Entrypoint": ["/usr/local/bin/pronto", "serve"],
            "Cmd": ["--listen", "0.0.0.0:8418", "/srv/git"],
            "ExposedPorts": { "8418/tcp": {} },
            "StopSignal": "SIGTERM",
            "Labels": {
                "org.opencontainers.image.title": "pronto",
                "org.opencontainers.image.version": parts.version,
                "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
            },
        },
        "rootfs": { "type": "layers", "diff_ids": layers },
        "history": [
            { "created": time.to_string(), "created_by": "Debian with git" },
            { "created": time.to_string(), "created_by": "pronto" },
        ],
    }))
}

fn descriptor(kind: &str, blob: &ImageBlob) -> Value {
    json!({ "mediaType": kind, "digest": format!("sha256:{}", blob.digest), "size": blob.length })
}

fn add_json(files: &mut PackageTree, value: &Value) -> Result<ImageBlob, String> {
    Ok(add_blob(files, bytes(value)?))
}

fn add_blob(files: &mut PackageTree, content: Vec<u8>) -> ImageBlob {
    let blob = ImageBlob {
        digest: sha256(&content),
        length: content.len(),
    };
    files.add(&format!("blobs/sha256/{}", blob.digest), content);
    blob
}

fn bytes(value: &Value) -> Result<Vec<u8>, String> {
    serde_json::to_vec(value).map_err(|error| error.to_string())
}

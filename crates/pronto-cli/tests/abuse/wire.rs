//! HTTP requests and Git packets, valid or invalid.

/// The null id.
pub(crate) const NULL: &str = "0000000000000000000000000000000000000000";

/// An id that does not exist in any repository.
pub(crate) const MISSING: &str = "1111111111111111111111111111111111111111";

/// The header that requests protocol version 2.
pub(crate) const V2: &str = "git-protocol: version=2\r\n";

/// The names of the services.
pub(crate) const FETCH: &str = "git-upload-pack";
pub(crate) const PUSH: &str = "git-receive-pack";

/// Encodes a packet.
pub(crate) fn packet(payload: impl AsRef<[u8]>) -> Vec<u8> {
    let payload = payload.as_ref();
    let mut bytes = format!("{:04x}", payload.len() + 4).into_bytes();
    bytes.extend_from_slice(payload);
    bytes
}

/// Encodes packets, followed by a flush packet.
pub(crate) fn packets<P: AsRef<[u8]>>(payloads: impl IntoIterator<Item = P>) -> Vec<u8> {
    let mut bytes: Vec<u8> = payloads.into_iter().flat_map(packet).collect();
    bytes.extend_from_slice(b"0000");
    bytes
}

/// Encodes a command request of version 2.
pub(crate) fn command<P: AsRef<[u8]>>(
    name: &str,
    arguments: impl IntoIterator<Item = P>,
) -> Vec<u8> {
    let mut bytes = packet(format!("command={name}\n"));
    bytes.extend(packet("object-format=sha1"));
    bytes.extend_from_slice(b"0001");
    bytes.extend(packets(arguments));
    bytes
}

/// Encodes a fetch request of version 2 for these objects.
pub(crate) fn fetch(wants: &[&str]) -> Vec<u8> {
    let wants = wants.iter().map(|id| format!("want {id}"));
    command("fetch", wants.chain(["done".to_owned()]))
}

/// Encodes a fetch request of versions 0 and 1 for these objects.
pub(crate) fn old_fetch(wants: &[&str]) -> Vec<u8> {
    let mut features = " side-band-64k no-progress";
    let wants = wants.iter().map(|id| {
        let features = std::mem::take(&mut features);
        format!("want {id}{features}\n")
    });
    let mut bytes = packets(wants);
    bytes.extend(packet("done\n"));
    bytes
}

/// Encodes a request to update refs, without a pack.
pub(crate) fn changes<C: AsRef<str>>(commands: impl IntoIterator<Item = C>) -> Vec<u8> {
    changes_with("report-status side-band-64k object-format=sha1", commands)
}

/// Encodes a request to update refs with these capabilities, without a pack.
pub(crate) fn changes_with<C: AsRef<str>>(
    features: &str,
    commands: impl IntoIterator<Item = C>,
) -> Vec<u8> {
    let mut features = Some(features);
    packets(commands.into_iter().map(|command| {
        let command = command.as_ref();
        match features.take() {
            Some(features) => format!("{command}\0 {features}"),
            None => command.to_owned(),
        }
    }))
}

/// Returns the command that creates a ref.
pub(crate) fn create(id: &str, name: &str) -> String {
    format!("{NULL} {id} {name}")
}

/// Returns a pack without objects.
pub(crate) fn no_pack() -> Vec<u8> {
    crate::pack::Pack::new().finish()
}

/// Returns the head of a POST to a service, up to the headers about its body.
pub(crate) fn post_head(repository: &str, service: &str, headers: &str) -> String {
    format!(
        "POST /{repository}/{service} HTTP/1.1\r\nhost: x\r\n\
         content-type: application/x-{service}-request\r\n{headers}"
    )
}

/// Returns a POST to a service.
pub(crate) fn post(repository: &str, service: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = post_head(repository, service, headers);
    let mut bytes = format!("{head}content-length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// Returns a GET request.
pub(crate) fn get(path: &str, headers: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: x\r\n{headers}\r\n")
}

/// Returns the path of a ref advertisement.
pub(crate) fn refs_of(repository: &str, service: &str) -> String {
    format!("/{repository}/info/refs?service={service}")
}

/// Returns a request of `git://`.
pub(crate) fn git_request(path: &str, parameters: &str) -> Vec<u8> {
    packet(format!("git-upload-pack {path}\0host=x\0{parameters}"))
}

/// Returns the content of the side bands of data and messages, or all bytes if there are no side
/// bands.
pub(crate) fn unbanded(bytes: &[u8]) -> Vec<u8> {
    let (mut found, mut rest) = (Vec::new(), bytes);
    while let Some(digits) = rest.get(..4) {
        let digits = std::str::from_utf8(digits).ok();
        let length = digits.and_then(|digits| usize::from_str_radix(digits, 16).ok());
        let length = length.unwrap_or(4).max(4);
        let payload = rest.get(4..length).unwrap_or_default();
        match payload.split_first() {
            Some((1..=3, content)) => found.extend_from_slice(content),
            _ => found.extend_from_slice(payload),
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    found
}

//! Protocol version 2: independent commands.

mod fetch;
mod information;
mod list;

use bstr::{BStr, BString, ByteSlice};
use pronto_wire::pktline;

use super::packed::BundleSource;
use super::promisors;
use super::settings::Settings;
use super::{ClientPacket, ConversationEnd, Options, UploadSession, broken, hung_up};
use crate::remote::connection::from_wire;
use crate::{Repository, Result};

pub use list::{MOST_PREFIX_BYTES, MOST_PREFIXES};

/// A command of protocol version 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FetchCommand {
    List,
    Fetch,
    ObjectInfo,
    BundleUri,
}

impl FetchCommand {
    /// Returns the command `name`, if this server supports it.
    fn find(name: &[u8], settings: &Settings, options: &Options) -> Option<FetchCommand> {
        match name {
            b"ls-refs" => Some(FetchCommand::List),
            b"fetch" => Some(FetchCommand::Fetch),
            b"object-info" if settings.object_info => Some(FetchCommand::ObjectInfo),
            b"bundle-uri" if has_bundles(settings, options) => Some(FetchCommand::BundleUri),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            FetchCommand::List => "ls-refs",
            FetchCommand::Fetch => "fetch",
            FetchCommand::ObjectInfo => "object-info",
            FetchCommand::BundleUri => "bundle-uri",
        }
    }
}

/// The start of a request: the command and the capabilities.
struct Request {
    command: FetchCommand,
    has_arguments: bool,
}

/// Returns the advertisement of capabilities.
pub(super) fn advertisement(
    repository: &Repository,
    options: &Options,
    settings: &Settings,
) -> Result<Vec<u8>> {
    let mut lines: Vec<BString> = vec!["version 2".into()];
    lines.push([b"agent=", options.agent.as_slice()].concat().into());
    let unborn = match advertises_unborn(repository)? {
        true => "ls-refs=unborn",
        false => "ls-refs",
    };
    lines.push(unborn.into());
    let mut fetch = String::from("fetch=shallow wait-for-done");
    for (is_there, word) in [
        (settings.filter, " filter"),
        (settings.ref_in_want, " ref-in-want"),
        (settings.sideband_all, " sideband-all"),
        (settings.packfile_uris, " packfile-uris"),
    ] {
        fetch.push_str(if is_there { word } else { "" });
    }
    lines.push(fetch.into());
    lines.push("server-option".into());
    lines.push(format!("object-format={}", repository.object_hash()).into());
    if let Some(id) = options.session_id.as_ref().filter(|_| settings.session_id) {
        lines.push([b"session-id=", id.as_slice()].concat().into());
    }
    if settings.object_info {
        lines.push("object-info".into());
    }
    let may_have = |source: &dyn BundleSource| source.may_have(repository);
    if settings
        .bundle_uris
        .unwrap_or(options.bundles.as_deref().is_some_and(may_have))
    {
        lines.push("bundle-uri".into());
    }
    if let Some(remotes) = promisors::advertised(repository)? {
        lines.push([b"promisor-remote=", remotes.as_slice()].concat().into());
    }
    let mut out = Vec::new();
    for line in lines {
        pktline::write_parts(&mut out, &[&line, b"\n"]).map_err(from_wire)?;
    }
    pktline::write_flush(&mut out);
    Ok(out)
}

/// Whether the command `bundle-uri` is advertised.
fn has_bundles(settings: &Settings, options: &Options) -> bool {
    settings.bundle_uris.unwrap_or(options.bundles.is_some())
}

/// Returns whether the feature `unborn` of `ls-refs` is supported and advertised (`lsrefs.unborn`).
fn advertises_unborn(repository: &Repository) -> Result<bool> {
    let value = repository.config().string("lsrefs.unborn")?;
    Ok(value.is_none_or(|value| value != "ignore" && value != "allow"))
}

impl UploadSession<'_> {
    /// Serves commands until the client ends the connection.
    pub(super) fn commands(&mut self) -> Result<ConversationEnd> {
        loop {
            self.request_bytes = 0;
            if let Some(budget) = &self.options.budget {
                budget.release();
            }
            let Some(request) = self.request()? else {
                return Ok(ConversationEnd::Served);
            };
            let ended = match request.command {
                FetchCommand::List => self.list(&request)?,
                FetchCommand::Fetch => self.fetch(&request)?,
                FetchCommand::ObjectInfo => self.object_info(&request)?,
                FetchCommand::BundleUri => self.bundle_uris(&request)?,
            };
            if ended != ConversationEnd::Served || self.options.is_stateless {
                return Ok(ended);
            }
        }
    }

    /// Reads the command and the capabilities of the next request; `None` after the last request.
    fn request(&mut self) -> Result<Option<Request>> {
        let mut command = None;
        let mut format = self.repository.object_hash().to_string();
        let ours = format.clone();
        let mut is_empty = true;
        let has_arguments = loop {
            let line = match self.input()? {
                ClientPacket::Text(line) => line,
                ClientPacket::End if is_empty => return Ok(None),
                ClientPacket::End => return Err(hung_up()),
                ClientPacket::Flush if is_empty => return Ok(None),
                ClientPacket::Flush => break false,
                ClientPacket::Delimiter => break true,
                ClientPacket::ResponseEnd => return Err(broken("unexpected response end packet")),
            };
            if is_empty {
                // A client that sends no object format uses SHA-1.
                "sha1".clone_into(&mut format);
                is_empty = false;
            }
            if let Some(name) = line.strip_prefix(b"command=") {
                command = Some(self.command(name.as_bstr(), command)?);
            } else if let Some(named) = line.strip_prefix(b"object-format=") {
                if !matches!(named, b"sha1" | b"sha256") {
                    let message = format!("unknown object format '{}'", named.as_bstr());
                    return Err(broken(message));
                }
                format = named.to_str_lossy().into_owned();
            } else {
                self.capability(line.as_bstr())?;
            }
        };
        let command = command.ok_or_else(|| broken("no command requested"))?;
        if format != ours {
            let message = format!("mismatched object format: server {ours}; client {format}");
            return Err(broken(message));
        }
        Ok(Some(Request {
            command,
            has_arguments,
        }))
    }

    fn command(&self, name: &BStr, before: Option<FetchCommand>) -> Result<FetchCommand> {
        if let Some(before) = before {
            let message = format!(
                "command '{name}' requested after already requesting command '{}'",
                before.name()
            );
            return Err(broken(message));
        }
        let found = FetchCommand::find(name, &self.settings, self.options);
        found.ok_or_else(|| broken(format!("invalid command '{name}'")))
    }

    fn capability(&mut self, line: &BStr) -> Result<()> {
        let (name, value) = match line.split_once_str("=") {
            Some((name, value)) => (name, Some(value)),
            None => (line.as_bytes(), None),
        };
        match name {
            b"agent" | b"server-option" => return Ok(()),
            b"object-format" => {
                return Err(broken("object-format capability requires an argument"));
            }
            b"session-id" if self.settings.session_id => {
                self.record_client_session(value.unwrap_or_default());
                return Ok(());
            }
            b"promisor-remote" if promisors::advertised(self.repository)?.is_some() => {
                // The capability applies to later requests, too.
                self.promisors = promisors::accepted(self.repository, value.unwrap_or_default())?;
                return Ok(());
            }
            _ => {}
        }
        Err(broken(format!("unknown capability '{line}'")))
    }

    /// Returns the next argument of a command; `None` after the last one. `what` is the error
    /// message for a request that does not end with a flush.
    fn argument(&mut self, request: &Request, what: &str) -> Result<Option<Vec<u8>>> {
        if !request.has_arguments {
            return Ok(None);
        }
        match self.input()? {
            ClientPacket::Text(line) => Ok(Some(line)),
            ClientPacket::Flush => Ok(None),
            ClientPacket::End => Err(hung_up()),
            ClientPacket::Delimiter | ClientPacket::ResponseEnd => Err(broken(what)),
        }
    }
}

//! `shell` in the program `pronto-server`.

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;

use bstr::ByteSlice as _;
use pronto::Environment;
use pronto_server::config::ServerConfig;
use pronto_server::service::RequestStreams;
use pronto_server::{Shell, public_message, serve_command};
use rustix::process::Signal;

use super::Args;
use crate::commands::patience::{ClientTimeouts, WatchedStream, watch};
use crate::commands::serve::{native, server_failure};
use crate::{CliError, Context, ExitCode};

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let (config, user) = args.given()?;
    let environment = context.environment()?;
    let is_remote = environment.bytes("SSH_CONNECTION").is_some();
    // Clients must not learn paths of the server. A user who runs the command locally may see them.
    let failure = |error: pronto_server::Error| match is_remote {
        true => CliError::fatal(public_message(&error)),
        false => server_failure(error),
    };
    let config = ServerConfig::read(&environment.absolute(config)).map_err(failure)?;
    let Some(command) = environment
        .bytes("SSH_ORIGINAL_COMMAND")
        .map(<[u8]>::to_vec)
    else {
        return Err(CliError::fatal(format!(
            "you are {user}: this account serves Git repositories and has no shell"
        )));
    };
    let protocol = environment.bytes("GIT_PROTOCOL").map(<[u8]>::to_str);
    let limits = &config.limits;
    let patience = watch(ClientTimeouts {
        silence: limits.stall,
        whole: Some(limits.request),
        signal: Signal::TERM,
    });
    let service = native()?;
    let shell = Shell {
        user,
        address: client(&environment),
        protocol: protocol.and_then(Result::ok).map(str::to_owned),
        environment,
        service: &service,
        interrupt: &context.interrupt,
    };
    let mut input = WatchedStream::new(stream(&io::stdin())?, &patience);
    let mut output = WatchedStream::new(stream(&io::stdout())?, &patience);
    let streams = RequestStreams {
        input: &mut input,
        output: &mut output,
    };
    serve_command(&shell, config, &command, streams).map_err(failure)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the address of the client: the first word of `SSH_CONNECTION`, or the loopback address.
fn client(environment: &Environment) -> IpAddr {
    let said = environment.bytes("SSH_CONNECTION");
    let address = said.and_then(|said| said.fields().next()?.to_str().ok()?.parse().ok());
    address.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

/// Duplicates a standard stream as a file without a buffer.
fn stream(stream: &impl AsFd) -> Result<File, CliError> {
    Ok(stream.as_fd().try_clone_to_owned()?.into())
}

//! Sends the report of a push to the client.

use bstr::ByteSlice;
use pronto_wire::receive::{CommandStatus, RefRewrite, write_report};

use super::{ReceivedPush, RefCommand};
use crate::Result;
use crate::remote::connection::from_wire;

impl ReceivedPush<'_> {
    /// Reports the result of each command, if the client requests that (`report-status`).
    pub(super) fn report(&self, unpack_error: Option<&str>) -> Result<()> {
        if !self.features.report && !self.features.report_v2 {
            return Ok(());
        }
        let replies: Vec<CommandStatus<'_>> = self.commands.iter().map(reply).collect();
        let mut out = Vec::new();
        let is_v2 = self.features.report_v2;
        write_report(&mut out, unpack_error, &replies, is_v2).map_err(from_wire)?;
        self.bands.report(&out)
    }
}

fn reply(command: &RefCommand) -> CommandStatus<'_> {
    let rewrites = command.rewrites.iter().map(|rewritten| RefRewrite {
        name: rewritten.name.as_ref().map(|name| name.as_bstr()),
        old: rewritten.old,
        new: rewritten.new,
        forced: rewritten.forced,
    });
    CommandStatus {
        name: command.name.as_bstr(),
        error: command.error.as_ref().map(|error| error.as_bstr()),
        rewrites: rewrites.collect(),
    }
}

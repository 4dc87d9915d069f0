//! Executes the commands: checks the quarantine, publishes the objects, and updates refs.

use std::collections::HashMap;

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;

use super::checks::Judgement;
use super::{ProcReceiveState, ReceivedPush, RefCommand};
use crate::objects::from_odb;
use crate::refs::{Edit, ExpectedValue, RefChangeKind, RefTarget, RejectedEdit, ResolvedRef};
use crate::{ErrorKind, Result};
use pronto_repository::Notice;

impl ReceivedPush<'_> {
    /// Checks the received objects, runs the hooks, and updates refs.
    pub(super) fn execute(&mut self) -> Result<()> {
        let store = self.repository.objects()?;
        // Existing objects must not be pruned until refs point to them.
        store.begin_writing().map_err(from_odb)?;
        self.check_connected()?;
        self.refuse_hidden();
        self.refuse_forced()?;
        match self.options.landing {
            Some(_) => self.refuse_proc_receive(),
            None => self.schedule_proc_receive(),
        }
        self.quarantine_certificate()?;
        if !self.run_receive_hook("pre-receive")? {
            self.fail_all("pre-receive hook declined");
            return Ok(());
        }
        // The certificate is also for `post-receive`, and is stored with the received objects.
        self.certificate_variables_for("post-receive")?;
        let _turn = self.check_bounds()?;
        if self.commands.iter().all(|command| command.error.is_some()) {
            return Ok(());
        }
        if let Some(quarantine) = self.quarantine.take()
            && let Err(error) = quarantine.publish()
        {
            self.repository.notify(Notice::Failure(from_odb(error)));
            self.fail_all("unable to migrate objects to permanent storage");
            return Ok(());
        }
        self.refuse_inconsistent_aliases()?;
        let head = self.repository.refs().resolve("HEAD");
        // With a broken `HEAD`, no branch is protected.
        self.head = head.ok().flatten().map(|resolved| resolved.name);
        self.run_proc_receive()?;
        self.record_cuts()?;
        match self.features.atomic {
            true => self.change_together()?,
            false => self.change_each()?,
        }
        // The following hooks may prune objects.
        self.repository.objects()?.finish_writing();
        Ok(())
    }

    pub(super) fn fail_all(&mut self, reason: &str) {
        for command in &mut self.commands {
            command.fail(reason);
        }
    }

    fn refuse_hidden(&mut self) {
        let namespace = self.repository.refs().namespace().to_owned();
        let hidden = &self.settings.hidden;
        for command in &mut self.commands {
            let full: BString = [namespace.as_bytes(), command.name.as_bytes()]
                .concat()
                .into();
            if hidden.hides_in(Some(command.name.as_bstr()), full.as_bstr()) {
                command.fail(match command.deletes() {
                    true => "deny deleting a hidden ref",
                    false => "deny updating a hidden ref",
                });
            }
        }
    }

    /// Fails updates that must be fast-forwards by the options and are not, while their objects are
    /// still in the quarantine.
    fn refuse_forced(&mut self) -> Result<()> {
        let options = self.options;
        for at in 0..self.commands.len() {
            let Some(command) = self.commands.get(at).filter(|it| it.is_open()) else {
                continue;
            };
            let Some(reason) = options.fast_forward_only.get(&command.name) else {
                continue;
            };
            if command.creates() || command.deletes() || self.leads_back(command)? {
                continue;
            }
            let text = format!("denying non-fast-forward {}: {reason}", command.name);
            self.bands.error(&text);
            if let Some(command) = self.commands.get_mut(at) {
                command.fail(reason);
            }
            if self.features.atomic {
                self.fail_all("atomic push failure");
            }
        }
        Ok(())
    }

    fn schedule_proc_receive(&mut self) {
        let rules = &self.settings.proc_receive;
        for command in self.commands.iter_mut().filter(|command| command.is_open()) {
            let (creates, deletes) = (command.creates(), command.deletes());
            let name = command.name.as_bstr();
            if rules.iter().any(|rule| rule.takes(name, creates, deletes)) {
                command.proc_receive = ProcReceiveState::Scheduled;
            }
        }
    }

    /// Skips commands for symrefs whose targets are updated, too, and fails both if their values
    /// differ.
    fn refuse_inconsistent_aliases(&mut self) -> Result<()> {
        let names = self.commands.iter().enumerate();
        let by_name: HashMap<BString, usize> = names
            .map(|(at, command)| (command.name.clone(), at))
            .collect();
        for at in 0..self.commands.len() {
            let Some(command) = self.commands.get(at).filter(|it| it.error.is_none()) else {
                continue;
            };
            let full = self.full_name(command.name.as_bstr());
            let found = self.repository.refs().resolve(&full);
            let target = match found {
                Ok(Some(ResolvedRef {
                    name,
                    is_symbolic: true,
                    ..
                })) => name,
                Ok(_) => continue,
                Err(_) => {
                    let text = format!("refusing update to broken symref '{}'", command.name);
                    self.bands.error(&text);
                    if let Some(command) = self.commands.get_mut(at) {
                        command.is_skipped = true;
                        command.fail("broken symref");
                    }
                    continue;
                }
            };
            let namespace = self.repository.refs().namespace();
            let Some(name) = target.strip_prefix(namespace.as_bytes()) else {
                continue;
            };
            if let Some(other) = by_name.get(name.as_bstr()) {
                self.settle_alias(at, *other)?;
            }
        }
        Ok(())
    }

    fn settle_alias(&mut self, alias: usize, target: usize) -> Result<()> {
        let (Some(one), Some(other)) = (self.commands.get(alias), self.commands.get(target)) else {
            return Ok(());
        };
        let is_same = one.old == other.old && one.new == other.new;
        let text = match is_same {
            true => None,
            false => Some(self.disagreement(one, other)?),
        };
        if let Some(command) = self.commands.get_mut(alias) {
            command.is_skipped = true;
        }
        let Some(text) = text else {
            return Ok(());
        };
        self.bands.error(&text);
        for at in [alias, target] {
            if let Some(command) = self.commands.get_mut(at) {
                command.is_skipped = true;
                command.fail("inconsistent aliased update");
            }
        }
        Ok(())
    }

    fn disagreement(&self, one: &RefCommand, other: &RefCommand) -> Result<String> {
        let range = |command: &RefCommand| -> Result<String> {
            let old = self.short(&command.old)?;
            let new = self.short(&command.new)?;
            Ok(format!("{old}..{new}"))
        };
        Ok(format!(
            "refusing inconsistent update between symref '{}' ({}) and its target '{}' ({})",
            one.name,
            range(one)?,
            other.name,
            range(other)?
        ))
    }

    fn short(&self, id: &ObjectId) -> Result<String> {
        self.repository.abbreviate(id)
    }

    pub(super) fn is_for_transaction(&self, at: usize) -> bool {
        let command = self.commands.get(at);
        command.is_some_and(|it| it.is_open() && it.proc_receive == ProcReceiveState::No)
    }

    pub(super) fn fail_transaction(&mut self, error: crate::Error, reason: &str) -> Result<()> {
        if error.kind() == ErrorKind::Interrupted {
            return Err(error);
        }
        self.bands.error(&error.to_string());
        self.fail_all(reason);
        Ok(())
    }

    pub(super) fn note_refusals(&mut self, refusals: &[RejectedEdit]) {
        if refusals.is_empty() {
            return;
        }
        let namespace = self.repository.refs().namespace().to_owned();
        let mut reasons: HashMap<&BStr, &str> = HashMap::new();
        for refusal in refusals {
            self.bands.error(&refusal.error.to_string());
            let name = refusal.name.strip_prefix(namespace.as_bytes());
            let name = name.unwrap_or_default().as_bstr();
            reasons.entry(name).or_insert(refusal.reason.text());
        }
        for command in &mut self.commands {
            if let Some(reason) = reasons.get(command.name.as_bstr()) {
                command.fail(reason);
            }
        }
    }

    /// Checks the command at position `at`. Returns the change if the command is accepted and
    /// changes a ref.
    pub(super) fn edit(&mut self, at: usize) -> Result<Option<Edit>> {
        let Some(command) = self.commands.get(at) else {
            return Ok(None);
        };
        if let Judgement::Refused(reason) = self.judge(command)? {
            if let Some(command) = self.commands.get_mut(at) {
                command.fail(reason);
            }
            return Ok(None);
        }
        let full = self.full_name(command.name.as_bstr());
        let (mut expected, mut did_not_exist) = (expected(command), false);
        if command.deletes() && !self.has_object(&command.old)? {
            expected = ExpectedValue::Anything;
            did_not_exist = self.repository.refs().find(&full)?.is_none();
            self.bands.warning(match did_not_exist {
                true => "deleting a non-existent ref",
                false => "allowing deletion of corrupt ref",
            });
        }
        let edit = Edit {
            name: full,
            change: match command.deletes() {
                true => RefChangeKind::Delete,
                false => RefChangeKind::Set(RefTarget::Object(command.new)),
            },
            expected,
            message: Some(BStr::new("push").to_owned()),
            follow: true,
            create_log: false,
            peeled: None,
            log_from: None,
        };
        if let Some(command) = self.commands.get_mut(at) {
            command.did_not_exist = did_not_exist;
        }
        Ok((!did_not_exist).then_some(edit))
    }
}

fn expected(command: &RefCommand) -> ExpectedValue {
    match command.creates() {
        true => ExpectedValue::Missing,
        false => ExpectedValue::Object(command.old),
    }
}

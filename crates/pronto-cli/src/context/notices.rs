//! The notices of the repositories that a command opens.

use std::sync::Arc;

use pronto::{Notice, NoticeQueue, Repository, Severity};

use super::Context;

impl Context {
    /// Sends the notices of `found` to the queue of this command. [`report`](Self::report) and
    /// [`report_warnings`](Self::report_warnings) print the collected notices.
    pub(crate) fn receive_notices(&self, found: Repository) -> Repository {
        found.with_notices(self.notices())
    }

    /// Returns the queue that receives the notices of this command.
    pub(crate) fn notices(&self) -> Arc<NoticeQueue> {
        Arc::clone(&self.notices)
    }

    /// Prints the collected notices of the repository: errors, then warnings and remarks, then
    /// advice.
    pub fn report(&mut self) {
        if self.repository.is_some() {
            self.report_notices(self.notices.take());
        }
    }

    /// Prints the collected warnings of conversions (filters, `working-tree-encoding`), which Git
    /// prints before the result of a command. Other notices stay in the queue until
    /// [`report`](Self::report).
    pub(crate) fn report_conversions(&mut self) {
        let is_conversion = |notice: &Notice| matches!(notice, Notice::Conversion(_));
        self.report_notices(self.notices.take_where(is_conversion));
    }

    /// Prints the collected notices about the object store, which come before other messages.
    pub(super) fn report_store(&mut self) {
        let notices = self.notices.take_where(Notice::is_of_store);
        if !notices.is_empty() {
            self.report_notices(notices);
        }
    }

    /// Prints the collected warnings and the notices about the object store, for a command that reports
    /// no other notices.
    pub(crate) fn report_warnings(&mut self) {
        self.report_store();
        for warning in self.notices.take_of(Severity::Warning) {
            self.warn(&warning.to_string());
        }
    }

    fn report_notices(&mut self, mut notices: Vec<Notice>) {
        // Remarks and warnings stay in their original order.
        notices.sort_by_key(|notice| match notice.severity() {
            Severity::Remark => Severity::Warning,
            severity => severity,
        });
        for notice in notices {
            let text = notice.to_string();
            if let Some(hint) = notice.hint() {
                self.explain(&hint);
            }
            match notice.severity() {
                Severity::Error => self.report_error(&text),
                Severity::Warning => self.warn(&text),
                Severity::Remark => self.remark(&text),
                Severity::Hint => self.hint(&text),
            }
        }
    }
}

//! The `tracing` subscriber, which receives the events of libraries.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record as Values};
use tracing::subscriber::Interest;
use tracing::{Metadata, Subscriber};

use crate::child::ProcessFields as ChildFields;
use crate::record::{Event, Region};
use crate::thread;
use crate::traces::Traces;

const REGION: &str = "pronto::region";
const DATA: &str = "pronto::data";
const CHILD: &str = "pronto::child";

/// A subscriber without layers, for regions, data and child processes.
#[derive(Debug)]
pub(crate) struct Listener {
    traces: Arc<Traces>,
    spans: Mutex<HashMap<u64, TracedSpan>>,
    issued: AtomicU64,
}

#[derive(Clone, Debug)]
struct TracedSpan {
    region: Region,
    file: &'static str,
    line: u32,
}

impl Listener {
    pub(crate) fn new(traces: Arc<Traces>) -> Self {
        Listener {
            traces,
            spans: Mutex::default(),
            issued: AtomicU64::new(0),
        }
    }

    fn spans(&self) -> MutexGuard<'_, HashMap<u64, TracedSpan>> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn span(&self, id: &Id) -> Option<TracedSpan> {
        self.spans().get(&id.into_u64()).cloned()
    }
}

impl Subscriber for Listener {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.enabled(metadata) {
            Interest::always()
        } else {
            Interest::never()
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        matches!(metadata.target(), REGION | DATA | CHILD)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::INFO)
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let metadata = attributes.metadata();
        let mut fields = EventFields::default();
        attributes.record(&mut fields);
        let id = self.issued.fetch_add(1, Relaxed) + 1;
        let region = Region {
            category: fields.category,
            label: metadata.name(),
            detail: fields.detail,
        };
        let (file, line) = (
            metadata.file().unwrap_or_default(),
            metadata.line().unwrap_or(0),
        );
        self.spans().insert(id, TracedSpan { region, file, line });
        Id::from_u64(id)
    }

    fn record(&self, _span: &Id, _values: &Values<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let metadata = event.metadata();
        let (file, line) = (
            metadata.file().unwrap_or_default(),
            metadata.line().unwrap_or(0),
        );
        if metadata.target() == CHILD {
            let mut fields = ChildFields::default();
            event.record(&mut fields);
            fields.emit(&self.traces, file, line);
        } else {
            let mut fields = EventFields::default();
            event.record(&mut fields);
            let (category, key, value) = (&*fields.category, &*fields.key, &*fields.value);
            let is_json = fields.is_json;
            thread::with(&self.traces, |thread| {
                let event = Event::Data {
                    category,
                    key,
                    value,
                    is_json,
                    within: thread.within(),
                };
                self.traces.emit_as(event, file, line, thread.position());
            });
        }
    }

    fn enter(&self, id: &Id) {
        let Some(TracedSpan { region, file, line }) = self.span(id) else {
            return;
        };
        thread::with(&self.traces, |thread| {
            let event = Event::RegionEnter {
                region: region.clone(),
            };
            self.traces.emit_as(event, file, line, thread.position());
            thread.enter(id.into_u64(), region);
        });
    }

    fn exit(&self, id: &Id) {
        let Some(TracedSpan { file, line, .. }) = self.span(id) else {
            return;
        };
        thread::with(&self.traces, |thread| {
            if let Some((region, lasted)) = thread.leave(id.into_u64()) {
                self.traces.emit_as(
                    Event::RegionLeave { region, lasted },
                    file,
                    line,
                    thread.position(),
                );
            }
        });
    }

    fn try_close(&self, id: Id) -> bool {
        self.spans().remove(&id.into_u64()).is_some()
    }
}

#[derive(Default)]
struct EventFields {
    category: String,
    key: String,
    value: String,
    is_json: bool,
    detail: String,
}

impl Visit for EventFields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let slot = match field.name() {
            "category" => &mut self.category,
            "key" => &mut self.key,
            "value" => &mut self.value,
            "json" => {
                self.is_json = true;
                &mut self.value
            }
            "detail" => &mut self.detail,
            _ => return,
        };
        value.clone_into(slot);
    }
}

//! Progress meters on standard error, in Git's format.
//!
//! Operations increment lock-free counters. A thread, which starts with the first meter, reads the
//! counters ten times a second and redraws the line of the oldest meter. The final state of a
//! finished meter is drawn by that thread, the next meter, a message, or [`Terminal::settle`],
//! depending on which is first.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pronto_io::progress::{Meter, Progress, ProgressMessage};

use crate::terminal::colors::RemoteWords;
use crate::terminal::text::sanitized_but_colours;

mod rate;

pub(crate) use rate::size;

use rate::Throughput;

const TICK: Duration = Duration::from_millis(100);

/// The longest interval between redraws. Git redraws at every percent, and at least once a second.
const REDRAW: Duration = Duration::from_secs(1);

/// The phases that Git shows immediately. All other phases are shown after a delay.
const SHOWN_AT_ONCE: &[&str] = &[
    "Receiving objects",
    "Indexing objects",
    "Resolving deltas",
    "Unpacking objects",
    "Enumerating objects",
    "Counting objects",
    "Compressing objects",
    "Writing objects",
    "Verifying commits in commit graph",
    "Verifying OID order in multi-pack-index",
    "Sorting objects by packfile",
    "Verifying object offsets",
];

/// The phases that process files. Their rate in files per second is printed after Git's text.
const OF_FILES: &[&str] = &["Updating files", "Filtering content"];

/// The presentation of progress, and the properties of the terminal.
#[derive(Clone, Copy, Debug)]
pub struct ProgressStyle {
    /// Whether meters are drawn (`--progress`).
    pub meters: bool,
    /// The messages to print.
    pub messages: PrintedMessages,
    /// Whether the terminal supports the escape sequence that clears the rest of a line.
    pub clears: bool,
    /// The delay before a phase is shown (`GIT_PROGRESS_DELAY`).
    pub delay: Duration,
    /// The width of the terminal.
    pub columns: usize,
}

/// The messages that are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrintedMessages {
    /// All messages.
    All,
    /// Only the messages of a server, which are printed even by a quiet command.
    OfRemote,
}

/// A [`Progress`] that draws meters on a terminal. Clones share the state.
#[derive(Clone)]
pub struct Terminal(Arc<Display>);

impl std::fmt::Debug for Terminal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Terminal").field(&self.0.look).finish()
    }
}

struct Display {
    look: ProgressStyle,
    state: Mutex<DisplayState>,
    wake: Condvar,
}

/// A function that reads the colours for a server's lines.
type ReadWords = Box<dyn FnOnce() -> RemoteWords + Send>;

struct DisplayState {
    out: Box<dyn Write + Send>,
    words: RemoteWords,
    /// The function that is called before the first line of a server is shown.
    read_words: Option<ReadWords>,
    lines: VecDeque<ProgressLine>,
    has_thread: bool,
}

struct ProgressLine {
    meter: Meter,
    begun: Instant,
    wait: Duration,
    drawn_at: Option<Instant>,
    percent: Option<u64>,
    counters_len: usize,
    split: bool,
    throughput: Throughput,
}

impl Terminal {
    /// Creates a terminal that draws with `look` on `out`. Lines of a server are not coloured.
    pub fn new(look: ProgressStyle, out: Box<dyn Write + Send>) -> Self {
        Terminal::with_words(look, out, RemoteWords::default)
    }

    /// Does the same as [`new`](Self::new), but colours words in the lines of a server. `read` is
    /// called before the first such line is shown.
    pub(crate) fn with_words(
        look: ProgressStyle,
        out: Box<dyn Write + Send>,
        read: impl FnOnce() -> RemoteWords + Send + 'static,
    ) -> Self {
        let state = DisplayState {
            out,
            words: RemoteWords::default(),
            read_words: Some(Box::new(read)),
            lines: VecDeque::new(),
            has_thread: false,
        };
        Terminal(Arc::new(Display {
            look,
            state: Mutex::new(state),
            wake: Condvar::new(),
        }))
    }

    /// Draws the final state of all finished meters, so that later output appears below them.
    pub fn settle(&self) {
        let mut state = self.0.lock();
        state.tick(&self.0.look, Instant::now());
    }

    fn start_thread(&self, state: &mut DisplayState) {
        if std::mem::replace(&mut state.has_thread, true) {
            return;
        }
        let shared = Arc::downgrade(&self.0);
        let drawing = std::thread::Builder::new()
            .name("progress".into())
            .spawn(move || {
                while let Some(shared) = shared.upgrade() {
                    let state = shared.lock();
                    let (mut state, _) = shared
                        .wake
                        .wait_timeout(state, TICK)
                        .unwrap_or_else(PoisonError::into_inner);
                    state.tick(&shared.look, Instant::now());
                    if state.lines.is_empty() {
                        state.has_thread = false;
                        return;
                    }
                }
            });
        // If the thread does not start, final states are drawn all the same.
        state.has_thread = drawing.is_ok();
    }
}

impl Display {
    fn lock(&self) -> MutexGuard<'_, DisplayState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress for Terminal {
    fn begin(&self, title: &'static str, total: Option<u64>) -> Meter {
        let meter = Meter::new(title, total);
        if self.0.look.meters {
            let now = Instant::now();
            let mut state = self.0.lock();
            state.tick(&self.0.look, now);
            let at_once = SHOWN_AT_ONCE.contains(&title);
            state.lines.push_back(ProgressLine {
                meter: meter.clone(),
                begun: now,
                wait: if at_once {
                    Duration::ZERO
                } else {
                    self.0.look.delay
                },
                drawn_at: None,
                percent: None,
                counters_len: 0,
                split: false,
                throughput: Throughput::new(now, OF_FILES.contains(&title)),
            });
            self.start_thread(&mut state);
        }
        meter
    }

    fn message(&self, message: ProgressMessage<'_>) {
        let prefix = message.prefix();
        let ProgressMessage::Remote {
            line,
            is_overwritten,
        } = message
        else {
            if self.0.look.messages == PrintedMessages::All {
                let mut state = self.0.lock();
                state.tick(&self.0.look, Instant::now());
                let text = message.to_string();
                state.print(&format!("{prefix}{}\n", sanitized_but_colours(&text)));
            }
            return;
        };
        let mut state = self.0.lock();
        state.tick(&self.0.look, Instant::now());
        if let Some(read) = state.read_words.take() {
            state.words = read();
            for complaint in state.words.take_complaints() {
                state.print(&format!("error: {complaint}\n"));
            }
        }
        let clear = match line {
            "" => "",
            _ if self.0.look.clears => "\x1b[K",
            _ => "        ",
        };
        let end = if is_overwritten { '\r' } else { '\n' };
        let text = state.words.paint(line);
        let text = sanitized_but_colours(&text).into_owned();
        state.print(&format!("{prefix}{text}{clear}{end}"));
    }
}

impl DisplayState {
    fn print(&mut self, text: &str) {
        // A closed standard error cannot be reported.
        let _ = self
            .out
            .write_all(text.as_bytes())
            .and_then(|()| self.out.flush());
    }

    /// Draws the meters that are due, and drops finished meters.
    fn tick(&mut self, look: &ProgressStyle, now: Instant) {
        while let Some(line) = self.lines.front_mut() {
            let over = line.meter.is_finished();
            let given_up = !over && line.meter.is_abandoned();
            if let Some(text) = line.draw(look, now, over) {
                self.print(&text);
            }
            if !over && !given_up {
                return;
            }
            let was_drawn = self
                .lines
                .pop_front()
                .is_some_and(|line| line.drawn_at.is_some());
            if given_up && was_drawn {
                self.print("\n");
            }
        }
    }
}

impl ProgressLine {
    /// Returns the text to print if the line must be redrawn.
    fn draw(&mut self, look: &ProgressStyle, now: Instant, over: bool) -> Option<String> {
        let age = now.saturating_duration_since(self.begun);
        if age < self.wait || (over && self.drawn_at.is_none() && self.wait > Duration::ZERO) {
            return None;
        }
        let (done, bytes) = (self.meter.done(), self.meter.bytes());
        self.throughput.record(bytes, done, now, over);
        let percent = match self.meter.total() {
            Some(total) if total > 0 => {
                Some(u64::try_from(u128::from(done) * 100 / u128::from(total)).unwrap_or(u64::MAX))
            }
            _ => None,
        };
        let aged = self
            .drawn_at
            .is_none_or(|drawn| now.duration_since(drawn) >= REDRAW);
        let moved = percent.is_some() && percent != self.percent;
        if !over && (!is_in_foreground() || !(moved || aged && (done > 0 || bytes > 0))) {
            return None;
        }
        self.percent = percent;
        self.drawn_at = Some(now);
        let counters = match (percent, self.meter.total()) {
            (Some(percent), Some(total)) => {
                format!("{percent:3}% ({done}/{total}){}", self.throughput)
            }
            _ => format!("{done}{}", self.throughput),
        };
        Some(self.lay_out(&counters, look, over))
    }

    /// Formats title and counters on one line, or on two lines if the terminal is too narrow.
    fn lay_out(&mut self, counters: &str, look: &ProgressStyle, over: bool) -> String {
        let end = match over {
            true => format!(", {}.\n", self.meter.ending().unwrap_or("done")),
            false => "\r".to_owned(),
        };
        let shrunk = self.counters_len.saturating_sub(counters.len());
        self.counters_len = counters.len();
        let clear = if shrunk > 0 { shrunk + 1 } else { 0 };
        let title = self.meter.title();
        if self.split {
            format!("  {counters}{end:>clear$}")
        } else if !over && look.columns < title.len() + counters.len() + 2 {
            self.split = true;
            let clear = look.columns.saturating_sub(title.len() + 1);
            format!("{title}:{:clear$}\n  {counters}{end}", "")
        } else {
            format!("{title}: {counters}{end:>clear$}")
        }
    }
}

/// Returns whether the process is in the foreground. A background job must not draw over the
/// foreground job.
fn is_in_foreground() -> bool {
    match rustix::termios::tcgetpgrp(rustix::stdio::stderr()) {
        Ok(group) => group == rustix::process::getpgrp(),
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests;

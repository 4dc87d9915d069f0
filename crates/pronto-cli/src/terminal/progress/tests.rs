//! Tests of the drawn lines and their times.

use super::*;

#[derive(Clone, Default)]
struct Recording(Arc<Mutex<Vec<u8>>>);

impl Write for Recording {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0
            .lock()
            .expect("no test panics while it writes")
            .extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Recording {
    fn text(&self) -> String {
        let bytes = self
            .0
            .lock()
            .expect("no test panics while it writes")
            .clone();
        String::from_utf8(bytes).expect("text is drawn")
    }
}

const LOOK: ProgressStyle = ProgressStyle {
    meters: true,
    messages: PrintedMessages::All,
    clears: false,
    delay: Duration::from_secs(1),
    columns: 80,
};

fn terminal(look: ProgressStyle) -> (Terminal, Recording) {
    let recording = Recording::default();
    let terminal = Terminal::new(look, Box::new(recording.clone()));
    // Only the test draws.
    terminal.0.lock().has_thread = true;
    (terminal, recording)
}

fn line(title: &'static str, total: Option<u64>, begun: Instant) -> ProgressLine {
    ProgressLine {
        meter: Meter::new(title, total),
        begun,
        wait: Duration::ZERO,
        drawn_at: None,
        percent: None,
        counters_len: 0,
        split: false,
        throughput: Throughput::new(begun, OF_FILES.contains(&title)),
    }
}

#[test]
fn a_finished_phase_leaves_its_last_line() {
    let (terminal, recording) = terminal(LOOK);
    let meter = terminal.begin("Resolving deltas", Some(3));
    meter.add(3);
    meter.finish();
    terminal.settle();
    assert!(
        recording
            .text()
            .ends_with("Resolving deltas: 100% (3/3), done.\n")
    );
}

#[test]
fn a_short_phase_that_git_delays_is_never_shown() {
    let (terminal, recording) = terminal(LOOK);
    let meter = terminal.begin("Updating files", Some(3));
    meter.add(3);
    meter.finish();
    terminal.settle();
    assert_eq!(recording.text(), "");
}

#[test]
fn the_rate_follows_the_counters() {
    let begun = Instant::now();
    let mut line = line("Receiving objects", Some(1000), begun);
    line.meter.add(420);
    line.meter.add_bytes(1_258_291);
    let text = line.draw(&LOOK, begun + Duration::from_millis(600), false);
    let expected = "Receiving objects:  42% (420/1000), 1.20 MiB | 2.00 MiB/s\r";
    assert_eq!(text.as_deref(), Some(expected));
    assert_eq!(
        line.draw(&LOOK, begun + Duration::from_millis(700), false),
        None
    );
    line.meter.add(580);
    let text = line.draw(&LOOK, begun + Duration::from_secs(1), true);
    let expected = "Receiving objects: 100% (1000/1000), 1.20 MiB | 1.20 MiB/s, done.\n";
    assert_eq!(text.as_deref(), Some(expected));
}

#[test]
fn files_are_shown_with_their_rate_too() {
    let begun = Instant::now();
    let mut line = line("Updating files", Some(1000), begun);
    line.meter.add(420);
    line.meter.add_bytes(1_258_291);
    let text = line.draw(&LOOK, begun + Duration::from_millis(600), false);
    let expected = "Updating files:  42% (420/1000), 1.20 MiB | 2.00 MiB/s | 700 files/s\r";
    assert_eq!(text.as_deref(), Some(expected));
    line.meter.add(580);
    let text = line.draw(&LOOK, begun + Duration::from_secs(1), true);
    let expected =
        "Updating files: 100% (1000/1000), 1.20 MiB | 1.20 MiB/s | 1000 files/s, done.\n";
    assert_eq!(text.as_deref(), Some(expected));
}

#[test]
fn a_narrow_device_gets_two_lines() {
    let begun = Instant::now();
    let mut line = line("Receiving objects", Some(10), begun);
    line.meter.add(1);
    let narrow = ProgressStyle {
        columns: 20,
        ..LOOK
    };
    let first = line.draw(&narrow, begun, false);
    assert_eq!(
        first.as_deref(),
        Some("Receiving objects:  \n   10% (1/10)\r")
    );
    line.meter.add(9);
    let last = line.draw(&narrow, begun, true);
    assert_eq!(last.as_deref(), Some("  100% (10/10), done.\n"));
}

#[test]
fn messages_keep_their_ends_and_clear_the_line() {
    let (plain, recording) = terminal(LOOK);
    plain.message(remote("counting", true));
    plain.message(remote("counted", false));
    plain.message(remote("", false));
    plain.message(ProgressMessage::Step("hello"));
    assert_eq!(
        recording.text(),
        "remote: counting        \rremote: counted        \nremote: \nhello\n"
    );
    let (clearing, recording) = terminal(ProgressStyle {
        clears: true,
        ..LOOK
    });
    clearing.message(remote("counted", false));
    assert_eq!(recording.text(), "remote: counted\x1b[K\n");
}

#[test]
fn a_phase_that_is_given_up_ends_its_line() {
    let (terminal, recording) = terminal(LOOK);
    let meter = terminal.begin("Receiving objects", Some(4));
    meter.add(1);
    terminal.settle();
    drop(meter);
    terminal.settle();
    assert_eq!(recording.text(), "Receiving objects:  25% (1/4)\r\n");
}

#[test]
fn phases_that_overlap_are_drawn_in_order() {
    let (terminal, recording) = terminal(LOOK);
    let first = terminal.begin("Receiving objects", Some(1));
    let second = terminal.begin("Resolving deltas", Some(1));
    second.add(1);
    second.finish();
    terminal.settle();
    assert_eq!(recording.text(), "Receiving objects:   0% (0/1)\r");
    first.add(1);
    first.finish();
    terminal.settle();
    assert_eq!(
        recording.text(),
        "Receiving objects:   0% (0/1)\r\
         Receiving objects: 100% (1/1), done.\nResolving deltas: 100% (1/1), done.\n"
    );
}

#[test]
fn sizes_are_written_in_gits_units() {
    for (bytes, text) in [
        (1, "1 byte"),
        (1024, "1024 bytes"),
        (2048, "2.00 KiB"),
        (1 << 20, "1024.00 KiB"),
        (3 << 30, "3.00 GiB"),
    ] {
        assert_eq!(size(bytes), text);
    }
}

#[test]
fn a_quiet_terminal_prints_messages_of_the_other_side_alone() {
    let (quiet, recording) = terminal(ProgressStyle {
        meters: false,
        messages: PrintedMessages::OfRemote,
        ..LOOK
    });
    quiet.message(ProgressMessage::Step("a remark"));
    quiet.message(remote("a message", false));
    assert_eq!(recording.text(), "remote: a message        \n");
}

/// Returns a line of the remote side.
fn remote(line: &str, is_overwritten: bool) -> ProgressMessage<'_> {
    ProgressMessage::Remote {
        line,
        is_overwritten,
    }
}

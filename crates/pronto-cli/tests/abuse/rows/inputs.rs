//! Rows that are generated from the table of inputs: each input at its bound, above it, far above
//! it, stalled in the middle, and compressed, from each kind of client, with the memory and the
//! time of the server.
//!
//! A row of `docs/serve.md` without an input here is an error, and so is a feature that the server
//! advertises and that no input names.

mod arguments;
mod catalogue;
mod covered;
mod doors;
mod peers;

use std::time::Duration;

use super::{Row, Table};
use crate::document::{Bound, bounds};
use crate::meter::{Cost, Meter};
use crate::stage::{Stage, Verdict, require};
use catalogue::{Input, Known, catalogue};
use doors::{Content, Door, Reply, Right, Who};

/// The variable that runs these rows with a store, too.
const ALL: &str = "PRONTO_TEST_INPUTS";

/// The variable that makes every row print its costs.
const VERBOSE: &str = "PRONTO_TEST_VERBOSE";

/// The basic memory of an accepted request, besides its own data: threads, buffers and the
/// repository.
const BASE_BYTES: u64 = 24 << 20;

/// The basic time of an accepted request.
const BASE_TIME: Duration = Duration::from_secs(1);

pub(super) fn table() -> Table {
    let mut table = Table::new("inputs");
    let is_full = std::env::var_os(ALL).is_some();
    let mut rest = catalogue();
    while let Some(group) = rest.first().map(|input| input.group) {
        let (inputs, others): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|input| input.group == group);
        rest = others;
        let attack = move |stage: &mut Stage| judge(stage, &inputs);
        match is_full {
            true => table.row(group, attack),
            false => table.row_on_disk(group, "PRONTO_TEST_INPUTS=all runs it", attack),
        }
    }
    peers::rows(&mut table);
    let reason = "the table of the document is the same";
    table.row_on_disk("users", "the file of users is the same", users);
    table.row_on_disk("keys-of-a-login", "logins are the same", keys_of_a_login);
    table.row_on_disk("every-bound-has-a-row", reason, |_| every_bound_has_a_row());
    table.row_on_disk("every-feature-has-a-row", reason, |stage| {
        covered::features(stage, &catalogue())
    });
    table
}

/// Requires that each bound of the document belongs to an input or to a named row.
fn every_bound_has_a_row() -> Verdict {
    let inputs = catalogue();
    let of_peers = peers::names();
    let rows: Vec<String> = super::all().iter().map(Row::full_name).collect();
    let bounds = bounds();
    for bound in &bounds {
        let has_input = inputs.iter().any(|input| input.bound == bound.input);
        let by_rows = covered::rows_of(&bound.input);
        let has_input = has_input || of_peers.contains(&bound.input.as_str());
        require(has_input || !by_rows.is_empty(), || {
            format!("no row exceeds the bound '{}'", bound.input)
        })?;
        for row in by_rows {
            require(rows.iter().any(|name| name == row), || {
                format!("there is no row {row}, which covers '{}'", bound.input)
            })?;
        }
    }
    let is_known = |name: &str| bounds.iter().any(|bound| bound.input == name);
    let names = inputs.iter().map(|input| input.bound);
    for name in names
        .chain(covered::names())
        .chain(of_peers.iter().copied())
    {
        require(is_known(name), || {
            format!("docs/serve.md has no bound '{name}'")
        })?;
    }
    peers::every_kind_has_an_input()
}

/// Adds users up to the limit, and then one more.
fn users(stage: &mut Stage) -> Verdict {
    stage.alone();
    let limit = count_of("users")?;
    let file = stage.site.path("pronto-users.toml");
    let mut text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
    let known = text.matches("[[user]]").count();
    for number in known..limit - 1 {
        text.push_str(&format!("\n[[user]]\nname = \"u{number}\"\n"));
    }
    std::fs::write(&file, text).map_err(|error| error.to_string())?;
    let bounds = bounds();
    let bound = bounds.iter().find(|bound| bound.input == "users");
    let bound = bound.ok_or("there is no such bound")?;
    for (name, status) in [("last", 201), ("more", 403), ("again", 403)] {
        let body = format!("{{\"name\": \"{name}\"}}").into_bytes();
        let content = Content::Call("/api/v1/users", body);
        let process = stage.server().id();
        let meter = Meter::begin(process);
        let reply = doors::send(stage, Door::Http, Who::Administrator, &content)?;
        require(reply.status == Some(status), || {
            format!("{name}: {reply:?}")
        })?;
        stays_below(meter.cost(), bound).map_err(|problem| format!("{name}: {problem}"))?;
    }
    Ok(())
}

/// Requires that the costs of a request do not exceed those that the table states for its bound.
fn stays_below(cost: Cost, bound: &Bound) -> Verdict {
    let Cost { bytes, time } = cost;
    let most = bound.memory_bytes.unwrap_or(BASE_BYTES);
    require(bytes <= most, || {
        format!("{} KiB, more than {} KiB", bytes >> 10, most >> 10)
    })?;
    let longest = bound.time.unwrap_or(BASE_TIME);
    require(time <= longest, || {
        format!("{time:?}, more than {longest:?}")
    })
}

/// Offers keys up to the limit of a connection, and then more.
fn keys_of_a_login(stage: &mut Stage) -> Verdict {
    stage.limits("failures_per_minute = 1000");
    if !stage.shell() {
        return Ok(());
    }
    let limit = count_of("refused logins of a connection of SSH")?;
    // The client asks first without a key, which counts.
    for (wrong, is_served) in [(limit - 2, true), (limit - 1, false), (2 * limit, false)] {
        let ssh = stage.ssh().with_wrong_keys(wrong);
        let output = ssh.converse("git-upload-pack 'own/m'", "", b"0000");
        let served = output.stdout.windows(4).any(|word| word == b"refs");
        require(served == is_served, || {
            format!("{wrong} wrong keys: {output:?}")
        })?;
    }
    Ok(())
}

/// Returns the number of a bound.
fn count_of(input: &str) -> Result<usize, String> {
    let bounds = bounds();
    let found = bounds.iter().find(|bound| bound.input == input);
    found
        .map(|bound| bound.count)
        .ok_or_else(|| format!("there is no bound '{input}'"))
}

/// The size of an input relative to its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Amount {
    /// The largest accepted size.
    At,
    /// The smallest refused size.
    Past,
    Far,
}

impl Amount {
    /// Returns the size for this bound. The largest size is the bound times `far`. Returns `None`
    /// if there is no such size.
    fn of(self, limit: usize, far: usize) -> Option<usize> {
        match self {
            Amount::At => Some(limit),
            Amount::Past => Some(limit + 1),
            Amount::Far => (far > 0).then(|| limit.saturating_mul(far)),
        }
    }
}

/// Runs the inputs of a group with one server, and checks the responses.
fn judge(stage: &mut Stage, inputs: &[Input]) -> Verdict {
    let bounds = bounds();
    let doors = prepare(stage, inputs);
    let known = Known::of(stage);
    for input in inputs {
        let bound = bounds.iter().find(|bound| bound.input == input.bound);
        let bound = bound.ok_or_else(|| format!("there is no bound '{}'", input.bound))?;
        exceed(stage, input, bound, &doors)
            .map_err(|problem| format!("{}: {problem}", input.name))?;
    }
    stall(stage, &known, inputs, &bounds)
}

/// Sends an input in all sizes. Refused requests are the first ones, before the server holds memory
/// for accepted requests.
fn exceed(stage: &mut Stage, input: &Input, bound: &Bound, doors: &[Door]) -> Verdict {
    let limit = input.size.unwrap_or(bound.count);
    let known = Known::of(stage);
    for amount in [Amount::Far, Amount::Past, Amount::At] {
        let Some(count) = amount.of(limit, input.far) else {
            continue;
        };
        for who in input.who {
            let usable = doors.iter().filter(|door| input.doors.contains(door));
            for door in usable.filter(|door| door.is_for(*who)) {
                let case = Case {
                    input,
                    amount,
                    who: *who,
                    door: *door,
                };
                case.run(stage, bound, &(input.make)(&known, count))?;
            }
        }
    }
    Ok(())
}

/// Configures the server. Returns the entry points that this machine supports.
fn prepare(stage: &mut Stage, inputs: &[Input]) -> Vec<Door> {
    // An honest client would be measured, too.
    stage.alone();
    stage.limits("stall_seconds = 2\nhead_seconds = 2\nfailures_per_minute = 100000");
    // The inputs of a group have the same limits and settings.
    for input in inputs.iter().take(1) {
        stage.limits(input.limits);
        for repository in ["open/p", "team/a", "own/m"] {
            for (key, value) in input.settings {
                stage.configure(repository, key, value);
            }
        }
    }
    let needs_ssh = inputs.iter().any(|input| input.doors.contains(&Door::Ssh));
    let has_ssh = needs_ssh && stage.shell();
    let doors = Door::ALL.iter().copied();
    doors.filter(|door| *door != Door::Ssh || has_ssh).collect()
}

/// A request with an input of a certain size.
struct Case<'a> {
    input: &'a Input,
    amount: Amount,
    who: Who,
    door: Door,
}

impl Case<'_> {
    fn run(&self, stage: &mut Stage, bound: &Bound, content: &Content) -> Verdict {
        let sent = content.len() as u64;
        let expected = match (content.needs(), self.amount) {
            // What a client may not do is refused before its body is read.
            (Right::Manage, _) if !self.who.may(Right::Manage) => catalogue::NOT_MANAGED,
            (needed, _) if !self.who.may(needed) => catalogue::FORBIDDEN,
            (_, Amount::At) => self.input.at,
            _ => self.input.past,
        };
        let process = stage.server().id();
        let meter = Meter::begin(process);
        let reply = doors::send(stage, self.door, self.who, content);
        let cost = meter.cost();
        let name = || format!("{:?} {:?} {:?}", self.amount, self.who, self.door);
        if std::env::var_os(VERBOSE).is_some() {
            let Cost { bytes, time } = cost;
            let kib = bytes >> 10;
            let input = &self.input.name;
            println!("== {input}: {}: {sent} bytes, {kib} KiB, {time:?}", name());
        }
        let reply = reply.map_err(|problem| format!("{}: {problem}", name()))?;
        require(expected.fits(&reply), || {
            let Reply { status, text } = &reply;
            let text: String = text.chars().take(300).collect();
            format!("{}: {status:?} {text:?}, not {expected:?}", name())
        })?;
        stays_below(cost, bound).map_err(|problem| format!("{}: {problem}", name()))
    }
}

/// Sends the first half of requests at the bound through each entry point, and requires that the
/// server closes the connections.
fn stall(stage: &mut Stage, known: &Known, inputs: &[Input], bounds: &[Bound]) -> Verdict {
    let meter = Meter::begin(stage.server().id());
    let mut all = Vec::new();
    for input in inputs {
        let bound = bounds.iter().find(|bound| bound.input == input.bound);
        let limit = input.size.or(bound.map(|bound| bound.count));
        let who = input.who.iter().rev().find(|who| **who != Who::Keyed);
        let (Some(limit), Some(who)) = (limit, who) else {
            continue;
        };
        for door in input.doors.iter().filter(|door| door.is_for(*who)) {
            let content = (input.make)(known, limit);
            all.extend(doors::begin(stage, *door, *who, &content));
        }
    }
    for one in &mut all {
        one.ends()?;
    }
    stage.measures("requests_under_way", |count| count == 0)?;
    let Cost { time, .. } = meter.cost();
    // Work that was done is bounded by that at the bound; waiting costs nothing.
    let longest = BASE_TIME * (1 + all.len() as u32);
    require(time <= longest, || format!("stalled clients take {time:?}"))
}

//! Tests of complete sessions between repositories in memory: their messages, the number of
//! messages, and their cost.

use pronto_netsync::message::{Globs, ObjectFormat, StoreResult, TransferRole};
use pronto_netsync::repository::RefMatcher;
use pronto_netsync::session::{Options, PeerPermissions, SyncSession};
use pronto_netsync::{Error, ErrorKind};

use crate::memory::Memory;
use test_support::Random;

fn admission(repository: &Memory, role: TransferRole) -> PeerPermissions<Memory> {
    PeerPermissions {
        repository: repository.clone(),
        object_format: ObjectFormat::Sha1,
        role,
        limits: RefMatcher::default(),
    }
}

fn options(nonce: u8) -> Options {
    let mut options = Options::default();
    options.nonce = [nonce; 32];
    options
}

fn pair(one: &Memory, other: &Memory) -> (SyncSession<Memory>, SyncSession<Memory>) {
    pair_with((one, options(1)), (other, options(2)))
}

fn pair_with(
    one: (&Memory, Options),
    other: (&Memory, Options),
) -> (SyncSession<Memory>, SyncSession<Memory>) {
    let here =
        SyncSession::initiate(one.1, admission(one.0, TransferRole::Both)).expect("short names");
    let admitted = admission(other.0, TransferRole::Both);
    let there = SyncSession::respond(other.1, Box::new(move |_| Ok(admitted)));
    (here, there)
}

/// The record of transferred bytes.
#[derive(Default)]
struct Traffic {
    /// The number of times that the initiator waited for the responder.
    turns: usize,
    forth: Vec<u8>,
    back: Vec<u8>,
}

/// Transfers bytes between both sides, `step` bytes at a time, until neither sends anything.
fn hand_over(
    from: &mut SyncSession<Memory>,
    to: &mut SyncSession<Memory>,
    step: usize,
    wire: &mut Vec<u8>,
) -> Result<usize, Error> {
    let mut count = 0;
    loop {
        let mut bytes = Vec::new();
        while from.write_to(&mut bytes).expect("a vector takes all") > 0 {}
        from.advance()?;
        if bytes.is_empty() && !from.wants_output() {
            return Ok(count);
        }
        count += bytes.len();
        wire.extend_from_slice(&bytes);
        for piece in bytes.chunks(step) {
            let mut rest = piece;
            while !rest.is_empty() {
                let taken = to.accept(rest);
                rest = &rest[taken..];
                to.advance()?;
                assert!(taken > 0 || !to.wants_input(), "it takes and does nothing");
                if taken == 0 {
                    return Ok(count);
                }
            }
        }
    }
}

fn run(
    here: &mut SyncSession<Memory>,
    there: &mut SyncSession<Memory>,
    step: usize,
) -> Result<Traffic, Error> {
    let mut traffic = Traffic::default();
    loop {
        let forth = hand_over(here, there, step, &mut traffic.forth)?;
        let back = hand_over(there, here, step, &mut traffic.back)?;
        traffic.turns += usize::from(back > 0);
        if forth + back == 0 {
            assert!(here.is_finished() && there.is_finished(), "both wait");
            return Ok(traffic);
        }
    }
}

fn after(session: &mut SyncSession<Memory>) -> Memory {
    session.repository().expect("it was let in").clone()
}

/// Runs a session and lands the received commits.
fn sync(one: &mut Memory, other: &mut Memory) -> Traffic {
    let (mut here, mut there) = pair(one, other);
    let traffic = run(&mut here, &mut there, usize::MAX).expect("no errors");
    (*one, *other) = (after(&mut here), after(&mut there));
    traffic
}

fn history(count: u64) -> Memory {
    let mut memory = Memory::new();
    for date in 0..count {
        memory.commit("refs/heads/main", date, b"common");
    }
    memory
}

fn check_union(one: &Memory, other: &Memory) {
    assert_eq!(one.tracking, other.refs);
    assert_eq!(other.tracking, one.refs);
    for (left, right) in [(one, other), (other, one)] {
        let tips: Vec<_> = right.refs.values().copied().collect();
        for id in right.closure(&tips, &Default::default()) {
            assert!(left.commits.contains_key(&id));
        }
    }
}

#[test]
fn nothing_new_takes_two_turns() {
    let (mut one, mut other) = (history(10), history(10));
    sync(&mut one, &mut other);
    check_union(&one, &other);
    let traffic = sync(&mut one, &mut other);
    assert_eq!(traffic.turns, 2);
    let bytes = traffic.forth.len() + traffic.back.len();
    assert!(bytes <= 512, "{bytes} bytes");
    assert!(one.walked == 0 && other.walked == 0);
}

#[test]
fn fast_forwards_take_three_turns_at_most() {
    for (forward_here, most) in [(true, 3), (false, 2)] {
        let (mut one, mut other) = (history(10), history(10));
        let ahead = if forward_here { &mut one } else { &mut other };
        for date in 10..20 {
            ahead.commit("refs/heads/main", date, b"new");
        }
        let traffic = sync(&mut one, &mut other);
        check_union(&one, &other);
        assert!(traffic.turns <= most, "{}", traffic.turns);
        assert!(one.walked == 0 && other.walked == 0, "negatives are known");
    }
}

#[test]
fn divergence_takes_four_turns_where_lists_are_short() {
    let (mut one, mut other) = (history(3000), history(3000));
    one.commit("refs/heads/main", 4000, b"one");
    other.commit("refs/heads/main", 4001, b"other");
    let traffic = sync(&mut one, &mut other);
    check_union(&one, &other);
    assert!(one.walked == 1 && other.walked == 1);
    assert!(traffic.turns <= 6, "{}", traffic.turns);
    // The old history is summarised in far fewer bytes than its ids.
    let bytes = traffic.forth.len() + traffic.back.len();
    assert!(bytes < 4000, "{bytes}");
    // With shared history, the rest is not read.
    one.commit("refs/heads/main", 5000, b"one again");
    other.commit("refs/heads/main", 5001, b"other again");
    let base = history(3000).refs["refs/heads/main"];
    one.refs.insert("refs/heads/base".to_owned(), base);
    other.refs.insert("refs/heads/base".to_owned(), base);
    let traffic = sync(&mut one, &mut other);
    check_union(&one, &other);
    assert!(traffic.turns <= 4, "{}", traffic.turns);
}

#[test]
fn criss_cross_and_many_branches_become_one_history() {
    for seed in 0..40u64 {
        let mut random = Random::new(seed);
        let (mut one, mut other) = (history(5), history(5));
        for date in 10..40 {
            for side in [&mut one, &mut other] {
                let branch = format!("refs/heads/b{}", random.below(5));
                if random.below(3) == 0 && !side.tracking.is_empty() {
                    let theirs: Vec<_> = side.tracking.values().copied().collect();
                    let theirs = theirs[random.below(theirs.len() as u64) as usize];
                    let mine = side.refs.get(&branch).copied();
                    let parents = mine.into_iter().chain([theirs]).collect();
                    side.merge(&branch, date, parents, b"merge");
                } else {
                    side.commit(&branch, date, &random.number().to_be_bytes());
                }
            }
            if random.below(8) == 0 {
                let traffic = sync(&mut one, &mut other);
                check_union(&one, &other);
                assert!(traffic.turns <= 6, "{}", traffic.turns);
            }
        }
        sync(&mut one, &mut other);
        check_union(&one, &other);
        assert!(sync(&mut one, &mut other).turns <= 2);
    }
}

#[test]
fn an_empty_repository_gets_everything_and_unrelated_ones_only_by_consent() {
    let (mut one, mut other) = (Memory::new(), history(500));
    sync(&mut one, &mut other);
    assert_eq!(one.tracking, other.refs);
    let mut stranger = Memory::new();
    stranger.commit("refs/heads/other", 1, b"elsewhere");
    let (mut here, mut there) = pair(&stranger, &other);
    let error = run(&mut here, &mut there, 100).err().expect("refused");
    assert_eq!(error.kind(), ErrorKind::Unrelated);
    let consent = |nonce| {
        let mut changed = options(nonce);
        changed.allows_unrelated = true;
        changed
    };
    let (mut here, mut there) = pair_with((&stranger, consent(1)), (&other, options(2)));
    assert!(
        run(&mut here, &mut there, 100).is_err(),
        "both have to agree"
    );
    let (mut here, mut there) = pair_with((&stranger, consent(1)), (&other, consent(2)));
    run(&mut here, &mut there, 100).expect("both agree");
    assert_eq!(after(&mut here).tracking, other.refs);
}

#[test]
fn bytes_one_by_one_and_streams_say_the_same() {
    let (mut one, mut other) = (history(50), history(50));
    one.commit("refs/heads/main", 100, &vec![1; 30_000]);
    one.commit("refs/heads/x", 101, b"x");
    other.commit("refs/heads/main", 102, &vec![2; 100_000]);
    let mut said = Vec::new();
    for (step, streams) in [(usize::MAX, false), (1, false), (7, true), (4096, true)] {
        (one.streams, other.streams) = (streams, streams);
        let (mut here, mut there) = pair(&one, &other);
        let traffic = run(&mut here, &mut there, step).expect("no errors");
        check_union(&after(&mut here), &after(&mut there));
        assert!(here.report().received_bytes > 100_000);
        said.push((traffic.forth.len(), traffic.back.len()));
    }
    // Only the timing of credits differs.
    assert!(
        said.iter().all(|each| each.0.abs_diff(said[0].0) < 100),
        "{said:?}"
    );
}

/// Runs until `limit` bytes were transferred in both directions, then cuts the connection.
fn cut_after(one: &mut Memory, other: &mut Memory, limit: usize) -> bool {
    let (mut here, mut there) = pair(one, other);
    let mut left = limit;
    let mut is_over = false;
    'talking: while left > 0 {
        let mut moved = 0;
        for forth in [true, false] {
            let (from, to) = match forth {
                true => (&mut here, &mut there),
                false => (&mut there, &mut here),
            };
            let mut bytes = Vec::new();
            while from.write_to(&mut bytes).expect("a vector takes all") > 0 {}
            from.advance().expect("honest");
            let mut rest = &bytes[..bytes.len().min(left)];
            left -= rest.len();
            moved += rest.len();
            while !rest.is_empty() {
                rest = &rest[to.accept(rest)..];
                to.advance().expect("honest");
            }
        }
        if moved == 0 {
            is_over = here.is_finished() && there.is_finished();
            break 'talking;
        }
    }
    for side in [&mut here, &mut there] {
        assert!(side.end_of_input().is_err() || side.report().received_segments > 0 || is_over);
    }
    (*one, *other) = (after_or(&mut here, one), after_or(&mut there, other));
    is_over
}

fn after_or(session: &mut SyncSession<Memory>, before: &Memory) -> Memory {
    session
        .repository()
        .map_or_else(|| before.clone(), |memory| memory.clone())
}

#[test]
fn a_cut_at_every_byte_costs_no_more_than_a_segment() {
    let (mut one, mut other) = (history(3), history(3));
    for date in 20..26 {
        one.commit("refs/heads/main", date, &[date as u8; 20]);
        other.commit("refs/heads/main", 100 + date, &[date as u8; 30]);
    }
    (one.segment_bytes, other.segment_bytes) = (130, 130);
    let (mut here, mut there) = pair(&one, &other);
    let whole = run(&mut here, &mut there, usize::MAX).expect("no errors");
    let bytes = whole.forth.len() + whole.back.len();
    let payload = here.report().received_bytes + there.report().received_bytes;
    for limit in 1..bytes + 10 {
        let (mut left, mut right) = (one.clone(), other.clone());
        let mut was_whole = cut_after(&mut left, &mut right, limit);
        let kept: usize = [&left, &right]
            .iter()
            .map(|side| side.quarantine.len())
            .sum();
        let (mut here, mut there) = pair(&left, &right);
        run(&mut here, &mut there, usize::MAX).expect("goes on");
        let again = here.report().received_bytes + there.report().received_bytes;
        (left, right) = (after(&mut here), after(&mut there));
        check_union(&left, &right);
        // Quarantined objects are not sent again.
        let landed = was_whole || again == 0;
        assert!(
            landed || again <= payload - kept as u64 * 50,
            "{limit}: {again}"
        );
        was_whole |= again == 0;
        assert!(was_whole || limit < bytes);
    }
}

#[test]
fn roles_and_globs_are_enforced() {
    let (mut one, mut other) = (history(5), history(5));
    one.commit("refs/heads/main", 10, b"one");
    other.commit("refs/heads/main", 11, b"other");
    let secret = other.commit("refs/heads/secret", 12, b"not to be told");
    other.commit("refs/heads/topic", 13, b"topic");
    // Pull only.
    let mut here =
        SyncSession::initiate(options(1), admission(&one, TransferRole::Sink)).expect("short");
    let mut admitted = admission(&other, TransferRole::Source);
    admitted.limits = RefMatcher::new(Globs {
        include: Vec::new(),
        exclude: vec![b"refs/heads/secret*".to_vec()],
    });
    let mut there = SyncSession::respond(options(2), Box::new(move |_| Ok(admitted)));
    let traffic = run(&mut here, &mut there, 1000).expect("no errors");
    let (left, right) = (after(&mut here), after(&mut there));
    assert_eq!(left.tracking.len(), 2);
    assert!(right.tracking.is_empty() && right.commits == other.commits);
    for wire in [&traffic.forth, &traffic.back] {
        for hidden in [secret.as_slice(), b"secret", b"not to be told"] {
            assert!(!wire.windows(hidden.len()).any(|bytes| bytes == hidden));
        }
    }
    // A peer that only sends receives nothing.
    let mut here =
        SyncSession::initiate(options(1), admission(&one, TransferRole::Source)).expect("short");
    let admitted = admission(&other, TransferRole::Source);
    let mut there = SyncSession::respond(options(2), Box::new(move |_| Ok(admitted)));
    let error = run(&mut here, &mut there, 1000).err().expect("refused");
    assert_eq!(error.kind(), ErrorKind::Denied);
    // Only refs that match the globs of both sides take part.
    let mut wish = options(1);
    wish.globs = Globs {
        include: vec![b"refs/heads/t*".to_vec()],
        exclude: Vec::new(),
    };
    let (mut here, mut there) = pair_with((&one, wish), (&other, options(2)));
    run(&mut here, &mut there, 1000).expect("no errors");
    assert_eq!(after(&mut here).tracking.len(), 1);
    assert!(after(&mut there).tracking.is_empty());
}

#[test]
fn a_dry_run_moves_nothing_and_says_what_would() {
    let (mut one, mut other) = (history(5), history(5));
    one.commit("refs/heads/main", 10, b"one");
    for date in 11..20 {
        other.commit("refs/heads/main", date, b"other");
    }
    let mut dry = options(1);
    dry.is_dry_run = true;
    let (mut here, mut there) = pair_with((&one, dry), (&other, options(2)));
    run(&mut here, &mut there, 1000).expect("no errors");
    let report = here.report();
    assert_eq!(report.incoming_plan.expect("said").commits, 9);
    assert_eq!(report.outgoing_plan.expect("known").commits, 1);
    assert!(report.is_dry_run && there.report().is_dry_run);
    assert_eq!(
        (&report.incoming[..], &report.outgoing[..]),
        (&[true][..], &[true][..])
    );
    for (side, before) in [(&mut here, &one), (&mut there, &other)] {
        let after = after(side);
        assert!(after.commits == before.commits && after.tracking == before.tracking);
        assert!(after.quarantine.is_empty());
    }
}

#[test]
fn what_is_published_is_told() {
    let (mut one, mut other) = (history(5), history(5));
    sync(&mut one, &mut other);
    one.commit("refs/heads/main", 10, b"one");
    one.commit("refs/heads/topic", 11, b"topic");
    let (mut here, mut there) = pair(&one, &other);
    run(&mut here, &mut there, 1000).expect("no errors");
    let reported = &here.report().published_there;
    let fates: Vec<StoreResult> = reported.iter().map(|each| each.stored).collect();
    assert_eq!(fates, [StoreResult::FastForward, StoreResult::New]);
    assert_eq!(reported[1].stored_as, b"refs/remotes/peer/topic");
    assert_eq!(reported, &there.report().published);
}

#[test]
fn copies_stay_within_the_bound() {
    let (mut one, mut other) = (history(5), history(5));
    for date in 10..14 {
        one.commit("refs/heads/main", date, &vec![date as u8; 4 << 20]);
        other.commit("refs/heads/main", date + 10, &vec![date as u8; 4 << 20]);
    }
    (one.segment_bytes, other.segment_bytes) = (6 << 20, 6 << 20);
    let (mut here, mut there) = pair(&one, &other);
    run(&mut here, &mut there, 100_000).expect("no errors");
    check_union(&after(&mut here), &after(&mut there));
    let wire = 2 * here.report().received_bytes;
    assert!(wire > 32 << 20);
    // The queues count copied bytes: received bytes are copied once here and moved at most once,
    // and sent bytes are not copied.
    for side in [&here, &there] {
        let (received, sent) = side.queues();
        let copied = received.counters().copied_bytes + sent.counters().copied_bytes;
        assert!(copied <= wire / 2 * 2 + (1 << 20), "{copied} of {wire}");
        assert!(sent.counters().copied_bytes < 1 << 20);
        assert!(received.held_bytes() <= 2 << 20);
    }
}

#[test]
fn who_is_refused_learns_nothing() {
    let one = history(5);
    let mut here =
        SyncSession::initiate(options(1), admission(&one, TransferRole::Both)).expect("short");
    let refuse = |_: &_| Err(Error::new(ErrorKind::Denied, "the key is not known"));
    let mut there = SyncSession::<Memory>::respond(options(2), Box::new(refuse));
    let mut traffic = Traffic::default();
    let refused = hand_over(&mut here, &mut there, 50, &mut traffic.forth).expect_err("refused");
    assert_eq!(refused.kind(), ErrorKind::Denied);
    let reported = hand_over(&mut there, &mut here, 50, &mut traffic.back).expect_err("told");
    assert_eq!(
        reported.to_string(),
        "the peer reports: the key is not known"
    );
    assert_eq!(reported.kind(), ErrorKind::Denied);
    assert_eq!(traffic.back.len(), 6 + 2 + "the key is not known".len());
    // Other object formats and versions are reported too.
    let mut here =
        SyncSession::initiate(options(1), admission(&one, TransferRole::Both)).expect("short");
    let mut admitted = admission(&one, TransferRole::Both);
    admitted.object_format = ObjectFormat::Sha256;
    let mut there = SyncSession::respond(options(2), Box::new(move |_| Ok(admitted)));
    let error = run(&mut here, &mut there, 50).err().expect("refused");
    assert_eq!(
        error.to_string(),
        "different object formats: sha256 and sha1"
    );
}

#[test]
fn a_peer_that_says_anything_does_no_harm() {
    let (mut one, mut other) = (history(5), history(5));
    one.commit("refs/heads/main", 10, &[1; 3000]);
    one.commit("refs/heads/topic", 11, &[2; 3000]);
    other.commit("refs/heads/main", 12, &[3; 3000]);
    let (mut here, mut there) = pair(&one, &other);
    let honest = run(&mut here, &mut there, usize::MAX).expect("no errors");
    let mut random = Random::new(3);
    let (mut failed, mut passed) = (0, 0);
    for _ in 0..3000 {
        let mut wire = honest.forth.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(wire.len() as u64) as usize;
            match random.below(4) {
                0 => wire[at] ^= 1 << random.below(8),
                1 => wire[at] = random.number() as u8,
                2 => drop(wire.remove(at)),
                _ => wire.insert(at, random.number() as u8),
            }
        }
        let admitted = admission(&other, TransferRole::Both);
        let mut side = SyncSession::respond(options(2), Box::new(move |_| Ok(admitted)));
        let (mut rest, mut said) = (&wire[..], Vec::new());
        let result = loop {
            let taken = side.accept(rest);
            rest = &rest[taken..];
            let result = side.advance();
            let written = side.write_to(&mut said).expect("a vector takes all");
            if result.is_err() || (taken == 0 && written == 0) {
                break result;
            }
        };
        match result {
            Err(_) => failed += 1,
            Ok(()) => passed += 1,
        }
        // No ref may point to a missing object, whatever was sent.
        if let Some(memory) = side.repository() {
            let here = &memory.commits;
            assert!(memory.tracking.values().all(|id| here.contains_key(id)));
            assert_eq!(memory.refs, other.refs);
        }
        assert!(said.len() < honest.back.len() + 1000);
    }
    assert!(failed > 1000 && passed > 0, "{failed} {passed}");
}

#[test]
fn who_does_not_read_is_not_waited_for_with_memory() {
    let mut one = history(5);
    for date in 10..20 {
        one.commit("refs/heads/main", date, &vec![7; 4 << 20]);
    }
    one.segment_bytes = 4 << 20;
    let (mut here, mut there) = pair(&one, &history(5));
    // The other side grants a window and then stops reading.
    let mut traffic = Traffic::default();
    for _ in 0..4 {
        hand_over(&mut there, &mut here, 1000, &mut traffic.back).expect("honest");
        let mut bytes = Vec::new();
        here.advance().expect("honest");
        if here.report().sent_bytes > 0 {
            break;
        }
        while here.write_to(&mut bytes).expect("a vector takes all") > 0 {}
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            rest = &rest[there.accept(rest)..];
            there.advance().expect("honest");
        }
    }
    for _ in 0..100 {
        here.advance().expect("honest");
    }
    let queued = here.queues().1.len();
    assert!(
        here.report().sent_bytes > 0 && queued <= 5 << 20,
        "{queued}"
    );
}

/// A complete greeting that is too long is refused like an incomplete one.
#[test]
fn long_greetings_are_refused() {
    let globs = Globs {
        include: (0..60).map(|_| vec![b'x'; 1000]).collect(),
        exclude: Vec::new(),
    };
    let mut here = options(1);
    here.globs = globs;
    let repository = Memory::default();
    let (mut here, mut there) = pair_with((&repository, here), (&repository, options(2)));
    let mut wire = Vec::new();
    while here.write_to(&mut wire).expect("a vector takes all") > 0 {}
    assert_eq!(there.accept(&wire), wire.len());
    let error = there.advance().expect_err("it is too long");
    assert_eq!(error.kind(), ErrorKind::Exceeded);
}

/// The driver can end a session: the peer receives the reason, and the repository is released
/// immediately.
#[test]
fn a_session_that_is_refused_holds_no_repository() {
    let repository = Memory::default();
    let (mut here, mut there) = pair(&repository, &repository);
    let mut wire = Vec::new();
    while here.write_to(&mut wire).expect("a vector takes all") > 0 {}
    assert_eq!(there.accept(&wire), wire.len());
    there.advance().expect("it is let in");
    assert!(there.repository().is_some());
    there.refuse(&Error::new(ErrorKind::Busy, "others wait"));
    assert!(there.repository().is_none() && !there.wants_input());
    let mut wire = Vec::new();
    while there.write_to(&mut wire).expect("a vector takes all") > 0 {}
    assert_eq!(here.accept(&wire), wire.len());
    let error = here.advance().expect_err("it was refused");
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert_eq!(error.message(), "the peer reports: others wait");
    there.advance().expect("nothing more is done");
}

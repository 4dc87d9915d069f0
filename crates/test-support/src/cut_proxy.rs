//! A TCP proxy that cuts connections.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Random;

/// A proxy on a port of the loopback interface. Its threads run until the end of the process.
pub struct CutProxy {
    address: SocketAddr,
    state: Arc<Mutex<ProxyState>>,
}

struct ProxyState {
    random: Random,
    /// The percentage of pieces before which the connection is cut.
    cut: u64,
    /// The text of the request whose answer is lost.
    lost: Option<&'static str>,
    cuts: u64,
    server: SocketAddr,
}

/// The connections to the client and to the server.
struct Pair {
    client: TcpStream,
    server: TcpStream,
    /// Whether the next answer is lost.
    loses: AtomicBool,
}

impl CutProxy {
    /// Starts a proxy for `server`, which forwards everything at first.
    ///
    /// # Panics
    /// Panics if no port is free.
    #[must_use]
    pub fn start(server: SocketAddr, seed: u64) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("bound");
        let state = Arc::new(Mutex::new(ProxyState {
            random: Random::new(seed),
            cut: 0,
            lost: None,
            cuts: 0,
            server,
        }));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                connect(client, &shared);
            }
        });
        CutProxy { address, state }
    }

    /// Returns the address of the proxy.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Cuts connections before `percent` percent of the pieces, in either direction.
    pub fn cut(&self, percent: u64) {
        self.state().cut = percent;
    }

    /// Loses the answer to the next request that contains `text`, after the server has processed
    /// the request.
    pub fn lose_next_answer(&self, text: &'static str) {
        self.state().lost = Some(text);
    }

    /// Returns the number of connections that were cut.
    #[must_use]
    pub fn cuts(&self) -> u64 {
        self.state().cuts
    }

    fn state(&self) -> MutexGuard<'_, ProxyState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn connect(client: TcpStream, state: &Arc<Mutex<ProxyState>>) {
    let server = state.lock().unwrap_or_else(PoisonError::into_inner).server;
    let Ok(server) = TcpStream::connect(server) else {
        return;
    };
    let pair = Arc::new(Pair {
        client,
        server,
        loses: AtomicBool::new(false),
    });
    for is_answer in [false, true] {
        let (pair, state) = (Arc::clone(&pair), Arc::clone(state));
        std::thread::spawn(move || {
            pass(&pair, &state, is_answer);
            for end in [&pair.client, &pair.server] {
                let _ = end.shutdown(Shutdown::Both);
            }
        });
    }
}

/// Forwards pieces in one direction, until either side closes the connection or the connection is
/// cut.
fn pass(pair: &Pair, state: &Mutex<ProxyState>, is_answer: bool) {
    let (mut from, mut to) = match is_answer {
        true => (&pair.server, &pair.client),
        false => (&pair.client, &pair.server),
    };
    let mut piece = vec![0; 1 << 16];
    loop {
        let len = match from.read(&mut piece) {
            Ok(len) if len > 0 => len,
            _ => return,
        };
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let share = state.cut;
        let is_cut = match is_answer {
            true => pair.loses.load(SeqCst) || state.random.below(100) < share,
            false => {
                let has = |text: &str| {
                    let mut windows = piece[..len].windows(text.len());
                    windows.any(|window| window == text.as_bytes())
                };
                if state.lost.is_some_and(has) {
                    state.lost = None;
                    pair.loses.store(true, SeqCst);
                }
                !pair.loses.load(SeqCst) && state.random.below(100) < share
            }
        };
        state.cuts += u64::from(is_cut);
        drop(state);
        if is_cut || to.write_all(&piece[..len]).is_err() {
            return;
        }
    }
}

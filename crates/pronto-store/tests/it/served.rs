//! Serves bare repositories to git clients, with threads of this process.

use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Output;
use std::sync::mpsc::{Receiver, channel};

use pronto::upload_pack::{self, ConversationEnd, UploadStreams};
use pronto::{Environment, Watch, receive_pack};
use test_support::git;

/// A server of one repository, with a thread for each connection.
pub(crate) struct Served {
    address: SocketAddr,
    ended: Receiver<Result<ConversationEnd, String>>,
}

impl Served {
    /// Serves the repository `directory` as long as the process runs.
    pub(crate) fn new(directory: &Path) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let (sender, ended) = channel();
        let directory = directory.to_owned();
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let (directory, sender) = (directory.clone(), sender.clone());
                let connection = connection.expect("a connection");
                std::thread::spawn(move || drop(sender.send(answer(connection, &directory))));
            }
        });
        Served { address, ended }
    }

    /// Runs git in `folder`, with the URL before the arguments `rest`.
    pub(crate) fn git(&self, folder: &Path, arguments: &[&str], rest: &[&str]) -> Output {
        let url = format!("git://{}/r", self.address);
        let arguments = [
            &["-c", "protocol.version=0"],
            arguments,
            &[url.as_str()],
            rest,
        ]
        .concat();
        git::isolated(folder, &arguments, b"")
    }

    /// Returns the end of the next connection.
    pub(crate) fn ended(&self) -> Result<ConversationEnd, String> {
        self.ended.recv().expect("the thread sends it")
    }
}

fn answer(mut connection: TcpStream, directory: &Path) -> Result<ConversationEnd, String> {
    // The first packet names the repository.
    let mut len = [0; 4];
    connection.read_exact(&mut len).expect("a request");
    let len = std::str::from_utf8(&len).expect("digits");
    let len = usize::from_str_radix(len, 16).expect("digits");
    let mut request = vec![0; len - 4];
    connection.read_exact(&mut request).expect("a request");
    let repository = pronto::Repository::open(directory, &Environment::empty("/"));
    let repository = repository.map_err(|error| error.to_string())?;
    let mut output = connection.try_clone().expect("a descriptor");
    if request.starts_with(b"git-receive-pack") {
        let streams = receive_pack::ReceiveStreams {
            input: &mut connection,
            output: &mut output,
        };
        let options = receive_pack::Options::new("git");
        let served = receive_pack::serve(&repository, &options, streams, &Watch::none());
        return served
            .map(|_| ConversationEnd::Served)
            .map_err(|error| error.to_string());
    }
    let streams = UploadStreams {
        input: &mut connection,
        output: &mut output,
    };
    let options = upload_pack::Options::default();
    let ended = upload_pack::answer(&repository, &options, streams, &Watch::none());
    ended.map_err(|error| error.to_string())
}

//! An S3 server for tests.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

const SERVER: &str = include_str!("s3_server.py");

/// An S3 server with a bucket, in another process. The server stores objects in memory, accepts
/// every signature, and creates objects conditionally and atomically. It is stopped when the value
/// is dropped or this process ends.
pub struct S3Server {
    child: Child,
    /// The standard input of the server. Closing it stops the server.
    _input: ChildStdin,
    address: SocketAddr,
}

/// The name of the bucket.
pub const BUCKET: &str = "bucket";

impl S3Server {
    /// Starts a server. Returns `None` if its program is not installed.
    ///
    /// # Panics
    /// Panics if the server does not start.
    #[must_use]
    pub fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// Starts a server that refuses the credentials of all clients. Returns `None` if its program is
    /// not installed.
    ///
    /// # Panics
    /// Panics if the server does not start.
    #[must_use]
    pub fn start_with_accounts() -> Option<Self> {
        // The first call creates the bucket.
        Self::start_with(&[("INITIAL_NO_AUTH_ACTION_COUNT", "1")])
    }

    fn start_with(variables: &[(&str, &str)]) -> Option<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let python = root.join("target/s3-server/bin/python");
        if !python.exists() {
            return None;
        }
        let mut child = Command::new(python)
            .args(["-c", SERVER])
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("python starts");
        let input = child.stdin.take().expect("a pipe");
        let mut line = String::new();
        let output = child.stdout.take().expect("a pipe");
        BufReader::new(output).read_line(&mut line).expect("a port");
        let port = line.trim().parse().expect("a port");
        let server = S3Server {
            child,
            _input: input,
            address: (Ipv4Addr::LOCALHOST, port).into(),
        };
        let made = server.put(&format!("/{BUCKET}"));
        assert!(made.starts_with("HTTP/1.1 200"), "{made}");
        Some(server)
    }

    /// Returns the address of the server.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    fn put(&self, path: &str) -> String {
        let mut connection = TcpStream::connect(self.address).expect("it listens");
        let request = format!(
            "PUT {path} HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\nConnection: close\r\n\
             Authorization: AWS4-HMAC-SHA256 Credential=a/20200101/us-east-1/s3/aws4_request, \
             SignedHeaders=host, Signature=0\r\n\r\n",
            self.address
        );
        connection
            .write_all(request.as_bytes())
            .expect("it listens");
        let mut answer = Vec::new();
        connection.read_to_end(&mut answer).expect("an answer");
        String::from_utf8_lossy(&answer).into_owned()
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the environment variables for clients that use the server, or a proxy for it, at
/// `address`.
#[must_use]
pub fn variables(address: SocketAddr) -> [(&'static str, String); 4] {
    [
        ("AWS_ENDPOINT_URL", format!("http://{address}")),
        ("AWS_ACCESS_KEY_ID", "a".into()),
        ("AWS_SECRET_ACCESS_KEY", "b".into()),
        ("AWS_REGION", "us-east-1".into()),
    ]
}

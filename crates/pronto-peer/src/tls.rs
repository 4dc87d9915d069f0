//! TLS 1.3 over TCP between peers that authenticate with raw public keys (RFC 7250), Ed25519 on
//! both sides. Certificates, tickets, resumption and early data are not used: every session has a
//! full handshake, and its messages are not valid in another session.
//!
//! A server completes the handshake with any key, so that it can send the command that would trust
//! this key. [`super::server`] decides before a repository is opened. A client proceeds only with
//! the expected key.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pronto_io::error::OsReason;
use pronto_netsync::{Error, ErrorKind};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring as provider};
use rustls::pki_types::{
    CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, Connection, DigitallySignedStruct,
    DistinguishedName, ServerConfig, ServerConnection, SignatureScheme,
};

use super::address::DEFAULT_PORT;
use super::keys::{KeyPair, PublicKey};
use super::stream::{DuplexStream, Ends, Interest, wait};

/// The protocol and its version, as negotiated in the handshake (ALPN).
const PROTOCOL: &[u8] = b"netsync/1";

/// The number of bytes that may be buffered for encryption and sending.
const BUFFER_BYTES: usize = 64 * 1024;

/// A stream to a peer that has proved possession of its private key.
pub struct TlsLink {
    socket: TcpStream,
    tls: Connection,
    /// The number of received bytes that were not read.
    waiting_bytes: usize,
}

/// The TLS configuration of a server. Clones share the configuration.
#[derive(Clone)]
pub(super) struct Acceptor(Arc<ServerConfig>);

impl Acceptor {
    /// Creates the configuration of a server with `key`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Unsupported`] if the key cannot be used.
    pub(super) fn new(key: &KeyPair) -> Result<Acceptor, Error> {
        let (provider, key) = (provider(), certified(key)?);
        let proof = PeerKeyVerifier::new(&provider, None);
        let builder = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(unusable)?;
        let mut config = builder
            .with_client_cert_verifier(Arc::new(proof))
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(key)));
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Acceptor(Arc::new(config)))
    }

    /// Performs the handshake with a client, within `patience`.
    ///
    /// # Errors
    /// Fails if the handshake fails, or exceeds `patience`.
    pub(super) fn accept(&self, socket: TcpStream, patience: Duration) -> Result<TlsLink, Error> {
        let tls = ServerConnection::new(Arc::clone(&self.0)).map_err(unusable)?;
        let mut link = TlsLink::new(socket, tls.into())?;
        link.handshake(patience)?;
        Ok(link)
    }
}

/// Performs the handshake with a server, whose key must be `expected`.
///
/// # Errors
/// Fails if the handshake fails, exceeds `patience`, or the server has another key, which is the
/// second part of the error.
pub(super) fn connect(
    socket: TcpStream,
    key: &KeyPair,
    expected: Option<PublicKey>,
    patience: Duration,
) -> Result<TlsLink, (Error, Option<PublicKey>)> {
    let presented = Arc::new(Mutex::new(None));
    let result = (|| {
        let (provider, key) = (provider(), certified(key)?);
        let mut proof = PeerKeyVerifier::new(&provider, expected);
        proof.presented = Some(Arc::clone(&presented));
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(unusable)?;
        let mut config = builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(proof))
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(key)));
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        config.resumption = Resumption::disabled();
        config.enable_sni = false;
        // The name is not used, because keys identify peers.
        let name = ServerName::try_from("netsync.invalid").map_err(unusable)?;
        let tls = ClientConnection::new(Arc::new(config), name).map_err(unusable)?;
        let mut link = TlsLink::new(socket, tls.into())?;
        link.handshake(patience)?;
        Ok(link)
    })();
    result.map_err(|error| {
        let presented = presented.lock().unwrap_or_else(PoisonError::into_inner);
        (error, presented.filter(|key| Some(*key) != expected))
    })
}

impl TlsLink {
    fn new(socket: TcpStream, mut tls: Connection) -> Result<Self, Error> {
        let prepare = || {
            socket.set_nonblocking(true)?;
            socket.set_nodelay(true)
        };
        prepare().map_err(lost)?;
        tls.set_buffer_limit(Some(BUFFER_BYTES));
        Ok(TlsLink {
            socket,
            tls,
            waiting_bytes: 0,
        })
    }

    fn handshake(&mut self, patience: Duration) -> Result<(), Error> {
        let end = Instant::now() + patience;
        while self.tls.is_handshaking() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let message = format!("timeout: no TLS handshake within {} s", patience.as_secs());
                return Err(Error::new(ErrorKind::Closed, message));
            }
            self.flush_pending().map_err(lost)?;
            let interest = Interest {
                input: Some(self.socket.as_fd()),
                output: Some((self.socket.as_fd(), self.tls.wants_write())),
            };
            let ready = wait(&interest, left)?;
            if ready.can_read && self.take_in().map_err(failed)? == Some(0) {
                return Err(lost(io::ErrorKind::UnexpectedEof.into()));
            }
        }
        // The last message of a client has not been sent yet. The buffer of the socket has room for
        // it.
        self.flush_pending().map_err(lost)?;
        if self.tls.alpn_protocol() != Some(PROTOCOL) {
            let message = "the peer does not speak netsync/1";
            return Err(Error::new(ErrorKind::Version, message));
        }
        Ok(())
    }

    /// Returns the key of the peer.
    pub fn peer_key(&self) -> Option<PublicKey> {
        let key = self.tls.peer_certificates()?.first()?;
        PublicKey::from_spki(key)
    }

    /// Processes received bytes. Returns `None` if no bytes are available, and zero at the end of
    /// the stream.
    fn take_in(&mut self) -> io::Result<Option<usize>> {
        let count = match self.tls.read_tls(&mut self.socket) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(None),
            Err(error) => return Err(error),
        };
        match self.tls.process_new_packets() {
            Ok(state) => self.waiting_bytes = state.plaintext_bytes_to_read(),
            Err(error) => {
                // The alert is sent to the peer if possible.
                let _ = self.flush_pending();
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
        }
        Ok(Some(count))
    }
}

impl Read for TlsLink {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.tls.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                Ok(count) => {
                    self.waiting_bytes = self.waiting_bytes.saturating_sub(count);
                    return Ok(count);
                }
                Err(error) => return Err(error),
            }
            match self.take_in()? {
                Some(0) => return Ok(0),
                Some(_) => {}
                None => return Err(io::ErrorKind::WouldBlock.into()),
            }
        }
    }
}

impl Write for TlsLink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[io::IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
        self.flush_pending()?;
        let count = self.tls.writer().write_vectored(slices)?;
        self.flush_pending()?;
        match count {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            count => Ok(count),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flush_pending()
    }
}

impl DuplexStream for TlsLink {
    fn prepare(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn ends(&self) -> Ends<'_> {
        Ends {
            input: self.socket.as_fd(),
            output: self.socket.as_fd(),
        }
    }

    fn has_pending_input(&self) -> bool {
        self.waiting_bytes > 0
    }

    fn has_pending_output(&self) -> bool {
        self.tls.wants_write()
    }

    fn flush_pending(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.socket) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn finish(&mut self) {
        self.tls.send_close_notify();
    }

    fn shut(&mut self) {
        // The connection may have ended already.
        let _ = self.socket.shutdown(Shutdown::Write);
    }
}

/// A verifier of the peer's proof of possession, and of the expected key.
#[derive(Debug)]
struct PeerKeyVerifier {
    algorithms: WebPkiSupportedAlgorithms,
    /// The expected key, or `None` to accept any key.
    expected: Option<PublicKey>,
    presented: Option<Arc<Mutex<Option<PublicKey>>>>,
}

impl PeerKeyVerifier {
    fn new(provider: &CryptoProvider, expected: Option<PublicKey>) -> Self {
        PeerKeyVerifier {
            algorithms: provider.signature_verification_algorithms,
            expected,
            presented: None,
        }
    }

    /// Checks the raw public key, which TLS transports in place of a certificate.
    fn check(&self, key: &CertificateDer<'_>) -> Result<PublicKey, rustls::Error> {
        let broken = rustls::Error::InvalidCertificate(CertificateError::BadEncoding);
        PublicKey::from_spki(key).ok_or(broken)
    }

    fn signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let key = SubjectPublicKeyInfoDer::from(key.as_ref());
        rustls::crypto::verify_tls13_signature_with_raw_key(message, &key, signed, &self.algorithms)
    }
}

impl ServerCertVerifier for PeerKeyVerifier {
    fn verify_server_cert(
        &self,
        key: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let key = self.check(key)?;
        if let Some(presented) = &self.presented {
            *presented.lock().unwrap_or_else(PoisonError::into_inner) = Some(key);
        }
        match self.expected {
            Some(expected) if expected == key => Ok(ServerCertVerified::assertion()),
            _ => Err(rustls::Error::InvalidCertificate(
                CertificateError::ApplicationVerificationFailure,
            )),
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _key: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General(
            "only TLS 1.3 is supported".to_owned(),
        ))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signature(message, key, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for PeerKeyVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        key: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.check(key)?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _key: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General(
            "only TLS 1.3 is supported".to_owned(),
        ))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signature(message, key, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(provider::default_provider())
}

fn certified(key: &KeyPair) -> Result<Arc<CertifiedKey>, Error> {
    let secret = PrivatePkcs8KeyDer::from(key.pkcs8().to_vec());
    let secret = provider::sign::any_eddsa_type(&secret);
    let public = CertificateDer::from(key.public().to_spki());
    Ok(Arc::new(CertifiedKey::new(
        vec![public],
        secret.map_err(unusable)?,
    )))
}

fn unusable(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new(ErrorKind::Unsupported, "cannot set up TLS").because(error)
}

fn lost(error: io::Error) -> Error {
    Error::new(ErrorKind::Closed, "lost the connection to the peer").because(OsReason(error))
}

/// Returns the error of a failed handshake.
fn failed(error: io::Error) -> Error {
    use rustls::AlertDescription as Alert;
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    let mismatch = match inner {
        Some(rustls::Error::InvalidMessage(_)) => Some("the port of the peer does not speak TLS"),
        Some(rustls::Error::AlertReceived(Alert::NoApplicationProtocol)) => {
            Some("the port of the peer speaks TLS, but not netsync/1")
        }
        _ => None,
    };
    if let Some(message) = mismatch {
        let hint = format!(
            "use the port at which the peer runs 'pronto serve --netsync --listen', by default {DEFAULT_PORT}"
        );
        return Error::new(ErrorKind::Version, message).with_hint(hint);
    }
    let kind = match error.kind() {
        io::ErrorKind::InvalidData => ErrorKind::Malformed,
        _ => ErrorKind::Closed,
    };
    Error::new(kind, "the handshake with the peer failed").because(error)
}

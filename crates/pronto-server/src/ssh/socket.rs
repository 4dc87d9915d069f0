//! A socket that can be closed while a task reads and writes it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A socket with one reader and one writer.
#[derive(Clone, Debug)]
pub(super) struct SshSocket(Arc<TcpStream>);

impl SshSocket {
    pub(super) fn new(socket: TcpStream) -> Self {
        SshSocket(Arc::new(socket))
    }

    /// Closes both directions: reads return the end of the stream, and writes fail.
    pub(super) fn close(&self) {
        // The client may have closed the socket before.
        let _ = rustix::net::shutdown(&self.0, rustix::net::Shutdown::Both);
    }
}

impl AsyncRead for SshSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.0.poll_read_ready(context))?;
            match self.0.try_read(buffer.initialize_unfilled()) {
                Ok(count) => {
                    buffer.advance(count);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for SshSocket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.poll_write_ready(context))?;
            match self.0.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = rustix::net::shutdown(&self.0, rustix::net::Shutdown::Write);
        Poll::Ready(done.map_err(Into::into))
    }
}

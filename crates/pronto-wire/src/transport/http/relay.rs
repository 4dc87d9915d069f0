//! Connections to a forwarding proxy, with the complete URL in the request line.

use ureq::Error;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, Either, NextTimeout, Transport,
};

/// A connector that writes the complete URL into request lines.
#[derive(Debug)]
pub(super) struct WholeUrls {
    /// The scheme and authority of all requests, if connections lead to a forwarding proxy.
    pub(super) origin: Option<String>,
}

impl<In: Transport> Connector<In> for WholeUrls {
    type Out = Either<In, Relayed<In>>;

    fn connect(
        &self,
        _: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, Error> {
        Ok(chained.map(|connection| match &self.origin {
            None => Either::A(connection),
            Some(origin) => Either::B(Relayed {
                connection,
                origin: origin.clone(),
                is_between: true,
            }),
        }))
    }
}

/// A connection to a forwarding proxy.
#[derive(Debug)]
pub(super) struct Relayed<In> {
    connection: In,
    /// The scheme and authority of all requests.
    origin: String,
    /// Whether the next output starts a request.
    is_between: bool,
}

impl<In: Transport> Relayed<In> {
    /// Transmits `output`, in as many parts as the buffer requires.
    fn transmit(&mut self, output: &[u8], timeout: NextTimeout) -> Result<(), Error> {
        let mut rest = output;
        while !rest.is_empty() {
            let room = self.connection.buffers().output();
            let (piece, later) = rest.split_at(rest.len().min(room.len()));
            room[..piece.len()].copy_from_slice(piece);
            self.connection.transmit_output(piece.len(), timeout)?;
            rest = later;
        }
        Ok(())
    }
}

impl<In: Transport> Transport for Relayed<In> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.connection.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        if !std::mem::take(&mut self.is_between) {
            return self.connection.transmit_output(amount, timeout);
        }
        let output = &self.connection.buffers().output()[..amount];
        match start_of_path(output) {
            Some(at) => {
                let whole = [&output[..at], self.origin.as_bytes(), &output[at..]].concat();
                self.transmit(&whole, timeout)
            }
            None => self.connection.transmit_output(amount, timeout),
        }
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let has_come = self.connection.await_input(timeout)?;
        self.is_between |= has_come;
        Ok(has_come)
    }

    fn is_open(&mut self) -> bool {
        self.connection.is_open()
    }

    fn is_tls(&self) -> bool {
        self.connection.is_tls()
    }
}

/// Returns the offset of the path in the request line.
fn start_of_path(request: &[u8]) -> Option<usize> {
    let at = request.iter().position(|&byte| byte == b' ')?;
    let is_method = at > 0 && request[..at].iter().all(u8::is_ascii_uppercase);
    (is_method && request.get(at + 1) == Some(&b'/')).then_some(at + 1)
}

//! The server under load.

use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::Result;
use super::group::ControlGroup;

/// The timeout for the start of a server, and for the end of its processes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server. Dropping the value kills all processes of its group.
pub struct BenchServer {
    child: Child,
    /// The control group of its processes.
    pub group: ControlGroup,
}

impl BenchServer {
    /// Starts `command`, and waits until the server listens at `address`.
    ///
    /// # Errors
    /// Fails if the server ends, or does not listen within a minute.
    pub fn start(command: &[String], address: SocketAddr) -> Result<Self> {
        if TcpStream::connect(address).is_ok() {
            return Err(format!("another server listens at {address}"));
        }
        let group = ControlGroup::new()?;
        // The shell enters the group and then becomes the server.
        let enter: Vec<String> = group
            .doors()
            .iter()
            .map(|door| format!("echo $$ >'{}'", door.display()))
            .collect();
        let script = format!("{} && exec \"$@\"", enter.join(" && "));
        let child = Command::new("sh")
            .args(["-c", &script, "sh"])
            .args(command)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot start the server: {error}"))?;
        let mut server = BenchServer { child, group };
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            if let Ok(Some(status)) = server.child.try_wait() {
                return Err(format!("the server has ended: {status}"));
            }
            if begun.elapsed() > PATIENCE {
                return Err(format!("the server does not listen at {address}"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        server.settle();
        Ok(server)
    }

    /// Waits until the server uses no processor time, because its work after a response counts as
    /// well.
    pub fn settle(&self) {
        let begun = Instant::now();
        let mut before = self.group.seconds();
        loop {
            std::thread::sleep(Duration::from_millis(300));
            let now = self.group.seconds();
            if now - before < 0.003 || begun.elapsed() > PATIENCE {
                return;
            }
            before = now;
        }
    }
}

impl Drop for BenchServer {
    fn drop(&mut self) {
        for signal in [Signal::TERM, Signal::KILL] {
            let begun = Instant::now();
            for process in self.group.processes() {
                if let Some(id) = Pid::from_raw(process) {
                    // The process may have ended already.
                    let _ = kill_process(id, signal);
                }
            }
            while !self.group.processes().is_empty() && begun.elapsed() < Duration::from_secs(10) {
                let _ = self.child.try_wait();
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        let _ = self.child.wait();
        self.group.remove();
    }
}

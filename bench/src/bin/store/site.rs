//! An object store and the servers that use it.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use bench::load::Result;
use bench::load::client::LoadClient;
use bench::load::server::BenchServer;

use crate::bucket::BenchBucket;

/// The program to measure, and the delay of its store.
pub(crate) struct SiteOptions {
    pub(crate) pronto: PathBuf,
    pub(crate) delay: Duration,
}

/// A store, and a directory for caches and configurations.
pub(crate) struct StoreSite {
    pub(crate) bucket: BenchBucket,
    pronto: PathBuf,
    scratch: tempfile::TempDir,
}

/// A server with a cache of its own, and a client of it.
pub(crate) struct ServedClient {
    pub(crate) client: LoadClient,
    pub(crate) server: BenchServer,
    cache: PathBuf,
}

/// The URL of the store.
const STORE: &str = "s3://bucket/git";

/// The tasks of a server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SiteRole {
    /// Only requests, so that all calls to the store belong to requests.
    Serve,
    /// Requests and upkeep.
    Both,
}

impl SiteRole {
    fn name(self) -> &'static str {
        match self {
            SiteRole::Serve => "serve",
            SiteRole::Both => "both",
        }
    }
}

impl StoreSite {
    pub(crate) fn new(start: &SiteOptions) -> Result<Self> {
        let failed = |error| format!("cannot make a directory: {error}");
        let pronto = start.pronto.canonicalize();
        Ok(StoreSite {
            bucket: BenchBucket::start()?,
            pronto: pronto.map_err(|error| format!("'{}': {error}", start.pronto.display()))?,
            scratch: tempfile::tempdir().map_err(failed)?,
        })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// Imports a Git repository into the store.
    pub(crate) fn import(&self, repository: &Path, name: &str) -> Result<()> {
        let mut command = Command::new("env");
        command.args(self.bucket.variables()).arg(&self.pronto);
        command.args(["store", "-q", "import"]).arg(repository);
        let output = command.args([STORE, name]).output();
        let output = output.map_err(|error| format!("cannot run pronto: {error}"))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    /// Starts a server on which anonymous users may push.
    pub(crate) fn serve(&self, name: &str, role: SiteRole) -> Result<ServedClient> {
        let failed = |error| format!("cannot prepare a server: {error}");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        drop(listener);
        let cache = self.path(name);
        let text = format!(
            "[http]\nlisten = [\"{address}\"]\n[[grant]]\nrepository = \"**\"\nusers = [\"anonymous\"]\n\
             role = \"admin\"\n[limits]\nconnections_per_address = 1024\nuser_share = 100\n\
             [store]\nurl = \"{STORE}\"\ncache = \"{}\"\nrole = \"{}\"\n",
            cache.display(),
            role.name()
        );
        let file = self.path(&format!("{name}.toml"));
        std::fs::write(&file, text).map_err(failed)?;
        let mut command = vec!["env".to_owned()];
        command.extend(self.bucket.variables());
        command.push(self.pronto.display().to_string());
        command.extend(["serve", "--config"].map(str::to_owned));
        command.push(file.display().to_string());
        Ok(ServedClient {
            client: LoadClient::new(&format!("http://{address}/"), None)?,
            server: BenchServer::start(&command, address)?,
            cache,
        })
    }
}

impl ServedClient {
    /// Returns the size of the cache on disk in bytes.
    pub(crate) fn cache_bytes(&self) -> u64 {
        let output = Command::new("du").args(["-sk"]).arg(&self.cache).output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        let kib = text
            .ok()
            .and_then(|text| text.split('\t').next()?.parse::<u64>().ok());
        kib.unwrap_or(0) * 1024
    }
}

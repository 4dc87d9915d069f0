//! Resolves the user's HTTP settings for each requested URL.

use std::time::Duration;

use bstr::{BStr, BString, ByteSlice};
use pronto_wire::pktline::MAX_LINE;
use pronto_wire::transport::LowSpeed;
use pronto_wire::transport::http::{
    CredentialProvider, ExtraHeader, Options, Redirects, Settings as Web, UrlSettings,
};
use pronto_wire::url::{Url, UrlOrigin};

use super::credentials::Helpers;
use super::foreign;
use super::lookup::Lookup;
use super::settings::Settings;
use crate::config::{Config, ConfigKey, NormalUrl};
use crate::environment::Environment;
use crate::{Error, ErrorKind, Result};

/// A function that wraps the credentials for a URL before they are used.
pub(crate) type Wrap =
    Box<dyn Fn(Box<dyn CredentialProvider>) -> Box<dyn CredentialProvider> + Send>;

/// The user's HTTP settings: the configuration, the environment and the options of the command.
pub(super) struct WebSettings {
    pub(super) config: Config,
    pub(super) environment: Environment,
    pub(super) settings: Settings,
    pub(super) wrap: Wrap,
    pub(super) logins: Logins,
}

/// The origin whose requests use `~/.netrc`. The file has hosts without ports and schemes. A server
/// that sends a URL must not choose the port that receives the password.
pub(super) enum Logins {
    /// The origin of the first URL, which the user named.
    OfFirst,
    /// This origin, or no origin.
    Of(Option<UrlOrigin>),
}

impl Logins {
    /// Whether requests to `url` use the file.
    fn are_for(&mut self, url: &Url) -> bool {
        if let Logins::OfFirst = self {
            *self = Logins::Of(Some(url.origin().clone()));
        }
        matches!(self, Logins::Of(Some(origin)) if origin == url.origin())
    }
}

impl Web for WebSettings {
    fn for_url(&mut self, url: &Url) -> Result<UrlSettings, pronto_wire::Error> {
        let lookup = Lookup {
            config: &self.config,
            environment: &self.environment,
            url,
        };
        let found = lookup.options(&self.settings).and_then(|options| {
            let own = self.environment.server();
            let git = self.settings.server.as_deref().or(own);
            let helpers = Helpers::new(url, git, &self.config, &self.environment)?;
            Ok((options, helpers))
        });
        let (options, mut helpers) = found.map_err(to_wire)?;
        if !self.logins.are_for(url) {
            helpers.forget_netrc();
        }
        let mut settings = UrlSettings::default();
        settings.options = options;
        settings.credentials = Some((self.wrap)(Box::new(helpers)));
        Ok(settings)
    }
}

/// Checks that the settings for `url` are supported.
pub(super) fn check(
    url: &Url,
    settings: &Settings,
    config: &Config,
    environment: &Environment,
) -> Result<()> {
    let lookup = Lookup {
        config,
        environment,
        url,
    };
    lookup.options(settings).map(drop)
}

fn to_wire(error: Error) -> pronto_wire::Error {
    use pronto_wire::ErrorKind as Wire;
    error.map_kind(|kind| match kind {
        ErrorKind::Unsupported => Wire::Unsupported,
        ErrorKind::InvalidInput => Wire::Address,
        _ => Wire::Local,
    })
}

impl Lookup<'_> {
    fn options(&self, settings: &Settings) -> Result<Options> {
        let proxy = match &settings.proxy {
            Some(proxy) => Some(proxy.to_string()),
            None => self.text("proxy")?.or_else(|| self.proxy()),
        };
        let mut options = Options::default();
        options.proxy = proxy;
        options.no_proxy = self.first_of(&["no_proxy", "NO_PROXY"]);
        options.ssl_verify =
            !self.is_set("GIT_SSL_NO_VERIFY") && self.boolean("sslverify", true)?;
        options.ssl_ca_info = self.file("GIT_SSL_CAINFO", "sslcainfo")?;
        options.ssl_ca_path = self.file("GIT_SSL_CAPATH", "sslcapath")?;
        options.ssl_cert = self.file("GIT_SSL_CERT", "sslcert")?;
        options.ssl_key = self.file("GIT_SSL_KEY", "sslkey")?;
        options.extra_headers = extra_headers(self.config, self.url.normal());
        options.user_agent = match self.environment.text("GIT_HTTP_USER_AGENT") {
            Some(agent) => Some(agent.to_owned()),
            None => self.text("useragent")?,
        };
        options.follow_redirects = self.redirects()?;
        options.accept_language = None;
        options.low_speed = self.low_speed()?;
        options.post_buffer_bytes = self.post_buffer_bytes()?;
        foreign::check(self, &options, settings)?;
        Ok(options)
    }

    fn redirects(&self) -> Result<Redirects> {
        let Some(entry) = self.entry("followredirects") else {
            return Ok(Redirects::Initial);
        };
        if entry.value == Some("initial".into()) {
            return Ok(Redirects::Initial);
        }
        Ok(match entry.bool()? {
            true => Redirects::Always,
            false => Redirects::Never,
        })
    }

    /// Returns `http.postBuffer`, but at least the size of one packet.
    fn post_buffer_bytes(&self) -> Result<usize> {
        let set = self
            .entry("postbuffer")
            .map(|entry| entry.u64())
            .transpose()?;
        let set = set.and_then(|set| usize::try_from(set).ok());
        let usual = Options::default().post_buffer_bytes;
        Ok(set.unwrap_or(usual).max(MAX_LINE))
    }

    /// Returns the low speed limit. As in Git, both settings must be set (`http.lowSpeedLimit`,
    /// `http.lowSpeedTime`).
    fn low_speed(&self) -> Result<Option<LowSpeed>> {
        let number = |variable: &str, name: &str| -> Result<u64> {
            if let Some(value) = self.environment.text(variable) {
                return Ok(value.trim().parse().unwrap_or(0));
            }
            let value = self.entry(name).map(|entry| entry.i64()).transpose()?;
            Ok(value.and_then(|value| value.try_into().ok()).unwrap_or(0))
        };
        let limit = number("GIT_HTTP_LOW_SPEED_LIMIT", "lowspeedlimit")?;
        let seconds = number("GIT_HTTP_LOW_SPEED_TIME", "lowspeedtime")?;
        let time = Duration::from_secs(seconds.min(u64::from(u32::MAX)));
        Ok((limit > 0 && seconds > 0).then_some(LowSpeed { limit, time }))
    }

    /// Returns the proxy of the environment. `HTTP_PROXY` in capitals is ignored, because web
    /// servers set that variable from a request header for the programs that they run.
    fn proxy(&self) -> Option<String> {
        match self.url.scheme() {
            "https" => self.first_of(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]),
            _ => self.first_of(&["http_proxy", "all_proxy", "ALL_PROXY"]),
        }
    }
}

/// Returns the values of `http.extraHeader`, and of `http.<url>.extraHeader` for this URL, in
/// order.
fn extra_headers(config: &Config, url: &NormalUrl) -> Vec<ExtraHeader> {
    let mut headers = Vec::new();
    for entry in config.iter() {
        let key = ConfigKey::split(entry.key);
        let meant = key.section == "http"
            && key.variable == "extraheader"
            && key
                .subsection
                .is_none_or(|pattern| url.matched_by(pattern).is_some());
        match entry.value {
            Some(value) if meant && value.is_empty() => headers.clear(),
            Some(value) if meant => headers.push(ExtraHeader {
                line: value.to_string(),
                for_url: key.subsection.is_some(),
            }),
            _ => {}
        }
    }
    headers
}

/// Returns the program that connects to `host` for `git://`, if there is one (`GIT_PROXY_COMMAND`,
/// `core.gitProxy`).
pub(super) fn git_proxy(
    host: &BStr,
    config: &Config,
    environment: &Environment,
) -> Option<BString> {
    if let Some(program) = environment.bytes("GIT_PROXY_COMMAND") {
        return Some(program.into()).filter(|program: &BString| !program.is_empty());
    }
    let program = config.strings("core.gitproxy").find_map(|value| {
        let Some((program, domain)) = value.split_once_str(" for ") else {
            return Some(value.as_bytes());
        };
        let before = host.strip_suffix(domain)?;
        (before.is_empty() || before.ends_with(b".")).then_some(program)
    })?;
    (!program.is_empty() && program != b"none").then(|| program.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Loader;

    fn config(lines: &str) -> (tempfile::TempDir, Config, Environment) {
        let home = tempfile::tempdir().expect("a folder");
        std::fs::write(home.path().join("config"), lines).expect("a file");
        let mut environment = Environment::empty(home.path());
        environment.set("GIT_CONFIG_GLOBAL", home.path().join("config"));
        let mut loader = Loader::new(&environment, None);
        loader.global();
        let config = loader.load().expect("well formed");
        (home, config, environment)
    }

    #[test]
    fn the_first_program_for_the_domain_connects() {
        let lines = "[core]\ngitProxy = none for plain.example\ngitProxy = a for example\n\
                     gitProxy = b for host\ngitProxy = c";
        let (_home, config, mut environment) = config(lines);
        let proxy = |host: &str, environment: &Environment| {
            let found = git_proxy(host.into(), &config, environment);
            found.unwrap_or_default().to_string()
        };
        assert_eq!(proxy("x.example", &environment), "a");
        assert_eq!(proxy("plain.example", &environment), "");
        assert_eq!(proxy("host", &environment), "b");
        assert_eq!(proxy("myhost", &environment), "c");
        environment.set("GIT_PROXY_COMMAND", "d");
        assert_eq!(proxy("host", &environment), "d");
    }

    #[test]
    fn what_is_set_for_a_url_holds_there_only() {
        let lines = "[http \"https://a.example\"]\nextraHeader = X: a\nproxy = http://p:1\n\
                     pinnedPubkey = sha256//x\nlowSpeedLimit = 7\n\
                     [http]\nlowSpeedTime = 3\nextraHeader = Y: b";
        let (_home, config, environment) = config(lines);
        let options = |url: &str| {
            let url = Url::parse(url.into()).expect("a URL");
            let lookup = Lookup {
                config: &config,
                environment: &environment,
                url: &url,
            };
            lookup.options(&Settings::default())
        };
        let other = options("https://b.example/x").expect("nothing foreign");
        assert_eq!((other.proxy, other.low_speed), (None, None));
        assert_eq!(other.extra_headers.len(), 1);
        let plain = options("http://a.example/x").expect("nothing foreign");
        assert_eq!(plain.extra_headers.len(), 1);
        let error = options("https://a.example/x").expect_err("a pinned key");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
}

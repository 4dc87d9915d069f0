//! Looks up the hosts of a database like the rest of pronto, because a static program must not use
//! the C library for it.

use std::io;
use std::time::Duration;

use pronto_io::hosts;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// Returns `config` with each address of its hosts, in their order. The names stay those of the
/// certificates. Hosts without an address are omitted if there are others.
///
/// # Errors
/// Fails as [`hosts::resolve`] does, for the last host, if no host has an address.
pub(super) async fn with_addresses(config: &Config, within: Duration) -> io::Result<Config> {
    let is_path = |host: &Host| !matches!(host, Host::Tcp(_));
    if !config.get_hostaddrs().is_empty() || config.get_hosts().iter().any(is_path) {
        // Nothing to look up: a path cannot be given an address.
        return Ok(config.clone());
    }
    let mut found = without_hosts(config);
    let mut failure = None;
    for (at, host) in config.get_hosts().iter().enumerate() {
        let Host::Tcp(host) = host else { continue };
        let ports = config.get_ports();
        let port = *ports.get(at).or_else(|| ports.first()).unwrap_or(&PORT);
        let name = host.clone();
        let looked_up = move || hosts::resolve(&name, port, within);
        match tokio::task::spawn_blocking(looked_up).await? {
            Ok(addresses) => {
                for address in addresses {
                    found.host(host).hostaddr(address.ip()).port(port);
                }
            }
            Err(error) => failure = Some(error),
        }
    }
    match failure {
        Some(error) if found.get_hosts().is_empty() => Err(error),
        _ => Ok(found),
    }
}

/// The default port of PostgreSQL.
pub(super) const PORT: u16 = 5432;

/// Returns the parameters of `config` that are not about the hosts.
fn without_hosts(config: &Config) -> Config {
    let mut copy = Config::new();
    copy.ssl_mode(config.get_ssl_mode())
        .ssl_negotiation(config.get_ssl_negotiation())
        .keepalives(config.get_keepalives())
        .keepalives_idle(config.get_keepalives_idle())
        .target_session_attrs(config.get_target_session_attrs())
        .channel_binding(config.get_channel_binding())
        .load_balance_hosts(config.get_load_balance_hosts());
    if let Some(interval) = config.get_keepalives_interval() {
        copy.keepalives_interval(interval);
    }
    if let Some(retries) = config.get_keepalives_retries() {
        copy.keepalives_retries(retries);
    }
    if let Some(&timeout) = config.get_connect_timeout() {
        copy.connect_timeout(timeout);
    }
    if let Some(&timeout) = config.get_tcp_user_timeout() {
        copy.tcp_user_timeout(timeout);
    }
    if let Some(user) = config.get_user() {
        copy.user(user);
    }
    if let Some(password) = config.get_password() {
        copy.password(password);
    }
    if let Some(name) = config.get_dbname() {
        copy.dbname(name);
    }
    if let Some(options) = config.get_options() {
        copy.options(options);
    }
    if let Some(name) = config.get_application_name() {
        copy.application_name(name);
    }
    copy
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn found(url: &str) -> io::Result<Config> {
        let config: Config = url.parse().expect("an address");
        with_addresses(&config, Duration::from_secs(30)).await
    }

    #[tokio::test]
    async fn names_get_addresses_and_other_parameters_stay() {
        let all = "postgres://ann:secret@127.0.0.1:7,[::1]:8/git?application_name=x&connect_timeout=3\
                   &options=-cx=1&sslmode=require&target_session_attrs=read-write\
                   &channel_binding=disable&keepalives=0&keepalives_idle=4&keepalives_interval=5\
                   &keepalives_retries=6&tcp_user_timeout=7&load_balance_hosts=random\
                   &sslnegotiation=direct";
        let mut expected: Config = all.parse().expect("an address");
        expected.hostaddr([127, 0, 0, 1].into());
        expected.hostaddr(std::net::Ipv6Addr::LOCALHOST.into());
        assert_eq!(found(all).await.expect("both are addresses"), expected);
    }

    #[tokio::test]
    async fn a_host_without_an_address_is_omitted() {
        let url = "postgres://ann@no-such-host.invalid,127.0.0.1/git";
        let config = found(url).await.expect("the second is an address");
        assert_eq!(config.get_hosts(), [Host::Tcp("127.0.0.1".to_owned())]);
        assert_eq!(config.get_ports(), [PORT]);
        let alone = found("postgres://ann@no-such-host.invalid/git").await;
        assert_eq!(
            alone.expect_err("it has no address").kind(),
            io::ErrorKind::NotFound
        );
    }

    #[tokio::test]
    async fn paths_and_given_addresses_are_not_looked_up() {
        for url in [
            "postgres://ann@%2Ftmp/git",
            "postgres://ann@no-such-host.invalid/git?hostaddr=203.0.113.5",
        ] {
            let config: Config = url.parse().expect("an address");
            assert_eq!(found(url).await.expect("no lookup"), config);
        }
    }
}

//! Tests of SSH channels whose clients violate the order of the protocol.

use std::sync::Arc;

use russh::client::{self, AuthResult, Handler};
use russh::keys::PublicKeyOrCertificate;

use crate::stored::{Place, in_both_places};
use crate::support::{Server, Site};

in_both_places!(data_before_a_request_ends_the_connection);

/// A client that trusts every server.
struct Trusting;

impl Handler for Trusting {
    type Error = russh::Error;

    async fn check_server_key(&mut self, _: &PublicKeyOrCertificate) -> Result<bool, russh::Error> {
        Ok(true)
    }
}

fn data_before_a_request_ends_the_connection(place: Place) {
    let site = Site::new(place);
    let mut config = site.config("");
    config.ssh.listen = vec![([127, 0, 0, 1], 0).into()];
    let server = Server::start(&site, config);
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    runtime.block_on(async {
        let at = server.started.ssh[0];
        let config = Arc::new(client::Config::default());
        let mut session = client::connect(config, at, Trusting).await.expect("met");
        let login = session.authenticate_none("anonymous").await;
        assert!(matches!(login, Ok(AuthResult::Success)), "{login:?}");
        let mut channel = session.channel_open_session().await.expect("opened");
        channel.data(&b"0000"[..]).await.expect("sent");
        while channel.wait().await.is_some() {}
        assert!(session.is_closed());
    });
}

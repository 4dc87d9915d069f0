//! Reloads of the configuration of a running server.

use pronto::Environment;

use crate::config::{ReadConfig, waiting_for_restart};
use crate::log::Event;
use crate::setup::{SetupPurpose, setup};
use crate::state::ServerState;
use crate::{Error, ErrorKind};

/// Reloads the configuration, and reports the settings that apply only after a restart. A configuration that
/// is malformed, or cannot be used, changes nothing.
pub(crate) fn reload(state: &ServerState, read: Option<&ReadConfig>, environment: &Environment) {
    let before = state.setup();
    let no_file = || Error::new(ErrorKind::Config, "the server has no configuration file");
    let config = read.ok_or_else(no_file).and_then(|read| read());
    let reloaded =
        config.and_then(|config| setup(config, environment, &SetupPurpose::Reload(&before)));
    let setup = match reloaded {
        Ok(setup) => setup,
        Err(error) => {
            state.metrics.reload_failed();
            let error = Some(error.to_string());
            state.on_event(&Event::Reloaded { error });
            return;
        }
    };
    let settings = waiting_for_restart(&state.started, &setup.config);
    state.replace(setup);
    state.metrics.reloaded();
    state.on_event(&Event::Reloaded { error: None });
    if !settings.is_empty() {
        state.on_event(&Event::RestartNeeded { settings });
    }
}

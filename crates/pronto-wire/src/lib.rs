//! Git's smart protocol as state machines over bytes, and the transports under it.

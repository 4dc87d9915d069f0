//! The subcommands of `serve`: users, tokens and repositories.

/// The commands that manage the server of `--config`.
#[derive(clap::Subcommand, Clone, Debug)]
pub(super) enum Manage {
    /// Add, remove and list users, and their keys
    User {
        #[command(subcommand)]
        command: UserCommand,
    },
    /// Give a user a token, and print it
    Token {
        /// Revoke the other tokens of the user
        #[arg(long)]
        replace: bool,
        /// The name of the user
        name: String,
    },
    /// Create, remove and list repositories
    Repository {
        #[command(subcommand)]
        command: RepositoryCommand,
    },
}

#[derive(clap::Subcommand, Clone, Debug)]
pub(super) enum UserCommand {
    /// Add a user
    Add {
        /// The name of the user
        name: String,
    },
    /// Remove a user, with the keys and tokens
    Remove {
        /// The name of the user
        name: String,
    },
    /// List the users, with the numbers of their tokens and keys
    List {
        /// Print the list as JSON
        #[arg(long)]
        json: bool,
    },
    /// Add, remove and list public keys
    Key {
        #[command(subcommand)]
        command: KeyCommand,
    },
}

#[derive(clap::Subcommand, Clone, Debug)]
pub(super) enum RepositoryCommand {
    /// Create an empty repository
    Create {
        /// The name of the repository
        name: String,
    },
    /// Remove a repository
    Remove {
        /// The name of the repository
        name: String,
    },
    /// List the repositories
    List {
        /// Print the list as JSON
        #[arg(long)]
        json: bool,
    },
}

/// The commands of `serve user key`.
#[derive(clap::Subcommand, Clone, Debug)]
pub(super) enum KeyCommand {
    /// Add a public key, and print its fingerprint
    Add {
        /// The name of the user
        name: String,
        /// A file with a key of OpenSSH, '-' for standard input, or a key of netsync
        #[arg(value_name = "FILE|KEY")]
        key: String,
    },
    /// Remove a key
    Remove {
        /// The name of the user
        name: String,
        /// The fingerprint of the key
        fingerprint: String,
    },
    /// List keys
    List {
        /// The name of the user; all without
        name: Option<String>,
    },
    /// Print lines for sshd (AuthorizedKeysCommand)
    Authorized {
        /// Print only the key with this fingerprint
        fingerprint: Option<String>,
    },
}

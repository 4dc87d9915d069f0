//! Access control: roles for each repository, and rules for each ref.
//!
//! A grant gives its users a role in the repositories that a glob matches. The highest role that
//! any grant gives to a user applies. Rules restrict pushes further, for all users: a change of a
//! ref must satisfy each rule that matches the ref.

use pronto::glob::{MatchOptions, matches};

/// The rights of a user in a repository. A higher role includes the lower ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessRole {
    /// Clone and fetch.
    Read,
    /// Push, and all rights of [`AccessRole::Read`].
    Write,
    /// Create and remove the repository, and all rights of [`AccessRole::Write`]. In a grant for all
    /// repositories (`**`), this role also manages users.
    Admin,
}

/// The user name that represents every client in grants, including clients without a user.
pub const ANONYMOUS: &str = "anonymous";

/// The user name that represents every authenticated user in grants and rules.
pub const EVERY_USER: &str = "*";

/// The glob that matches every repository.
pub const EVERY_REPOSITORY: &str = "**";

/// A role for users in the repositories that a glob matches (`[[grant]]`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The glob of repository names (`repository`): `*` matches within a component of the name,
    /// `**` across components.
    pub repository: String,
    /// The names of the users (`users`). [`ANONYMOUS`] and [`EVERY_USER`] represent groups of users.
    pub users: Vec<String>,
    /// The role that the users get (`role`).
    pub role: AccessRole,
}

/// A restriction of ref updates by pushes (`[[rule]]`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefRule {
    /// The glob of the repository names for which the rule applies (`repository`).
    pub repository: String,
    /// The glob of the full ref names for which the rule applies (`refs`): `refs/heads/main`,
    /// `refs/tags/**`.
    pub refs: String,
    /// The users who may push to these refs (`users`). With `None`, roles alone decide.
    pub users: Option<Vec<String>>,
    /// Allow the creation of refs (`create`).
    pub create: bool,
    /// Allow the deletion of refs (`delete`).
    pub delete: bool,
    /// Allow updates that are not fast-forwards (`force`).
    pub force: bool,
}

impl RefRule {
    /// Returns the reason for a refusal of `what`. The reason names the rule, so that the client
    /// can find its administrator.
    fn reason(&self, what: &str) -> String {
        let RefRule {
            repository, refs, ..
        } = self;
        let reason = format!("{what}: rule for '{refs}' in '{repository}'");
        // The reason becomes a line of the protocol, so it must not contain control characters.
        reason.replace(char::is_control, "?")
    }
}

/// A requested ref update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestedRefChange<'a> {
    /// The full name of the ref.
    pub name: &'a [u8],
    /// Whether the update creates the ref.
    pub creates: bool,
    /// Whether the update deletes the ref.
    pub deletes: bool,
}

/// All grants and rules of a configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessRules {
    /// The grants. For each user, the highest role applies.
    pub grants: Vec<Grant>,
    /// The rules. A ref update must satisfy each rule that matches the ref.
    pub rules: Vec<RefRule>,
}

impl AccessRules {
    /// Returns the role of `user` in `repository`, or `None` if the user has no rights there.
    pub fn role(&self, user: Option<&str>, repository: &str) -> Option<AccessRole> {
        let matching = self.grants.iter().filter(|grant| {
            is_named(&grant.users, user) && fits(&grant.repository, repository.as_bytes())
        });
        matching.map(|grant| grant.role).max()
    }

    /// Returns whether `user` manages the server, which needs the role [`AccessRole::Admin`] for all
    /// repositories.
    pub fn is_server_admin(&self, user: &str) -> bool {
        self.grants.iter().any(|grant| {
            grant.role == AccessRole::Admin
                && grant.repository == EVERY_REPOSITORY
                && grant.users.iter().any(|name| name == user)
        })
    }

    /// Returns whether a grant names [`ANONYMOUS`].
    pub fn knows_anonymous(&self) -> bool {
        let mut names = self.grants.iter().flat_map(|grant| &grant.users);
        names.any(|name| name == ANONYMOUS)
    }

    /// Returns the reason for which a ref update is refused, or `None` if the update is allowed.
    /// This check runs before the objects are received, so it cannot test whether the update is a
    /// fast-forward; see [`forbids_force`](Self::forbids_force).
    pub fn refusal(
        &self,
        user: Option<&str>,
        repository: &str,
        change: &RequestedRefChange<'_>,
    ) -> Option<String> {
        for rule in self.rules_of(repository, change.name) {
            let may_push = match &rule.users {
                Some(users) => is_named(users, user),
                None => true,
            };
            if !may_push {
                return Some(rule.reason("you may not push to this ref"));
            }
            if change.deletes && !rule.delete {
                return Some(rule.reason("you may not delete this ref"));
            }
            if change.creates && !rule.create {
                return Some(rule.reason("you may not create this ref"));
            }
        }
        None
    }

    /// Returns the reason for which a ref accepts only fast-forwards, or `None` if other updates
    /// are allowed.
    pub fn forbids_force(&self, repository: &str, name: &[u8]) -> Option<String> {
        let rule = self.rules_of(repository, name).find(|rule| !rule.force);
        rule.map(|rule| rule.reason("you may not push a non-fast-forward to this ref"))
    }

    fn rules_of<'a>(
        &'a self,
        repository: &'a str,
        name: &'a [u8],
    ) -> impl Iterator<Item = &'a RefRule> {
        self.rules.iter().filter(move |rule| {
            fits(&rule.repository, repository.as_bytes()) && fits(&rule.refs, name)
        })
    }
}

fn is_named(users: &[String], user: Option<&str>) -> bool {
    users.iter().any(|name| match (name.as_str(), user) {
        (ANONYMOUS, _) => true,
        (EVERY_USER, Some(_)) => true,
        (name, Some(user)) => name == user,
        (_, None) => false,
    })
}

pub(crate) fn fits(glob: &str, name: &[u8]) -> bool {
    let how = MatchOptions {
        in_components: true,
        fold_case: false,
    };
    matches(glob.as_bytes(), name, how)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access() -> AccessRules {
        let grant = |repository: &str, users: &[&str], role| Grant {
            repository: repository.to_owned(),
            users: users.iter().map(|user| (*user).to_owned()).collect(),
            role,
        };
        AccessRules {
            grants: vec![
                grant("public/**", &["anonymous"], AccessRole::Read),
                grant("**", &["*"], AccessRole::Read),
                grant("team/*", &["alice"], AccessRole::Write),
                grant("**", &["root"], AccessRole::Admin),
                grant("team/x", &["bob"], AccessRole::Admin),
            ],
            rules: vec![RefRule {
                repository: "**".to_owned(),
                refs: "refs/heads/main".to_owned(),
                users: Some(vec!["alice".to_owned()]),
                create: true,
                delete: false,
                force: false,
            }],
        }
    }

    #[test]
    fn the_highest_role_counts() {
        let access = access();
        assert_eq!(access.role(None, "public/a/b"), Some(AccessRole::Read));
        assert_eq!(access.role(None, "team/x"), None);
        assert_eq!(access.role(Some("bob"), "team/y"), Some(AccessRole::Read));
        assert_eq!(
            access.role(Some("alice"), "team/x"),
            Some(AccessRole::Write)
        );
        assert_eq!(
            access.role(Some("alice"), "team/x/y"),
            Some(AccessRole::Read)
        );
        assert_eq!(access.role(Some("root"), "any"), Some(AccessRole::Admin));
        assert!(access.is_server_admin("root") && !access.is_server_admin("bob"));
    }

    #[test]
    fn every_rule_must_be_satisfied() {
        let access = access();
        let change = |deletes| RequestedRefChange {
            name: b"refs/heads/main",
            creates: false,
            deletes,
        };
        let refusal = |user, deletes| access.refusal(Some(user), "team/x", &change(deletes));
        assert_eq!(refusal("alice", false), None);
        let expected = "you may not delete this ref: rule for 'refs/heads/main' in '**'";
        assert_eq!(refusal("alice", true).as_deref(), Some(expected));
        assert!(refusal("root", false).is_some(), "rules hold for everyone");
        let expected =
            "you may not push a non-fast-forward to this ref: rule for 'refs/heads/main' in '**'";
        let forbids = |name: &[u8]| access.forbids_force("team/x", name);
        assert_eq!(forbids(b"refs/heads/main").as_deref(), Some(expected));
        assert_eq!(forbids(b"refs/heads/main2"), None);
    }
}

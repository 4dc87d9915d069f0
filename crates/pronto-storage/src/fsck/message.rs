//! Findings about objects, with their default severities.

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FsckSeverity {
    /// The object is rejected. The severity cannot be lowered.
    Fatal,
    /// The object is rejected.
    Error,
    /// The finding is reported. Strict checks reject the object.
    Warn,
    /// The finding is reported like a warning. Strict checks do not reject the object.
    Info,
    /// The finding is ignored.
    Ignore,
}

/// Declares the messages with their message ids.
macro_rules! messages {
    ($($variant:ident $name:literal $level:ident,)*) => {
        /// A defect of an object, with Git's message id.
        #[expect(missing_docs, reason = "the names are Git's, which explains them in fsck(1)")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Message {
            $($variant,)*
        }

        impl Message {
            /// All messages.
            pub const ALL: &[Message] = &[$(Message::$variant,)*];

            /// Returns the message id, for example `badDate`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Message::$variant => $name,)*
                }
            }

            /// Returns the default severity.
            pub fn level(self) -> FsckSeverity {
                match self {
                    $(Message::$variant => FsckSeverity::$level,)*
                }
            }
        }
    };
}

messages! {
    NulInHeader "nulInHeader" Fatal,
    UnterminatedHeader "unterminatedHeader" Fatal,
    BadDate "badDate" Error,
    BadDateOverflow "badDateOverflow" Error,
    BadEmail "badEmail" Error,
    BadName "badName" Error,
    BadObjectSha1 "badObjectSha1" Error,
    BadParentSha1 "badParentSha1" Error,
    BadTagName "badTagName" Info,
    BadTimezone "badTimezone" Error,
    BadTree "badTree" Error,
    BadTreeSha1 "badTreeSha1" Error,
    BadType "badType" Error,
    BadFilemode "badFilemode" Info,
    DuplicateEntries "duplicateEntries" Error,
    EmptyName "emptyName" Warn,
    ExtraHeaderEntry "extraHeaderEntry" Ignore,
    FullPathname "fullPathname" Warn,
    GitattributesBlob "gitattributesBlob" Error,
    GitattributesLarge "gitattributesLarge" Error,
    GitattributesLineLength "gitattributesLineLength" Error,
    GitattributesMissing "gitattributesMissing" Error,
    GitattributesSymlink "gitattributesSymlink" Info,
    GitignoreSymlink "gitignoreSymlink" Info,
    GitmodulesBlob "gitmodulesBlob" Error,
    GitmodulesLarge "gitmodulesLarge" Error,
    GitmodulesMissing "gitmodulesMissing" Error,
    GitmodulesName "gitmodulesName" Error,
    GitmodulesParse "gitmodulesParse" Info,
    GitmodulesPath "gitmodulesPath" Error,
    GitmodulesSymlink "gitmodulesSymlink" Error,
    GitmodulesUpdate "gitmodulesUpdate" Error,
    GitmodulesUrl "gitmodulesUrl" Error,
    HasDot "hasDot" Warn,
    HasDotdot "hasDotdot" Warn,
    HasDotgit "hasDotgit" Warn,
    LargePathname "largePathname" Warn,
    MailmapSymlink "mailmapSymlink" Info,
    MissingAuthor "missingAuthor" Error,
    MissingCommitter "missingCommitter" Error,
    MissingEmail "missingEmail" Error,
    MissingNameBeforeEmail "missingNameBeforeEmail" Error,
    MissingObject "missingObject" Error,
    MissingSpaceBeforeDate "missingSpaceBeforeDate" Error,
    MissingSpaceBeforeEmail "missingSpaceBeforeEmail" Error,
    MissingTag "missingTag" Error,
    MissingTagEntry "missingTagEntry" Error,
    MissingTaggerEntry "missingTaggerEntry" Info,
    MissingTree "missingTree" Error,
    MissingTreeObject "missingTreeObject" Error,
    MissingType "missingType" Error,
    MissingTypeEntry "missingTypeEntry" Error,
    MultipleAuthors "multipleAuthors" Error,
    NulInCommit "nulInCommit" Warn,
    NullSha1 "nullSha1" Warn,
    TreeNotSorted "treeNotSorted" Error,
    UnknownType "unknownType" Error,
    ZeroPaddedDate "zeroPaddedDate" Error,
    ZeroPaddedFilemode "zeroPaddedFilemode" Warn,
}

impl Message {
    /// Returns the message with the message id `name`, ignoring case.
    pub fn named(name: &[u8]) -> Option<Message> {
        let same = |message: &&Message| message.name().as_bytes().eq_ignore_ascii_case(name);
        Message::ALL.iter().find(same).copied()
    }
}

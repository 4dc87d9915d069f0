//! The tables of typed settings and their readers.

use super::kinds::{self, Kind};
use super::{Readers as R, TypedKey};

/// The values of `color.*` booleans: whether output is coloured.
const COLORS: Kind = Kind::BoolOr(&["never", "always", "auto"]);
/// The values of `core.checkStat`: the stat data to compare.
const STAT_CHECKS: Kind = Kind::Words(
    &["default", "minimal"],
    "invalid value for '{key}': '{value}'",
);
/// The values of `core.disambiguate`: the object types that an abbreviated id may mean.
const HINTS: Kind = Kind::Words(
    &["none", "commit", "committish", "tree", "treeish", "blob"],
    "unknown hint type for '{key}': {value}",
);
/// The values of `core.createObject`: the methods of creating an object file.
const CREATIONS: Kind = Kind::FatalWords(
    &["rename", "link"],
    "invalid mode for object creation: {value}",
);
/// The values of `branch.autoSetupRebase`: new branches that are rebased by `pull`.
const REBASES: Kind = Kind::ExactWords(
    &["never", "local", "remote", "always"],
    "malformed value for {key}",
);
/// The values of `fetch.negotiationAlgorithm`.
const NEGOTIATIONS: Kind = Kind::FatalWords(
    &["skipping", "noop", "consecutive", "default"],
    "unknown fetch negotiation algorithm '{value}'",
);
/// The values of `transfer.credentialsInUrl`: whether a URL may contain a password.
const CREDENTIALS: Kind = Kind::FatalWords(
    &["allow", "warn", "die"],
    "unrecognized value transfer.credentialsInUrl: '{value}'",
);
/// The values of `diff.algorithm`.
const DIFF_ALGORITHMS: Kind = Kind::Words(
    &["myers", "default", "minimal", "patience", "histogram"],
    "unknown value for config '{key}': {value}",
);
/// The values of `merge.conflictStyle`.
const STYLES: Kind = Kind::ExactWords(
    &["merge", "diff3", "zdiff3"],
    "unknown style '{value}' given for '{key}'",
);
/// The values of `diff.ignoreSubmodules`.
const IGNORED_SUBMODULES: Kind = Kind::FatalExactWords(
    &["all", "untracked", "dirty", "none"],
    "bad --ignore-submodules argument: {value}",
);
/// The output of `fetch`.
const OUTPUTS: Kind = Kind::FatalWords(
    &["full", "compact"],
    "invalid value for 'fetch.output': '{value}'",
);
/// The value of `submodule.fetchJobs`.
const JOBS: Kind = Kind::Natural("negative values not allowed for submodule.fetchJobs");
/// The value of `fetch.parallel`.
const PARALLEL: Kind = Kind::Natural("fetch.parallel cannot be negative");
/// The value of `pack.threads`.
const THREADS: Kind = Kind::Natural("invalid number of threads specified ({})");
/// The values of `receive.denyCurrentBranch` and `receive.denyDeleteCurrent`.
const DENIALS: Kind = Kind::BoolOr(&["ignore", "warn", "refuse", "updateinstead"]);
/// The values of `branch.autoSetupMerge`: new branches that get an upstream.
const TRACKING: Kind = Kind::BoolOrExactly(&["always", "inherit", "simple"]);
/// The values of settings that enable rename detection, such as `diff.renames`.
const RENAMES: Kind = Kind::BoolOr(&["copies", "copy"]);

/// The readers of the settings that every command checks, including `init`.
const BASIC: R = R::DEFAULT.or(R::CORE);

pub(super) const fn key(name: &'static str, kind: Kind, readers: R) -> TypedKey {
    TypedKey {
        name,
        kind,
        readers,
    }
}

/// The typed settings that commands check when they start, sorted by name.
pub static KEYS: &[TypedKey] = &[
    key("add.ignore-errors", Kind::Bool, R::ADD),
    key("add.ignoreerrors", Kind::Bool, R::ADD),
    key("attr.tree", Kind::Text, R::DEFAULT),
    key("author.email", Kind::Text, R::DEFAULT),
    key("author.name", Kind::Text, R::DEFAULT),
    key("branch.autosetupmerge", TRACKING, R::DEFAULT),
    key("branch.autosetuprebase", REBASES, R::DEFAULT),
    key("checkout.guess", Kind::Bool, R::CHECKOUT),
    key("clean.requireforce", Kind::Bool, R::CLEAN),
    key("clone.defaultremotename", Kind::Text, R::CLONE),
    key("clone.filtersubmodules", Kind::Bool, R::CLONE),
    key("clone.rejectshallow", Kind::Bool, R::CLONE),
    key("color.advice", COLORS, R::DEFAULT),
    key("color.diff", COLORS, R::DIFF_UI),
    key("color.interactive", COLORS, R::CLEAN),
    key("color.pager", Kind::Bool, R::DEFAULT),
    key("color.push", COLORS, R::PUSH),
    key("color.status", COLORS, R::STATUS),
    key("color.ui", COLORS, R::COLOR),
    key("column.clean", Kind::Other(kinds::columns), R::CLEAN),
    key("column.status", Kind::Other(kinds::columns), R::STATUS),
    key(
        "column.ui",
        Kind::Other(kinds::columns),
        R::CLEAN.or(R::STATUS),
    ),
    key("commit.cleanup", Kind::Text, R::COMMIT),
    key("commit.gpgsign", Kind::Bool, R::COMMIT),
    key("commit.status", Kind::Bool, R::COMMIT),
    key("commit.template", Kind::Path, R::COMMIT),
    key("commit.verbose", Kind::BoolOrInt, R::COMMIT),
    key("commitgraph.changedpaths", Kind::Bool, R::COMMIT_GRAPH),
    key("commitgraph.changedpathsversion", Kind::Int, R::REPOSITORY),
    key("commitgraph.generationversion", Kind::Int, R::REPOSITORY),
    key("commitgraph.maxnewfilters", Kind::Int, R::COMMIT_GRAPH),
    key("commitgraph.readchangedpaths", Kind::Bool, R::REPOSITORY),
    key("committer.email", Kind::Text, R::DEFAULT),
    key("committer.name", Kind::Text, R::DEFAULT),
    key("core.abbrev", Kind::Other(kinds::abbreviation), BASIC),
    key("core.askpass", Kind::Text, BASIC),
    key("core.attributesfile", Kind::Path, BASIC),
    key("core.autocrlf", Kind::BoolOr(&["input"]), BASIC),
    key("core.bare", Kind::Bool, BASIC),
    key("core.bigfilethreshold", Kind::Size, R::CONTENTS),
    key("core.checkroundtripencoding", Kind::Text, BASIC),
    key("core.checkstat", STAT_CHECKS, BASIC),
    key("core.commentchar", Kind::Other(kinds::comment), BASIC),
    key("core.commentstring", Kind::Other(kinds::comment), BASIC),
    key("core.commitgraph", Kind::Bool, R::REPOSITORY),
    key("core.compression", Kind::Level("zlib"), BASIC),
    key("core.createobject", CREATIONS, BASIC),
    key(
        "core.deltabasecachelimit",
        Kind::Size,
        R::REPOSITORY.or(R::INDEX_PACK),
    ),
    key("core.disambiguate", HINTS, BASIC),
    key("core.editor", Kind::Text, BASIC),
    key("core.excludesfile", Kind::Path, BASIC),
    key("core.filemode", Kind::Bool, BASIC),
    key("core.fsync", Kind::Text, BASIC),
    key("core.fsyncmethod", Kind::Text, BASIC),
    key("core.fsyncobjectfiles", Kind::Bool, BASIC),
    key("core.hookspath", Kind::Path, R::PATHS),
    key("core.ignorecase", Kind::Bool, BASIC),
    key("core.ignorestat", Kind::Bool, BASIC),
    key("core.lockfilepid", Kind::Bool, BASIC),
    key(
        "core.logallrefupdates",
        Kind::TextBoolOr(&["always"]),
        R::REFERENCES,
    ),
    key("core.loosecompression", Kind::Level("zlib"), BASIC),
    key("core.maxtreedepth", Kind::Int, R::REPOSITORY),
    key("core.multipackindex", Kind::Bool, R::REPOSITORY),
    key("core.packedgitlimit", Kind::Size, R::REPOSITORY),
    key("core.packedgitwindowsize", Kind::Size, R::REPOSITORY),
    key("core.precomposeunicode", Kind::Bool, BASIC.or(R::UPLOAD)),
    key("core.preloadindex", Kind::Bool, R::PRELOAD),
    key("core.protecthfs", Kind::Bool, BASIC),
    key("core.protectntfs", Kind::Bool, BASIC),
    key("core.quotepath", Kind::Bool, BASIC),
    key("core.safecrlf", Kind::BoolOr(&["warn"]), BASIC),
    key("core.sparsecheckout", Kind::Bool, BASIC),
    key("core.sparsecheckoutcone", Kind::Bool, BASIC),
    key("core.symlinks", Kind::Bool, BASIC),
    key("core.trustctime", Kind::Bool, BASIC),
    key("core.untrackedcache", Kind::Text, R::REPOSITORY),
    key("core.usereplacerefs", Kind::Bool, R::REPOSITORY),
    key("core.warnambiguousrefs", Kind::Bool, R::NAMES),
    key("core.whitespace", Kind::Text, BASIC),
    key("diff.algorithm", DIFF_ALGORITHMS, R::DIFF_UI),
    key("diff.autorefreshindex", Kind::Bool, R::DIFF_UI),
    key("diff.color", COLORS, R::DIFF_UI),
    key(
        "diff.colormoved",
        Kind::Other(kinds::moved_lines),
        R::DIFF_UI,
    ),
    key("diff.colormovedws", Kind::Text, R::DIFF_UI),
    key(
        "diff.context",
        Kind::Other(kinds::context_lines),
        R::DIFF_UI,
    ),
    key("diff.dirstat", Kind::Text, R::DIFF),
    key("diff.dstprefix", Kind::Text, R::DIFF_UI),
    key("diff.external", Kind::Text, R::DIFF_UI),
    key(
        "diff.ignoresubmodules",
        IGNORED_SUBMODULES,
        R::DIFF_UI.or(R::CHECKOUT),
    ),
    key("diff.indentheuristic", Kind::Bool, R::DIFF),
    key(
        "diff.interhunkcontext",
        Kind::Other(kinds::context_lines),
        R::DIFF_UI,
    ),
    key("diff.mnemonicprefix", Kind::Bool, R::DIFF_UI),
    key("diff.noprefix", Kind::Bool, R::DIFF_UI),
    key("diff.orderfile", Kind::Path, R::DIFF_UI),
    key("diff.relative", Kind::Bool, R::DIFF_UI),
    key("diff.renamelimit", Kind::Int, R::STATUS.or(R::DIFF)),
    key("diff.renames", RENAMES, R::STATUS.or(R::DIFF_UI)),
    key("diff.srcprefix", Kind::Text, R::DIFF_UI),
    key("diff.statgraphwidth", Kind::Int, R::DIFF_UI),
    key("diff.statnamewidth", Kind::Int, R::DIFF_UI),
    key("diff.submodule", Kind::Text, R::DIFF_UI),
    key("diff.suppress-blank-empty", Kind::Bool, R::DIFF),
    key("diff.suppressblankempty", Kind::Bool, R::DIFF),
    key("diff.trustexitcode", Kind::Bool, R::DIFF_UI),
    key("diff.wordregex", Kind::Text, R::DIFF_UI),
    key(
        "diff.wserrorhighlight",
        Kind::Other(kinds::highlighted_spaces),
        R::DIFF,
    ),
    key("feature.experimental", Kind::Bool, R::REPOSITORY),
    key("feature.manyfiles", Kind::Bool, R::REPOSITORY),
    key("fetch.all", Kind::Bool, R::FETCH),
    key("fetch.fsckobjects", Kind::Bool, R::UNPACK),
    key("fetch.negotiationalgorithm", NEGOTIATIONS, R::REPOSITORY),
    key("fetch.output", OUTPUTS, R::FETCH),
    key("fetch.parallel", PARALLEL, R::FETCH),
    key("fetch.prune", Kind::Bool, R::FETCH),
    key("fetch.prunetags", Kind::Bool, R::FETCH),
    key(
        "fetch.recursesubmodules",
        Kind::Other(kinds::fetch_recursion),
        R::FETCH,
    ),
    key("fetch.showforcedupdates", Kind::Bool, R::FETCH),
    key("fetch.unpacklimit", Kind::Int, R::UNPACK),
    key("fetch.writecommitgraph", Kind::Bool, R::REPOSITORY),
    key(
        "fsmonitor.ipcthreads",
        Kind::Other(kinds::positive),
        R::MONITOR,
    ),
    key(
        "fsmonitor.starttimeout",
        Kind::Other(kinds::not_negative),
        R::MONITOR,
    ),
    key("gc.writecommitgraph", Kind::Bool, R::REPOSITORY),
    key("hook.jobs", Kind::Any, R::HOOKS),
    key("i18n.commitencoding", Kind::Text, R::DEFAULT),
    key("i18n.logoutputencoding", Kind::Text, R::DEFAULT),
    key("index.skiphash", Kind::Bool, R::REPOSITORY),
    key("index.sparse", Kind::Bool, R::REPOSITORY),
    key("index.threads", Kind::BoolOrInt, R::INDEX),
    key("index.version", Kind::Int, R::REPOSITORY),
    key("merge.conflictstyle", STYLES, R::CONFLICTS),
    key("pack.compression", Kind::Level("pack"), R::DEFAULT),
    key("pack.deltacachelimit", Kind::Int, R::PACK_OBJECTS),
    key("pack.deltacachesize", Kind::Int, R::PACK_OBJECTS),
    key("pack.depth", Kind::Int, R::PACK_OBJECTS),
    key(
        "pack.indexversion",
        Kind::Other(kinds::pack_version),
        R::INDEX_PACK.or(R::PACK_OBJECTS),
    ),
    key("pack.packsizelimit", Kind::Size, R::DEFAULT),
    key("pack.readreverseindex", Kind::Bool, R::REPOSITORY),
    key("pack.threads", THREADS, R::INDEX_PACK.or(R::PACK_OBJECTS)),
    key("pack.usebitmapboundarytraversal", Kind::Bool, R::REPOSITORY),
    key("pack.usebitmaps", Kind::Bool, R::PACK_OBJECTS),
    key("pack.usepathwalk", Kind::Bool, R::REPOSITORY),
    key("pack.usesparse", Kind::Bool, R::REPOSITORY),
    key("pack.window", Kind::Int, R::PACK_OBJECTS),
    key("pack.windowmemory", Kind::Size, R::PACK_OBJECTS),
    key(
        "pack.writebitmaphashcache",
        Kind::Bool,
        R::PACK_OBJECTS.or(R::MULTI_PACK_INDEX),
    ),
    key(
        "pack.writebitmaplookuptable",
        Kind::Bool,
        R::PACK_OBJECTS.or(R::MULTI_PACK_INDEX),
    ),
    key("pack.writebitmaps", Kind::Bool, R::REPACK),
    key(
        "pack.writereverseindex",
        Kind::Bool,
        R::INDEX_PACK.or(R::PACK_OBJECTS),
    ),
    key("pager.color", Kind::Bool, R::DEFAULT),
    key("push.autosetupremote", Kind::Bool, R::PUSH),
    key("push.default", Kind::Other(kinds::push_default), R::DEFAULT),
    key("push.followtags", Kind::Bool, R::PUSH),
    key(
        "push.gpgsign",
        Kind::Other(kinds::push_signature),
        R::PUSH.or(R::SEND_PACK),
    ),
    key("push.negotiate", Kind::Bool, R::PUSH.or(R::SEND_PACK)),
    key("push.pushoption", Kind::Text, R::PUSH),
    key(
        "push.recursesubmodules",
        Kind::Other(kinds::push_recursion),
        R::PUSH,
    ),
    key("push.usebitmaps", Kind::Bool, R::CONNECTION),
    key("push.useforceifincludes", Kind::Bool, R::PUSH),
    key("receive.advertiseatomic", Kind::Bool, R::RECEIVE),
    key("receive.advertisepushoptions", Kind::Bool, R::RECEIVE),
    key("receive.autogc", Kind::Bool, R::RECEIVE),
    key("receive.certnonceseed", Kind::Text, R::RECEIVE),
    key("receive.certnonceslop", Kind::Size, R::RECEIVE),
    key("receive.denycurrentbranch", DENIALS, R::RECEIVE),
    key("receive.denydeletecurrent", DENIALS, R::RECEIVE),
    key("receive.denydeletes", Kind::Bool, R::RECEIVE),
    key("receive.denynonfastforwards", Kind::Bool, R::RECEIVE),
    key("receive.fsckobjects", Kind::Bool, R::RECEIVE),
    key("receive.hiderefs", Kind::Text, R::RECEIVE),
    key("receive.keepalive", Kind::Int, R::RECEIVE),
    key("receive.maxinputsize", Kind::Long, R::RECEIVE),
    key("receive.procreceiverefs", Kind::Text, R::RECEIVE),
    key("receive.shallowupdate", Kind::Bool, R::RECEIVE),
    key("receive.unpacklimit", Kind::Int, R::RECEIVE),
    key("receive.updateserverinfo", Kind::Bool, R::RECEIVE),
    key("remote.pushdefault", Kind::Text, R::REMOTES),
    key("repack.cruftdepth", Kind::Text, R::REPACK),
    key("repack.cruftthreads", Kind::Text, R::REPACK),
    key("repack.cruftwindow", Kind::Text, R::REPACK),
    key("repack.cruftwindowmemory", Kind::Text, R::REPACK),
    key("repack.midxmustcontaincruft", Kind::Bool, R::REPACK),
    key("repack.midxnewlayerthreshold", Kind::Int, R::REPACK),
    key("repack.midxsplitfactor", Kind::Int, R::REPACK),
    key("repack.packkeptobjects", Kind::Bool, R::REPACK),
    key("repack.updateserverinfo", Kind::Bool, R::REPACK),
    key(
        "repack.usedeltabaseoffset",
        Kind::Bool,
        R::RECEIVE.or(R::REPACK).or(R::UNPACK),
    ),
    key("repack.usedeltaislands", Kind::Bool, R::REPACK),
    key("repack.writebitmaps", Kind::Bool, R::REPACK),
    key(
        "sparse.expectfilesoutsideofpatterns",
        Kind::Bool,
        R::DEFAULT,
    ),
    key("status.aheadbehind", Kind::Bool, R::STATUS),
    key("status.branch", Kind::Bool, R::STATUS),
    key("status.color", COLORS, R::STATUS),
    key("status.displaycommentprefix", Kind::Bool, R::STATUS),
    key("status.relativepaths", Kind::Bool, R::STATUS),
    key("status.renamelimit", Kind::Int, R::STATUS),
    key("status.renames", RENAMES, R::STATUS),
    key("status.short", Kind::Bool, R::STATUS),
    key("status.showstash", Kind::Bool, R::STATUS),
    key(
        "status.showuntrackedfiles",
        Kind::Other(kinds::untracked_files),
        R::STATUS,
    ),
    key("status.submodulesummary", Kind::BoolOrInt, R::STATUS),
    key("submodule.fetchjobs", JOBS, R::FETCH),
    key("submodule.recurse", Kind::Bool, R::RECURSE),
    key("tar.umask", Kind::Other(kinds::tar_umask), R::TAR),
    key(
        "transfer.advertisesid",
        Kind::Bool,
        R::CONNECTION.or(R::RECEIVE).or(R::UPLOAD),
    ),
    key("transfer.credentialsinurl", CREDENTIALS, R::CREDENTIALS),
    key("transfer.fsckobjects", Kind::Bool, R::RECEIVE.or(R::UNPACK)),
    key("transfer.hiderefs", Kind::Text, R::RECEIVE.or(R::UPLOAD)),
    key("transfer.unpacklimit", Kind::Int, R::RECEIVE.or(R::UNPACK)),
    key("uploadarchive.allowunreachable", Kind::Bool, R::ARCHIVE),
    key("uploadpack.allowanysha1inwant", Kind::Bool, R::UPLOAD),
    key("uploadpack.allowfilter", Kind::Bool, R::UPLOAD),
    key("uploadpack.allowreachablesha1inwant", Kind::Bool, R::UPLOAD),
    key("uploadpack.allowrefinwant", Kind::Bool, R::UPLOAD),
    key("uploadpack.allowsidebandall", Kind::Bool, R::UPLOAD),
    key("uploadpack.allowtipsha1inwant", Kind::Bool, R::UPLOAD),
    key("uploadpack.hiderefs", Kind::Text, R::UPLOAD),
    key("uploadpack.keepalive", Kind::Int, R::UPLOAD),
    key("uploadpackfilter.allow", Kind::Bool, R::UPLOAD),
    key("user.email", Kind::Text, R::DEFAULT),
    key("user.name", Kind::Text, R::DEFAULT),
    key("user.useconfigonly", Kind::Bool, R::DEFAULT),
    key("worktree.guessremote", Kind::Bool, R::WORKTREE),
    key("worktree.userelativepaths", Kind::Bool, R::WORKTREE),
];

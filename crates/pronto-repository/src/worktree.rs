//! The settings of the worktree: for checkout, status and conversions between files and blobs.

pub mod index;
pub mod linked;
mod pathspec;
pub mod siblings;
mod sparse;

use std::path::PathBuf;
use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};
use pronto_index::StatRules;
use pronto_io::pool::Workers;
use pronto_worktree::Protect;
use pronto_worktree::attributes::Files;
use pronto_worktree::checkout::{self, InPlace, ReflinkSources};
use pronto_worktree::filter::{AutoCrlf, Driver, Eol, MalformedSetting, SafeCrlf, Settings};
use pronto_worktree::sparse::Sparse;

use crate::config::ConfigEntry;
use crate::{Error, ErrorKind, Repository, Result};

/// The setting for the smallest number of files that are written with several workers.
const THRESHOLD: &str = "checkout.thresholdForParallelism";

impl Repository {
    /// Returns `core.fileMode`: whether the file system keeps executable bits.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if the value is not a boolean.
    pub fn trusts_file_mode(&self) -> Result<bool> {
        self.config().bool_or("core.filemode", true)
    }

    /// Returns `core.ignoreCase`: whether the file system ignores case in file names.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if the value is not a boolean.
    pub fn ignores_case(&self) -> Result<bool> {
        self.config().bool_or("core.ignorecase", false)
    }

    /// Returns the rules for comparing stat data (`core.trustCtime`, `core.checkStat`).
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if a value is malformed.
    pub fn stat_rules(&self) -> Result<StatRules> {
        let minimal = self.config().string("core.checkstat")?;
        Ok(StatRules {
            trust_ctime: self.config().bool_or("core.trustctime", true)?,
            check_stat: minimal.is_none_or(|value| !value.eq_ignore_ascii_case(b"minimal")),
        })
    }

    /// Returns which spellings of `.git` must not be written (`core.protectNTFS`, `core.protectHFS`).
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if a value is not a boolean.
    pub fn protection(&self) -> Result<Protect> {
        let default = Protect::default();
        Ok(Protect {
            ntfs: self.config().bool_or("core.protectntfs", default.ntfs)?,
            hfs: self.config().bool_or("core.protecthfs", default.hfs)?,
        })
    }

    /// Returns the attributes files outside of the worktree: those of the system, of the user
    /// (`core.attributesFile`) and of the repository (`info/attributes`).
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if `core.attributesFile` is not a path.
    pub fn attribute_files(&self) -> Result<Files> {
        let environment = self.environment();
        let mut global = Vec::new();
        if !environment.boolean("GIT_ATTR_NOSYSTEM", false)? {
            global.push(PathBuf::from("/etc/gitattributes"));
        }
        match self
            .config()
            .path("core.attributesfile", environment.home())?
        {
            Some(configured) => global.push(environment.resolve(configured)),
            None => {
                let home = environment
                    .path("XDG_CONFIG_HOME")
                    .filter(|path| !path.as_os_str().is_empty())
                    .map(PathBuf::from)
                    .or_else(|| environment.home().map(|home| home.join(".config")));
                global.extend(home.map(|home| home.join("git/attributes")));
            }
        }
        Ok(Files {
            global,
            info: Some(self.git_path("info/attributes")),
            ignore_case: self.ignores_case()?,
        })
    }

    /// Returns the settings for conversions between blobs and files. Git reads some settings only
    /// when it converts the first file. If such a setting is malformed, the conversion fails, not
    /// this method.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if a value is malformed.
    pub fn filter_settings(&self) -> Result<Settings> {
        let config = self.config();
        let mut settings = Settings::new(self.object_hash());
        settings.auto_crlf = match config.string("core.autocrlf") {
            Ok(Some(value)) if value.eq_ignore_ascii_case(b"input") => AutoCrlf::Input,
            _ if config.bool_or("core.autocrlf", false)? => AutoCrlf::Enabled,
            _ => AutoCrlf::Disabled,
        };
        settings.eol = match config
            .raw("core.eol")
            .map(|value| value.to_ascii_lowercase())
        {
            Some(value) if value == b"lf" => Some(Eol::Lf),
            Some(value) if value == b"crlf" => Some(Eol::CrLf),
            _ => None,
        };
        settings.safe_crlf = match config.string("core.safecrlf") {
            Ok(Some(value)) if value.eq_ignore_ascii_case(b"warn") => SafeCrlf::Warn,
            _ => match config.bool("core.safecrlf")? {
                None => SafeCrlf::Warn,
                Some(true) => SafeCrlf::Fail,
                Some(false) => SafeCrlf::Ignore,
            },
        };
        if let Some(list) = config.string("core.checkroundtripencoding")? {
            let names = list
                .split(|byte| b", \t".contains(byte))
                .filter(|name| !name.is_empty());
            settings.check_roundtrip = names.map(BString::from).collect();
        }
        for name in config.subsections("filter") {
            match self.driver(name) {
                Ok(driver) => settings.drivers.push(driver),
                Err(error) => {
                    let first = &mut settings.malformed_driver;
                    first.get_or_insert_with(|| MalformedSetting::new(&error));
                }
            }
        }
        if let Err(error) = config.u64("core.bigfilethreshold") {
            settings.malformed_threshold = Some(MalformedSetting::new(&error));
        }
        settings.worktree = self.work_tree().map(ToOwned::to_owned);
        let parameters = self.environment().bytes("GIT_CONFIG_PARAMETERS");
        settings.config_parameters = parameters.map(BString::from);
        // Filter programs discover the repository themselves if it is `.git` at the top of the
        // worktree.
        let usual = self.work_tree().map(|top| top.join(".git"));
        settings.git_dir =
            (usual.as_deref() != Some(self.git_dir())).then(|| self.git_dir().to_owned());
        Ok(settings)
    }

    fn driver(&self, name: &BStr) -> Result<Driver> {
        let key = |variable: &str| {
            let mut key = b"filter.".to_vec();
            key.extend_from_slice(name);
            key.push(b'.');
            key.extend_from_slice(variable.as_bytes());
            key
        };
        let command = |variable| -> Result<Option<BString>> {
            Ok(self.config().string(key(variable))?.map(ToOwned::to_owned))
        };
        Ok(Driver {
            name: name.to_owned(),
            clean: command("clean")?,
            smudge: command("smudge")?,
            process: command("process")?,
            required: self.config().bool_or(key("required"), false)?,
        })
    }

    /// Returns the options for writing files to the worktree (`checkout.workers`,
    /// `checkout.thresholdForParallelism`, `core.symlinks`). The current directory of the caller is
    /// kept. Malformed settings of parallel checkouts have no effect here, because Git reads these
    /// settings in the middle of a checkout: see
    /// [`check_parallel_checkout`](Self::check_parallel_checkout).
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] or [`ErrorKind::InvalidInput`] if a value is malformed.
    pub fn checkout_options(&self) -> Result<checkout::Options> {
        let mut options = checkout::Options::default();
        options.workers = self.checkout_workers().unwrap_or(Workers::ADAPTIVE);
        options.symlinks = self.config().bool_or("core.symlinks", true)?;
        options.keep_directory = self.directory_to_keep();
        options.reflink_sources = self.reflink_sources()?;
        options.in_place = self.in_place()?;
        if let Ok(Some(threshold)) = self.checkout_threshold() {
            options.threshold_for_parallelism = usize::try_from(threshold).unwrap_or(0);
        }
        if self
            .environment()
            .get("GIT_TEST_CHECKOUT_WORKERS")
            .is_some()
        {
            options.threshold_for_parallelism = 0;
        }
        Ok(options)
    }

    /// Returns the other worktrees as sources of reflinks, if `checkout.reflink` is on.
    fn reflink_sources(&self) -> Result<Option<Arc<ReflinkSources>>> {
        let value = self.config().string("checkout.reflink")?;
        let always = match value.map(|value| value.as_bytes()) {
            None | Some(b"auto") => false,
            Some(b"always") => true,
            Some(b"never") => return Ok(None),
            Some(other) => {
                let other = other.as_bstr();
                let message = format!(
                    "bad value '{other}' for 'checkout.reflink': use 'auto', 'never' or 'always'"
                );
                return Err(Error::new(ErrorKind::ConfigValue, message));
            }
        };
        let (common, own) = (self.common_dir().to_owned(), self.git_dir().to_owned());
        let find = move || siblings::siblings(&common, &own);
        let sources = ReflinkSources::new(self.object_hash(), always, find);
        Ok(Some(Arc::new(sources)))
    }

    /// Returns whether the content of existing files may be overwritten in place (`checkout.inPlace`).
    fn in_place(&self) -> Result<InPlace> {
        let value = self.config().string("checkout.inplace")?;
        match value.map(|value| value.as_bytes()) {
            None | Some(b"auto") => Ok(InPlace::Auto),
            Some(b"always") => Ok(InPlace::Always),
            Some(b"never") => Ok(InPlace::Never),
            Some(other) => {
                let other = other.as_bstr();
                let message = format!(
                    "bad value '{other}' for 'checkout.inPlace': use 'auto', 'never' or 'always'"
                );
                Err(Error::new(ErrorKind::ConfigValue, message))
            }
        }
    }

    /// Checks the settings of parallel checkouts (`checkout.workers`,
    /// `checkout.thresholdForParallelism`). Git reads these settings after it has removed files and
    /// before it writes files.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] or [`ErrorKind::InvalidInput`] if a value is
    /// malformed.
    pub fn check_parallel_checkout(&self) -> Result<()> {
        self.checkout_workers()?;
        self.checkout_threshold()?;
        Ok(())
    }

    fn checkout_threshold(&self) -> Result<Option<i32>> {
        let entry = self.config().entry_of(THRESHOLD);
        // The error message contains the key in the spelling of the lookup in Git.
        let entry = entry.map(|entry| ConfigEntry {
            key: THRESHOLD.into(),
            ..entry
        });
        entry.map(|entry| entry.i32()).transpose()
    }

    fn checkout_workers(&self) -> Result<Workers> {
        if let Some(text) = self.environment().text("GIT_TEST_CHECKOUT_WORKERS") {
            let number: i32 = text.parse().map_err(|_| {
                let message = format!("invalid value for GIT_TEST_CHECKOUT_WORKERS: '{text}'");
                Error::new(ErrorKind::InvalidInput, message)
            })?;
            return Ok(workers_of(number));
        }
        let Some(entry) = self.config().entry_of("checkout.workers") else {
            return Ok(Workers::ADAPTIVE);
        };
        if self.config().raw("checkout.workers") == Some(b"auto".as_bstr()) {
            return Ok(Workers::ADAPTIVE);
        }
        Ok(workers_of(entry.i32()?))
    }

    /// Returns the patterns of the sparse checkout; `None` if `core.sparseCheckout` is off or there are
    /// no patterns.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if a value is not a boolean, or [`ErrorKind::Io`] if the
    /// patterns cannot be read.
    pub fn sparse_checkout(&self) -> Result<Option<Sparse>> {
        if !self.is_sparse_checkout()? {
            return Ok(None);
        }
        let Some(text) = self.sparse_text()? else {
            return Ok(None);
        };
        let (sparse, unrecognized) = Sparse::parse(&text, self.uses_cone()?, self.ignores_case()?);
        self.note_unrecognized_pattern(unrecognized);
        Ok(Some(sparse))
    }
}

/// Returns the number of workers for the value of `checkout.workers`. As in Git, values below one stand
/// for the number of cores.
fn workers_of(number: i32) -> Workers {
    match usize::try_from(number) {
        Ok(number) if number >= 1 => Workers::Exactly(number),
        _ => Workers::Exactly(pronto_io::pool::cores()),
    }
}

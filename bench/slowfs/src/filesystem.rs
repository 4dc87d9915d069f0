//! Implements the FUSE calls. Each call is counted, waits for its delay, and is forwarded to the
//! real file.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite,
    Request, TimeOrNow, WriteFlags,
};
use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, Timestamps, Uid};

use crate::attributes;
use crate::handles::Handles;
use crate::listing::InodeListing;
use crate::model::{CallEnd, FsCall, Model};
use crate::nodes::Nodes;
use crate::reply::{self, os};

/// The attributes that the kernel caches for a name.
type Entry = (FileAttr, Generation);

/// A file system that forwards calls to one real directory.
#[derive(Debug)]
pub(crate) struct Slow {
    pub(crate) model: Arc<Model>,
    pub(crate) nodes: Nodes,
    files: Handles<File>,
    pub(crate) listings: Handles<InodeListing>,
}

impl Slow {
    pub(crate) fn new(root: &Path, model: Arc<Model>) -> std::io::Result<Self> {
        let nodes = Nodes::new(root, root.metadata()?.ino());
        Ok(Slow {
            model,
            nodes,
            files: Handles::default(),
            listings: Handles::default(),
        })
    }

    /// Returns the real path of `name` in the directory `parent`, by the model's rules for names.
    fn child(&self, parent: INodeNo, name: &OsStr) -> Result<PathBuf, Errno> {
        let directory = self.nodes.path(parent)?;
        let name = self.model.folding.resolve(&directory, name);
        Ok(directory.join(name))
    }

    pub(crate) fn entry(&self, path: PathBuf) -> Result<Entry, Errno> {
        let node = self.nodes.look_at(path)?;
        let attributes = attributes::of(&node.metadata, node.number);
        Ok((attributes, node.generation))
    }

    pub(crate) fn attributes(&self, inode: INodeNo) -> Result<FileAttr, Errno> {
        Ok(attributes::of(
            &self.nodes.path(inode)?.symlink_metadata()?,
            inode.0,
        ))
    }

    fn open_file(&self, path: &Path, flags: OFlags, mode: u32) -> Result<FileHandle, Errno> {
        let flags = flags | OFlags::CLOEXEC;
        let file = rustix::fs::open(path, flags, Mode::from_raw_mode(mode)).map_err(os)?;
        Ok(self.files.insert(File::from(file)))
    }

    /// Handles a call that creates `name` in `parent` with `make`.
    fn make(
        &self,
        call: FsCall,
        parent: INodeNo,
        name: &OsStr,
        reply: ReplyEntry,
        make: impl FnOnce(&Path) -> Result<(), Errno>,
    ) {
        let made = self.model.enter(call, parent).and_then(|_| {
            let path = self.child(parent, name)?;
            make(&path)?;
            self.entry(path)
        });
        self.reply_entry(made, reply);
    }

    fn reply_entry(&self, entry: Result<Entry, Errno>, reply: ReplyEntry) {
        match entry {
            Ok((attributes, generation)) => {
                reply.entry(&self.model.cache, &attributes, generation);
            }
            Err(error) => reply.error(error),
        }
    }

    fn reply_attributes(&self, attributes: Result<FileAttr, Errno>, reply: ReplyAttr) {
        match attributes {
            Ok(attributes) => reply.attr(&self.model.cache, &attributes),
            Err(error) => reply.error(error),
        }
    }
}

impl Filesystem for Slow {
    /// Permits parallel lookups in one directory, as on network file systems.
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        // Old kernels lack this capability.
        let _ = config.add_capabilities(InitFlags::FUSE_PARALLEL_DIROPS);
        if self.model.lists_attributes {
            let when = InitFlags::FUSE_DO_READDIRPLUS | InitFlags::FUSE_READDIRPLUS_AUTO;
            let _ = config.add_capabilities(when);
        }
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self.model.enter(FsCall::Lookup, parent).and_then(|_| {
            let path = self.child(parent, name)?;
            self.entry(path)
        });
        self.reply_entry(found, reply);
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let found = self
            .model
            .enter(FsCall::Getattr, inode)
            .and_then(|_| self.attributes(inode));
        self.reply_attributes(found, reply);
    }

    fn setattr(
        &self,
        _request: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let set = || -> Result<FileAttr, Errno> {
            let path = self.nodes.path(inode)?;
            if let Some(mode) = mode {
                rustix::fs::chmod(&path, Mode::from_raw_mode(mode)).map_err(os)?;
            }
            if uid.is_some() || gid.is_some() {
                let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
                rustix::fs::chownat(CWD, &path, uid, gid, AtFlags::SYMLINK_NOFOLLOW).map_err(os)?;
            }
            if let Some(size) = size {
                match handle.and_then(|handle| self.files.get(handle).ok()) {
                    Some(file) => file.set_len(size)?,
                    None => File::options().write(true).open(&path)?.set_len(size)?,
                }
            }
            if atime.is_some() || mtime.is_some() {
                let times = Timestamps {
                    last_access: attributes::timespec(atime),
                    last_modification: attributes::timespec(mtime),
                };
                rustix::fs::utimensat(CWD, &path, &times, AtFlags::SYMLINK_NOFOLLOW).map_err(os)?;
            }
            self.attributes(inode)
        };
        self.reply_attributes(
            self.model.enter(FsCall::Setattr, inode).and_then(|_| set()),
            reply,
        );
    }

    fn readlink(&self, _request: &Request, inode: INodeNo, reply: ReplyData) {
        let target = self.model.enter(FsCall::Readlink, inode).and_then(|_| {
            let path = self.nodes.path(inode)?;
            Ok(std::fs::read_link(path)?)
        });
        match target {
            Ok(target) => reply.data(target.as_os_str().as_bytes()),
            Err(error) => reply.error(error),
        }
    }

    fn mkdir(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        self.make(FsCall::Mkdir, parent, name, reply, |path| {
            rustix::fs::mkdir(path, Mode::from_raw_mode(mode & !umask)).map_err(os)
        });
    }

    fn unlink(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let done = self.model.enter(FsCall::Unlink, parent).and_then(|_| {
            let path = self.child(parent, name)?;
            let remove = || Ok(std::fs::remove_file(&path)?);
            self.nodes.remove(&path, remove)
        });
        reply::empty(done, reply);
    }

    fn rmdir(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let done = self.model.enter(FsCall::Rmdir, parent).and_then(|_| {
            let path = self.child(parent, name)?;
            let remove = || Ok(std::fs::remove_dir(&path)?);
            self.nodes.remove(&path, remove)
        });
        reply::empty(done, reply);
    }

    fn symlink(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        self.make(FsCall::Symlink, parent, name, reply, |path| {
            Ok(std::os::unix::fs::symlink(target, path)?)
        });
    }

    fn rename(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let done = self.model.enter(FsCall::Rename, parent).and_then(|_| {
            let (from, to) = (self.child(parent, name)?, self.child(new_parent, new_name)?);
            let flags = rustix::fs::RenameFlags::from_bits_retain(flags.bits());
            let rename = || rustix::fs::renameat_with(CWD, &from, CWD, &to, flags).map_err(os);
            self.nodes.rename(&from, &to, rename)
        });
        reply::empty(done, reply);
    }

    fn link(
        &self,
        _request: &Request,
        inode: INodeNo,
        parent: INodeNo,
        name: &OsStr,
        reply: ReplyEntry,
    ) {
        self.make(FsCall::Link, parent, name, reply, |path| {
            Ok(std::fs::hard_link(self.nodes.path(inode)?, path)?)
        });
    }

    fn open(&self, _request: &Request, inode: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let opened = self.model.enter(FsCall::Open, inode).and_then(|_| {
            let path = self.nodes.path(inode)?;
            self.open_file(&path, OFlags::from_bits_retain(flags.0 as u32), 0)
        });
        match opened {
            Ok(handle) => reply.opened(handle, FopenFlags::empty()),
            Err(error) => reply.error(error),
        }
    }

    fn create(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let created = self.model.enter(FsCall::Create, parent).and_then(|ending| {
            let path = self.child(parent, name)?;
            let flags = OFlags::from_bits_retain(flags as u32) | OFlags::CREATE;
            let handle = self.open_file(&path, flags, mode & !umask)?;
            if let CallEnd::Lost(number) = ending {
                self.files.remove(handle);
                return Err(Errno::from_i32(number));
            }
            Ok((handle, self.entry(path)?))
        });
        match created {
            Ok((handle, (attributes, generation))) => reply.created(
                &self.model.cache,
                &attributes,
                generation,
                handle,
                FopenFlags::empty(),
            ),
            Err(error) => reply.error(error),
        }
    }

    fn read(
        &self,
        _request: &Request,
        inode: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let read = || -> Result<Vec<u8>, Errno> {
            let short = self.model.enter(FsCall::Read, inode)? == CallEnd::Short;
            let mut bytes = vec![0; if short { 1 } else { size as usize }];
            let count = self.files.get(handle)?.read_at(&mut bytes, offset)?;
            bytes.truncate(count);
            self.model.transfer(count as u64);
            Ok(bytes)
        };
        match read() {
            Ok(bytes) => reply.data(&bytes),
            Err(error) => reply.error(error),
        }
    }

    fn write(
        &self,
        _request: &Request,
        inode: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let write = || -> Result<usize, Errno> {
            let short = self.model.enter(FsCall::Write, inode)? == CallEnd::Short;
            let data = if short {
                &data[..data.len().min(1)]
            } else {
                data
            };
            let count = self.files.get(handle)?.write_at(data, offset)?;
            self.model.transfer(count as u64);
            Ok(count)
        };
        match write() {
            Ok(count) => reply.written(count as u32),
            Err(error) => reply.error(error),
        }
    }

    fn flush(
        &self,
        _request: &Request,
        inode: INodeNo,
        _handle: FileHandle,
        _lock_owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        reply::empty(self.model.enter(FsCall::Flush, inode).map(drop), reply);
    }

    fn release(
        &self,
        _request: &Request,
        inode: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.files.remove(handle);
        reply::empty(self.model.enter(FsCall::Release, inode).map(drop), reply);
    }

    fn fsync(
        &self,
        _request: &Request,
        inode: INodeNo,
        handle: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        let done = self
            .model
            .enter(FsCall::Fsync, inode)
            .and_then(|_| Ok(self.files.get(handle)?.sync_all()?));
        reply::empty(done, reply);
    }

    fn opendir(&self, _request: &Request, inode: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match self
            .model
            .enter(FsCall::Opendir, inode)
            .and_then(|_| self.list(inode))
        {
            Ok(handle) => reply.opened(handle, FopenFlags::empty()),
            Err(error) => reply.error(error),
        }
    }

    fn readdir(
        &self,
        _request: &Request,
        inode: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        if let Err(error) = self.model.enter(FsCall::Readdir, inode) {
            return reply.error(error);
        }
        match self.listings.get(handle) {
            Ok(listing) => self.give_names(&listing, offset, &mut reply),
            Err(error) => return reply.error(error),
        }
        reply.ok();
    }

    /// Lists names with their attributes, at the cost of one call.
    fn readdirplus(
        &self,
        _request: &Request,
        inode: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        if let Err(error) = self.model.enter(FsCall::Readdir, inode) {
            return reply.error(error);
        }
        match self.listings.get(handle) {
            Ok(listing) => self.give_attributes(inode, &listing, offset, &mut reply),
            Err(error) => return reply.error(error),
        }
        reply.ok();
    }

    fn releasedir(
        &self,
        _request: &Request,
        _inode: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.listings.remove(handle);
        reply.ok();
    }

    fn fsyncdir(&self, _: &Request, inode: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply::empty(self.model.enter(FsCall::Fsync, inode).map(drop), reply);
    }

    fn statfs(&self, _request: &Request, inode: INodeNo, reply: ReplyStatfs) {
        let found = self.model.enter(FsCall::Statfs, inode).and_then(|_| {
            let path = self.nodes.path(inode)?;
            rustix::fs::statvfs(&path).map_err(os)
        });
        match found {
            Ok(all) => reply.statfs(
                all.f_blocks,
                all.f_bfree,
                all.f_bavail,
                all.f_files,
                all.f_ffree,
                all.f_bsize as u32,
                all.f_namemax as u32,
                all.f_frsize as u32,
            ),
            Err(error) => reply.error(error),
        }
    }
}

//! Downloads of plain files, such as bundles.

use std::io::{self, Read};

use ureq::BodyReader;

use super::site::{Plan, Site};
use super::{MOST_REDIRECTIONS, Redirects, Settings, reader};
use crate::error::{Error, ErrorKind};
use crate::transport::{Options, Service};
use crate::url::{Origin, Url};

/// The content of a file on a web server, as it arrives.
pub struct Download(BodyReader<'static>);

impl Read for Download {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

/// Requests the file at `url`.
///
/// `named` is the origin of the address that the user named; `None` if that is not on the web. Another origin
/// gets headers that identify the user only if they are set for its address. As in Git, redirections are
/// followed only if the user allows all of them (`http.followRedirects`).
///
/// # Errors
/// The scheme is not allowed, the connection cannot be made, or the server has no such file.
pub fn download(
    url: &Url,
    named: Option<&Origin>,
    options: &Options,
    settings: Box<dyn Settings>,
) -> Result<Download, Error> {
    options.policy.check(url.scheme())?;
    let service = Service::UploadPack;
    let mut plan = Plan::new(url, service, options, settings).for_download(named);
    let mut site = Site::open(url, &mut plan)?;
    let mut url = url.clone();
    for _ in 0..=MOST_REDIRECTIONS {
        let response = site.run(&url, service, None)?;
        let target = site.redirection(&response, &url)?;
        match target {
            Some(target) if site.follow == Redirects::Always => {
                let mut next = site.redirected(&target, &mut plan)?;
                next.take_over(&mut site);
                site = next;
                url = target;
            }
            _ => return site.checked(response).map(|file| Download(reader(file))),
        }
    }
    let message = format!("unable to access '{}/': too many redirections", site.base());
    Err(Error::new(ErrorKind::Connection, message))
}

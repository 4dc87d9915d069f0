//! Downloads of plain files, such as bundles (`bundle-uri`).

use std::io::{self, Read};

use ureq::BodyReader;

use super::site::{HttpSite, RedirectPolicy};
use super::{MOST_REDIRECTIONS, Redirects, Settings, reader};
use crate::error::{Error, ErrorKind};
use crate::transport::{Options, Service};
use crate::url::{Url, UrlOrigin};

/// The content of a file on a web server, as it arrives.
pub struct Download(BodyReader<'static>);

impl Read for Download {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

/// Requests the file at `url`.
///
/// `named` is the origin of the URL that the user gave; `None` if that URL is not HTTP. Headers that
/// identify the user are sent to another origin only if they are set for its URL. As in Git, redirects
/// are followed only if `http.followRedirects` is `true`.
///
/// # Errors
/// Fails with [`ErrorKind::Forbidden`] if the scheme is not allowed, [`ErrorKind::NotFound`] if the
/// server has no such file, [`ErrorKind::Authentication`], or [`ErrorKind::Connection`] if the
/// connection cannot be made.
pub fn download(
    url: &Url,
    named: Option<&UrlOrigin>,
    options: &Options,
    settings: Box<dyn Settings>,
) -> Result<Download, Error> {
    options.policy.check(url.scheme())?;
    let service = Service::UploadPack;
    let mut plan = RedirectPolicy::new(url, service, options, settings).for_download(named);
    let mut site = HttpSite::open(url, &mut plan)?;
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

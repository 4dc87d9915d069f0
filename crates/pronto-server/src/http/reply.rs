//! Responses, and the record of each request, which is logged when its response ends.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use hyper::Response;
use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{HeaderName, HeaderValue};

use crate::bridge::{Counters, Pieces};
use crate::log;
use crate::state::State;
use crate::{Error, ErrorKind};

/// A response before its record is attached.
#[derive(Debug)]
pub(super) struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Whole(Option<Bytes>),
    Pieces(Pieces),
}

impl Reply {
    pub(super) fn text(status: u16, text: impl Into<String>) -> Self {
        Reply {
            status,
            headers: vec![("content-type", "text/plain; charset=utf-8".to_owned())],
            content: Content::Whole(Some(Bytes::from(text.into()))),
        }
    }

    pub(super) fn pieces(pieces: Pieces, content_type: String) -> Self {
        Reply {
            status: 200,
            headers: vec![("content-type", content_type)],
            content: Content::Pieces(pieces),
        }
    }

    pub(super) fn with_type(mut self, content_type: &str) -> Self {
        self.headers.retain(|(name, _)| *name != "content-type");
        self.with_header("content-type", content_type)
    }

    pub(super) fn with_header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(super) fn into_response(self, mut finish: Finish) -> Response<ReplyBody> {
        finish.request.status = self.status;
        let mut response = Response::new(());
        if let Ok(status) = hyper::StatusCode::from_u16(self.status) {
            *response.status_mut() = status;
        }
        let headers = response.headers_mut();
        let fixed = [
            ("cache-control", "no-cache, max-age=0, must-revalidate"),
            ("x-content-type-options", "nosniff"),
            ("x-request-id", finish.request.id.as_str()),
        ];
        let own = self
            .headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()));
        for (name, value) in fixed.into_iter().chain(own) {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        response.map(|()| ReplyBody {
            is_sent: matches!(self.content, Content::Whole(_)),
            content: self.content,
            finish,
        })
    }
}

/// The response to an error, which is noted in the record.
pub(super) fn failure(error: &Error, finish: &mut Finish) -> Reply {
    finish.error(error.to_string());
    let status = match error.kind() {
        ErrorKind::Unauthenticated => 401,
        ErrorKind::Denied => 403,
        ErrorKind::NotFound => 404,
        ErrorKind::InvalidName | ErrorKind::Malformed => 400,
        ErrorKind::Unsupported => 400,
        ErrorKind::Exists => 409,
        ErrorKind::TooMany => 429,
        ErrorKind::Overloaded => 503,
        _ => 500,
    };
    let id = &finish.request.id;
    let text = match status {
        // Paths and reasons of the system are for the log alone.
        500 => format!("the server failed (request {id})\n"),
        _ => format!("{} (request {id})\n", error.message()),
    };
    let reply = Reply::text(status, text);
    match status {
        401 => reply.with_header("www-authenticate", "Basic realm=\"Git\", charset=\"UTF-8\""),
        429 => reply.with_header("retry-after", "60"),
        503 => reply.with_header("retry-after", "5"),
        _ => reply,
    }
}

/// The body of a response. Its end, or its loss, ends the request.
pub(crate) struct ReplyBody {
    content: Content,
    is_sent: bool,
    finish: Finish,
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let frame = match &mut self.content {
            Content::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Content::Pieces(pieces) => Pin::new(pieces).poll_frame(context),
        };
        match &frame {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(data) = frame.data_ref() {
                    self.finish.counters.add_sent(data.len() as u64);
                }
            }
            Poll::Ready(Some(Err(error))) => {
                let error = error.to_string();
                self.finish.error(error);
            }
            Poll::Ready(None) => {
                self.is_sent = true;
                if let Content::Pieces(pieces) = &self.content
                    && let Some(told) = pieces.told()
                {
                    let told = told.to_owned();
                    self.finish.error(told);
                }
            }
            Poll::Pending => {}
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.content, Content::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Content::Pieces(_) => SizeHint::default(),
        }
    }
}

impl Drop for ReplyBody {
    fn drop(&mut self) {
        if !self.is_sent {
            let message = "the connection ended before the end of the answer";
            self.finish.error(message.to_owned());
        }
    }
}

/// The record of a request. It is logged when it is dropped.
pub(super) struct Finish {
    state: Arc<State>,
    request: log::Request,
    pub(super) counters: Arc<Counters>,
    begun: Instant,
}

impl Finish {
    pub(super) fn new(
        state: Arc<State>,
        request: log::Request,
        counters: Arc<Counters>,
        begun: Instant,
    ) -> Self {
        Finish {
            state,
            request,
            counters,
            begun,
        }
    }

    pub(super) fn user(&mut self, user: Option<&str>) {
        self.request.user = user.map(str::to_owned);
    }

    pub(super) fn repository(&mut self, name: &str) {
        self.request.repository = Some(name.to_owned());
    }

    pub(super) fn service(&mut self, service: &'static str) {
        self.request.service = service;
    }

    /// Notes the first error.
    pub(super) fn error(&mut self, error: String) {
        self.request.error.get_or_insert(error);
    }
}

impl Drop for Finish {
    fn drop(&mut self) {
        let mut request = self.request.clone();
        request.received_bytes = self.counters.received();
        request.sent_bytes = self.counters.sent();
        request.duration = self.begun.elapsed();
        self.state.finished(request);
    }
}

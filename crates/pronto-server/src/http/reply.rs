//! HTTP responses. The end of a response ends the record of its request.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::Response;
use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{HeaderName, HeaderValue};

use crate::Error;
use crate::bridge::ResponsePieces;
use crate::record::{self, RequestRecord, UNFINISHED};

/// A response without the record of its request.
#[derive(Debug)]
pub(super) struct HttpResponse {
    status: u16,
    headers: Vec<(&'static str, String)>,
    content: ReplyContent,
}

#[derive(Debug)]
enum ReplyContent {
    Whole(Option<Bytes>),
    Pieces(ResponsePieces),
}

impl HttpResponse {
    pub(super) fn text(status: u16, text: impl Into<String>) -> Self {
        HttpResponse {
            status,
            headers: vec![("content-type", "text/plain; charset=utf-8".to_owned())],
            content: ReplyContent::Whole(Some(Bytes::from(text.into()))),
        }
    }

    /// Returns a response without its body, for `HEAD`.
    pub(super) fn empty() -> Self {
        HttpResponse {
            status: 200,
            headers: Vec::new(),
            content: ReplyContent::Whole(None),
        }
    }

    pub(super) fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    pub(super) fn pieces(pieces: ResponsePieces, content_type: String) -> Self {
        HttpResponse {
            status: 200,
            headers: vec![("content-type", content_type)],
            content: ReplyContent::Pieces(pieces),
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

    pub(super) fn into_response(self, mut record: RequestRecord) -> Response<ReplyBody> {
        record.status(self.status);
        let mut response = Response::new(());
        if let Ok(status) = hyper::StatusCode::from_u16(self.status) {
            *response.status_mut() = status;
        }
        let headers = response.headers_mut();
        let fixed = [
            ("cache-control", "no-cache, max-age=0, must-revalidate"),
            ("x-content-type-options", "nosniff"),
            ("x-request-id", record.id()),
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
            is_sent: matches!(self.content, ReplyContent::Whole(_)),
            content: self.content,
            record,
        })
    }
}

/// Returns the response to an error, and adds the error to the record.
pub(super) fn failure(error: &Error, record: &mut RequestRecord) -> HttpResponse {
    record.error(error.to_string());
    let status = record::status(error);
    let reply = HttpResponse::text(status, format!("{}\n", record::text(error, record.id())));
    match status {
        401 => reply.with_header("www-authenticate", "Basic realm=\"Git\", charset=\"UTF-8\""),
        429 => reply.with_header("retry-after", "60"),
        503 => reply.with_header("retry-after", "5"),
        _ => reply,
    }
}

/// The body of a response. The request ends when the body ends or is dropped.
pub(crate) struct ReplyBody {
    content: ReplyContent,
    is_sent: bool,
    record: RequestRecord,
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let frame = match &mut self.content {
            ReplyContent::Whole(bytes) => {
                Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes))))
            }
            ReplyContent::Pieces(pieces) => Pin::new(pieces).poll_frame(context),
        };
        match &frame {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(data) = frame.data_ref() {
                    self.record.counters.add_sent(data.len() as u64);
                }
            }
            Poll::Ready(Some(Err(error))) => {
                let error = error.to_string();
                self.record.error(error);
            }
            Poll::Ready(None) => {
                self.is_sent = true;
                if let ReplyContent::Pieces(pieces) = &self.content
                    && let Some(client_message) = pieces.client_message()
                {
                    let client_message = client_message.to_owned();
                    self.record.error(client_message);
                }
            }
            Poll::Pending => {}
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.content, ReplyContent::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            ReplyContent::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            ReplyContent::Pieces(_) => SizeHint::default(),
        }
    }
}

impl Drop for ReplyBody {
    fn drop(&mut self) {
        if !self.is_sent {
            self.record.error(UNFINISHED.to_owned());
        }
    }
}

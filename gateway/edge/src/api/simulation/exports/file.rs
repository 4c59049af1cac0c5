//! `GET /v1/simulation/exports/files/{id}`: the file of an export, for the bearer of a link. It is read in pieces while
//! it is sent, and a part of it may be asked for, so that a download can be resumed.

use super::range::{self, Asked};
use super::{ExportFile, link};
use crate::http::body::{Pages, Sink, Truncated};
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::schema::{PARQUET, Param, Schema, TEXT};
use hyper::StatusCode;
use hyper::header::{self, HeaderValue};
use std::ops::Range;

/// Bytes that are read at a time.
const PIECE_BYTES: u64 = 256 << 10;

pub const PARAMS: &[Param] = &[
    Param::query("exp", Schema::Text(20), "The end of the link, in Unix seconds.").required(),
    Param::query("sig", Schema::Text(64), "Its signature.").required(),
    Param::header("Range", TEXT, "One range of bytes; several are answered with the whole file."),
    Param::header("If-Range", TEXT, "The `ETag` of the file that a range is of; of another one the whole is sent."),
    Param::header("If-None-Match", TEXT, "The `ETag` of a file that the client has: 304."),
];

pub async fn file(call: Call) -> Outcome {
    let Some(export) = link::verified(&call) else {
        return Err(Refusal::new(Code::Http403, "The link is not valid, or has ended."));
    };
    let exports = call.reads().exports.as_deref().ok_or(Code::ArchiveUnavailable)?;
    let Some(file) = exports.open(export).await? else {
        return Err(Refusal::new(Code::NotFound, "The file was removed: make the export again."));
    };
    let (tag, bytes) = (format!("\"{export}\""), file.bytes());
    if range::names(call.header(&header::IF_NONE_MATCH), &tag) {
        let reply = Reply { content_type: "", ..Reply::json(Vec::new()) }.with_status(StatusCode::NOT_MODIFIED);
        return Ok(reply.with_header(header::ETAG, value(tag)));
    }
    let is_of_it = call.header(&header::IF_RANGE).is_none_or(|of| of == tag);
    let asked = range::asked(call.header(&header::RANGE).filter(|_| is_of_it), bytes);
    let reply = match asked {
        Asked::Beyond => return Err(Refusal::range_beyond(bytes)),
        Asked::Whole => sent(file, 0..bytes),
        Asked::Part(part) => {
            let range = format!("bytes {}-{}/{bytes}", part.start, part.end - 1);
            sent(file, part).with_status(StatusCode::PARTIAL_CONTENT).with_header(header::CONTENT_RANGE, value(range))
        }
    };
    Ok(reply
        .with_header(header::ETAG, value(tag))
        .with_header(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"))
        .with_header(header::CONTENT_DISPOSITION, value(format!("attachment; filename=\"{export}.parquet\""))))
}

fn value(text: String) -> HeaderValue {
    HeaderValue::try_from(text).expect("digits and ASCII words")
}

fn sent(file: Box<dyn ExportFile>, part: Range<u64>) -> Reply {
    Reply::streamed(PARQUET, Pages::sized(part.end - part.start, |sink| send(file, part, sink)))
}

async fn send(file: Box<dyn ExportFile>, part: Range<u64>, mut sink: Sink) -> Result<(), Truncated> {
    let mut at = part.start;
    while at < part.end {
        let piece = file.read(at, PIECE_BYTES.min(part.end - at) as usize).await.map_err(|_| Truncated)?;
        at += piece.len() as u64;
        sink.send(piece).await;
    }
    Ok(())
}

//! `POST /v1/simulation/exports`: makes the file of an export, and answers with a link to it.

use super::{ExportLayout, NotMade, WantedExport, link};
use crate::api::simulation::archive::MadeMarket;
use crate::api::simulation::fill::word;
use crate::api::simulation::{ID_CHARS_MAX, archive, has_everything, needs_everything};
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::record::record;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::scalar::words;
use engine::backtest::{COVERAGE_HOURS_MAX, Hour};
use engine::time::Timestamp;
use std::borrow::Cow;
use std::ops::Range;
use wire::fields::Body;
use wire::instant;
use wire::value::Value;

words! {
    pub ExportFormatName = "parquet";
    pub ExportLayoutName = "events", "v2";
}

record! {
    /// An export to make. Other fields are ignored.
    pub struct NewExport<'a> {
        #[schemars(length(min = 1, max = ID_CHARS_MAX))]
        condition_id: &'a str = "0x5151515151515151515151515151515151515151515151515151515151515151";
        start: &'a str = "2026-09-30T17:00:00Z";
        end: &'a str = "2026-09-30T19:00:00Z",
            "After the start, not in the future, not included. At most 2,160 hours are touched.";
        format: Option<ExportFormatName> = Some("parquet".into()), "Default `parquet`.", skip_serializing_if;
        layout: Option<ExportLayoutName> = Some("events".into()),
            "`events` (default): seven columns. `v2`: the sixteen columns of an archived hour.", skip_serializing_if;
    }

    /// A link to the file of an export.
    pub struct ExportLink<'a> {
        url: Cow<'a, str> = "http://127.0.0.1:8080/v1/simulation/exports/files/5b41362bc82b7f3d56edc5a306db22105707d01ff4819e26faef9724a2d406c9?exp=1790936045&sig=d14a028c2a3a2bc9476102bb288234c415a2b01f828ea62ac5b3e42fe3b0c442".into(),
            "It needs no key.";
        expires_in: u64 = link::TTL_SECS, "Seconds from now on.";
        format: ExportFormatName = "parquet".into();
    }
}

pub async fn make(call: Call) -> Outcome {
    let body = call.json_object()?;
    let asked = Asked::read(&body, call.now)?;
    if !has_everything(&call) {
        return Err(needs_everything(&call));
    }
    let exports = call.reads().exports.as_deref().ok_or(Code::ArchiveUnavailable)?;
    let archive = archive(&call)?;
    let made = archive.made(asked.condition, Hour::touched(asked.window.clone())).await?;
    let MadeMarket { market, coverage } = made.ok_or(Code::ArchiveNotFound)?;
    if coverage.available() == 0 {
        return Err(Code::ConditionHourNotCovered.into());
    }
    let export = exports.make(&WantedExport { market, window: asked.window, layout: asked.layout }).await?;
    Ok(Reply::json(&ExportLink {
        url: link::make(&call, export).into(),
        expires_in: link::TTL_SECS,
        format: "parquet".into(),
    }))
}

impl From<NotMade> for Refusal {
    fn from(why: NotMade) -> Refusal {
        match why {
            NotMade::TooLarge(bytes) => {
                let why = format!("The export has more than {bytes} bytes: ask for a shorter window.");
                Refusal::new(Code::ValidationFailed, why)
            }
            NotMade::NotYet => {
                Refusal::new(Code::ArchiveUnavailable, "The export is still being made: repeat the request.")
            }
            NotMade::Unreachable => Code::ArchiveUnavailable.into(),
        }
    }
}

/// A request.
#[derive(Debug)]
struct Asked<'a> {
    condition: &'a str,
    window: Range<Timestamp>,
    layout: ExportLayout,
}

impl<'a> Asked<'a> {
    /// # Errors
    /// `VALIDATION_FAILED`, then `INVALID_WINDOW`.
    fn read(body: &'a Value<'_>, now: Timestamp) -> Result<Asked<'a>, Refusal> {
        let mut body = Body::new(body);
        let condition = body.text("condition_id", ID_CHARS_MAX);
        if condition.is_none_or(str::is_empty) && body.problems.is_empty() {
            body.missing("condition_id");
        }
        let times = ["start", "end"].map(|name| {
            if body.get(name).is_none() {
                body.missing(name);
            }
            body.text(name, ID_CHARS_MAX)
        });
        word(&mut body, "format", &[("parquet", ())]);
        let layout = word(&mut body, "layout", &ExportLayout::ALL.map(|layout| (layout.name(), layout)));
        if !body.problems.is_empty() {
            return Err(Refusal::validation(&body.problems));
        }
        let wrong = |why| Err(Refusal::new(Code::InvalidWindow, why));
        let [start, end] = times.map(|text| instant::read(text.unwrap_or_default()));
        let (Some(start), Some(end)) = (start, end) else {
            return wrong("start or end is not a time.".to_owned());
        };
        if start >= end {
            return wrong("start is not before end.".to_owned());
        }
        if end > now {
            return wrong("end is in the future.".to_owned());
        }
        let hours = Hour::touched(start..end);
        if hours.end.0 - hours.start.0 > COVERAGE_HOURS_MAX {
            return wrong(format!("The window has more than {COVERAGE_HOURS_MAX} hours."));
        }
        let (condition, layout) = (condition.unwrap_or_default(), layout.unwrap_or_default());
        Ok(Asked { condition, window: start..end, layout })
    }
}

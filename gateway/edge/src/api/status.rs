//! Uptime and incidents (gateway/docs/status.md): samples of each minute, of which the server keeps 90 days, and what its
//! operator reports.

use crate::http::call::Call;
use crate::http::record::record;
use crate::http::reply::{Outcome, Reply};
use crate::http::route::Route;
use crate::http::scalar::{self, DateText, words};
use engine::time::{DAY, Timestamp, UtcDay};
use std::sync::Arc;
use wire::instant::ts_text;

/// Days that are shown, today included.
pub const DAYS: u32 = 90;
/// A day is an outage if more than this part of its measured minutes is down, in percent; and degraded likewise.
const OUTAGE_ABOVE: u32 = 5;
const DEGRADED_ABOVE: u32 = 1;
/// A day is degraded, too, if this many minutes in a row are down.
const DEGRADED_RUN: u16 = 5;

pub const ROUTES: &[Route] = &[
    Route::get("/v1/status/uptime", "get_uptime")
        .about("How the parts of the server were on each of the last 90 days, oldest first.")
        .no_store()
        .gives::<UptimeReport<'_>>(200)
        .answer(uptime),
    Route::get("/v1/status/incidents", "list_incidents")
        .about("What the operator reports of incidents, newest first.")
        .no_store()
        .gives::<IncidentReport<'_>>(200)
        .answer(incidents),
];

/// A part of the server that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    Api,
    MarketData,
    MatchingEngine,
    Websocket,
}

impl Service {
    pub const ALL: [Service; 4] = [Service::Api, Service::MarketData, Service::MatchingEngine, Service::Websocket];
    /// Their ids on the wire, in the same order.
    pub const IDS: [&'static str; 4] = ["api", "market_data", "matching_engine", "websocket"];
    const LABELS: [&'static str; 4] = ["API", "Market data", "Matching engine", "WebSocket"];

    pub fn id(self) -> &'static str {
        Service::IDS[self as usize]
    }

    /// The service with that id.
    pub fn of(id: &str) -> Option<Service> {
        Service::ALL.into_iter().find(|service| service.id() == id)
    }
}

/// The minutes of a day of one service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServiceDay {
    pub measured: u16,
    /// Those of them that it was down.
    pub down: u16,
    /// The most minutes in a row that it was down.
    pub longest: u16,
}

impl ServiceDay {
    /// The word of the day.
    pub fn status(self) -> &'static str {
        let part = u32::from(self.down) * 100;
        let of = |percent: u32| u32::from(self.measured) * percent;
        match self {
            ServiceDay { measured: 0, .. } => "no_data",
            _ if part > of(OUTAGE_ABOVE) => "outage",
            _ if part > of(DEGRADED_ABOVE) || self.longest >= DEGRADED_RUN => "degraded",
            _ => "operational",
        }
    }
}

/// A day of all services, in the order of [`Service::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuredDay {
    pub day: UtcDay,
    pub services: [ServiceDay; 4],
}

/// What was measured: a port.
pub trait Uptime: Send + Sync {
    /// The days with a sample, oldest first. Never blocks.
    fn days(&self) -> Arc<[MeasuredDay]>;
}

/// States of an incident.
pub const INCIDENT_STATES: [&str; 4] = ["investigating", "identified", "monitoring", "resolved"];

/// What the operator reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incident {
    pub id: String,
    pub title: String,
    /// One of [`INCIDENT_STATES`].
    pub state: &'static str,
    pub started_at: Timestamp,
    pub resolved_at: Option<Timestamp>,
    pub services: Vec<Service>,
    /// Oldest first.
    pub updates: Vec<IncidentNote>,
}

/// A report in the course of an incident.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncidentNote {
    pub at: Timestamp,
    pub text: String,
}

/// Incidents: a port.
pub trait Incidents: Send + Sync {
    /// All incidents, newest first. Never blocks.
    fn incidents(&self) -> Arc<[Incident]>;
}

words! {
    UptimeSource = "internal";
    DayStatus = "operational", "degraded", "outage", "no_data";
}

words! {
    ServiceId in &Service::IDS;
}

words! {
    IncidentStatus in &INCIDENT_STATES;
}

record! {
    /// One day of a service.
    struct UptimeDay {
        date: DateText<'static> = "2026-10-02".into();
        status: DayStatus = "operational".into(),
            "`outage` above 5 % of the measured minutes down; `degraded` above 1 %, or five in a row; `no_data` where \
             nothing was measured.";
        summary: Option<u64> = None, "Always null.";
        impacted_hours: Option<u64> = None, "Always null.";
        measured_hours: Option<u64> = None, "Always null.";
    }

    /// The days of one service.
    struct ServiceUptime<'a> {
        id: ServiceId = "api".into();
        label: &'a str = "API";
        days: Vec<UptimeDay> = Vec::example(), "90 days, oldest first; the last one is today.";
    }

    /// The days of all services.
    #[serde(rename_all = "camelCase")]
    struct UptimeReport<'a> {
        generated_at: scalar::Timestamp = scalar::Timestamp::of("2026-10-02T09:15:00Z");
        source: UptimeSource = "internal".into(), "The server measures itself.";
        services: Vec<ServiceUptime<'a>> = Vec::example();
    }

    /// A report in the course of an incident.
    struct IncidentUpdate<'a> {
        at: scalar::Timestamp = scalar::Timestamp::of("2026-10-02T09:20:00Z");
        text: &'a str = "The venue answers again.";
    }

    /// An incident.
    struct IncidentRow<'a> {
        id: &'a str = "2026-10-02-1";
        title: &'a str = "Market data is late";
        status: IncidentStatus = "resolved".into();
        started_at: scalar::Timestamp = scalar::Timestamp::of("2026-10-02T09:05:00Z");
        resolved_at: Option<scalar::Timestamp> = Some(scalar::Timestamp::of("2026-10-02T09:20:00Z")),
            "Null until it is resolved.";
        services: Vec<ServiceId> = vec!["market_data".into()];
        updates: Vec<IncidentUpdate<'a>> = Vec::example(), "Oldest first.";
    }

    /// All incidents.
    struct IncidentReport<'a> {
        incidents: Vec<IncidentRow<'a>> = Vec::example();
    }
}

fn uptime(call: &Call) -> Outcome {
    let days = call.published().uptime.as_ref().map_or_else(|| Arc::from([]), |uptime| uptime.days());
    Ok(Reply::json(&UptimeReport::of(&days, call.now)))
}

impl UptimeReport<'static> {
    fn of(measured: &[MeasuredDay], now: Timestamp) -> UptimeReport<'static> {
        let today = now.day().0;
        let shown = (today.saturating_sub(DAYS - 1)..=today).map(UtcDay);
        let days: Vec<_> = shown
            .map(|day| {
                let at = measured.binary_search_by_key(&day, |measured| measured.day);
                (date_text(day), at.map_or_else(|_| Default::default(), |at| measured[at].services))
            })
            .collect();
        let service = |service: Service| ServiceUptime {
            id: service.id().into(),
            label: Service::LABELS[service as usize],
            days: days
                .iter()
                .map(|(date, services)| UptimeDay {
                    date: date.clone().into(),
                    status: services[service as usize].status().into(),
                    summary: None,
                    impacted_hours: None,
                    measured_hours: None,
                })
                .collect(),
        };
        UptimeReport {
            generated_at: scalar::Timestamp(now),
            source: "internal".into(),
            services: Service::ALL.map(service).into(),
        }
    }
}

/// `2026-10-02`.
fn date_text(day: UtcDay) -> String {
    let mut text = ts_text(Timestamp(u64::from(day.0) * DAY));
    text.truncate(10);
    text
}

fn incidents(call: &Call) -> Outcome {
    let incidents = call.published().incidents.as_ref().map_or_else(|| Arc::from([]), |known| known.incidents());
    Ok(Reply::json(&IncidentReport { incidents: incidents.iter().map(IncidentRow::of).collect() }))
}

impl<'a> IncidentRow<'a> {
    fn of(incident: &'a Incident) -> IncidentRow<'a> {
        let Incident { id, title, state, started_at, resolved_at, services, updates } = incident;
        IncidentRow {
            id,
            title,
            status: (*state).into(),
            started_at: scalar::Timestamp(*started_at),
            resolved_at: resolved_at.map(scalar::Timestamp),
            services: services.iter().map(|service| service.id().into()).collect(),
            updates: updates
                .iter()
                .map(|note| IncidentUpdate { at: scalar::Timestamp(note.at), text: &note.text })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testing::Town;
    use crate::groups::tables;
    use crate::http::testing::{NOW, Ports, World};
    use crate::published::Published;
    use serde_json::{Value, json};

    /// Days and incidents of a test.
    struct Given(Arc<[MeasuredDay]>, Arc<[Incident]>);

    impl Uptime for Given {
        fn days(&self) -> Arc<[MeasuredDay]> {
            self.0.clone()
        }
    }

    impl Incidents for Given {
        fn incidents(&self) -> Arc<[Incident]> {
            self.1.clone()
        }
    }

    fn town(days: &[MeasuredDay], incidents: &[Incident]) -> Town {
        let given = Arc::new(Given(days.into(), incidents.into()));
        let published = Published { uptime: Some(given.clone()), incidents: Some(given), ..Published::default() };
        Town::of(World::with_ports("", &tables(), Ports { published, ..Ports::default() }))
    }

    #[test]
    fn a_day_is_judged_by_its_measured_minutes() {
        let rows = [
            ((0, 0, 0), "no_data"),
            ((1_440, 0, 0), "operational"),
            ((1, 0, 0), "operational"),
            ((1, 1, 1), "outage"),
            ((1_440, 14, 1), "operational"),
            ((1_440, 15, 1), "degraded"),
            ((1_440, 4, 4), "operational"),
            ((1_440, 5, 5), "degraded"),
            ((1_440, 72, 72), "degraded"),
            ((1_440, 73, 1), "outage"),
            ((100, 1, 1), "operational"),
            ((100, 2, 1), "degraded"),
            ((100, 5, 1), "degraded"),
            ((100, 6, 1), "outage"),
            ((1_440, 1_440, 1_440), "outage"),
        ];
        for ((measured, down, longest), expected) in rows {
            assert_eq!(ServiceDay { measured, down, longest }.status(), expected, "{measured} {down} {longest}");
        }
        println!("days: {} cases", rows.len());
    }

    #[test]
    fn ninety_days_end_today() {
        let today = NOW.day().0;
        let day = |ago: u32, down: u16| MeasuredDay {
            day: UtcDay(today - ago),
            services: [
                ServiceDay { measured: 100, down, longest: 1 },
                ServiceDay::default(),
                ServiceDay { measured: 1, down: 0, longest: 0 },
                ServiceDay { measured: 1, down: 1, longest: 1 },
            ],
        };
        // A day before the first one shown, and one of the future.
        let future = MeasuredDay { day: UtcDay(today + 1), ..day(0, 0) };
        let town = town(&[day(90, 50), day(89, 2), day(1, 50), day(0, 0), future], &[]);
        let answer = town.send("GET", "/v1/status/uptime", "");
        assert_eq!((answer.status, answer.header("cache-control")), (200, Some("no-store")));
        let report = answer.json();
        assert_eq!((&report["generatedAt"], &report["source"]), (&json!("2026-10-02T09:14:05Z"), &json!("internal")));
        let services = report["services"].as_array().expect("services");
        let ids: Vec<_> = services.iter().map(|service| service["id"].as_str().expect("an id")).collect();
        assert_eq!(ids, Service::IDS);
        let labels: Vec<_> = services.iter().map(|service| service["label"].as_str().expect("a label")).collect();
        assert_eq!(labels, Service::LABELS);
        let statuses = |service: usize| -> Vec<(String, String)> {
            let days = services[service]["days"].as_array().expect("days");
            assert_eq!(days.len(), 90);
            let known = days.iter().filter(|day| day["status"] != "no_data");
            let text = |value: &Value| value.as_str().expect("a text").to_owned();
            known.map(|day| (text(&day["date"]), text(&day["status"]))).collect()
        };
        let row = |date: &str, status: &str| (date.to_owned(), status.to_owned());
        let of_api = [row("2026-07-05", "degraded"), row("2026-10-01", "outage"), row("2026-10-02", "operational")];
        assert_eq!(statuses(0), of_api);
        assert_eq!(statuses(1), []);
        assert_eq!(statuses(3).iter().filter(|(_, status)| status == "outage").count(), 3);
        let first = &services[0]["days"][0];
        let nulls = json!({"date": "2026-07-05", "status": "degraded", "summary": null, "impacted_hours": null,
            "measured_hours": null});
        assert_eq!(first, &nulls);
    }

    #[test]
    fn incidents_are_shown_as_they_are_reported() {
        let incident = Incident {
            id: "2026-10-02-1".to_owned(),
            title: "Late \"books\"".to_owned(),
            state: "monitoring",
            started_at: NOW,
            resolved_at: None,
            services: vec![Service::MarketData, Service::Api],
            updates: vec![IncidentNote { at: NOW, text: "We look.".to_owned() }],
        };
        let town = town(&[], &[incident]);
        let expected = json!({"incidents": [{
            "id": "2026-10-02-1", "title": "Late \"books\"", "status": "monitoring",
            "started_at": "2026-10-02T09:14:05Z", "resolved_at": null, "services": ["market_data", "api"],
            "updates": [{"at": "2026-10-02T09:14:05Z", "text": "We look."}],
        }]});
        assert_eq!(town.send("GET", "/v1/status/incidents", "").json(), expected);
    }

    #[test]
    fn without_sources_nothing_is_known() {
        let town = Town::new();
        assert_eq!(town.send("GET", "/v1/status/incidents", "").json(), json!({"incidents": []}));
        let report = town.send("GET", "/v1/status/uptime", "").json();
        let days = report["services"]
            .as_array()
            .expect("services")
            .iter()
            .flat_map(|service| service["days"].as_array().expect("days"));
        let statuses: Vec<_> = days.map(|day| day["status"].as_str().expect("a word")).collect();
        assert_eq!((statuses.len(), statuses.iter().all(|status| *status == "no_data")), (360, true));
    }
}

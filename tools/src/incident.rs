//! `incident`: changes the file of incidents, which a running server reads again.

use crate::Failure;
use crate::settings::{Settings, print_line};
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use edge::api::status::{INCIDENT_STATES, Incident, Service};
use gateway::incidents::{self, Change};
use host::clock::Clock;
use serde_json::json;
use wire::instant::ts_text;

#[derive(Subcommand)]
pub enum IncidentVerb {
    /// Open an incident; prints its id.
    Open(OpenOptions),
    /// Add a report to an incident.
    Update(UpdateOptions),
    /// Close an incident.
    Resolve(ResolveOptions),
    /// Print all incidents, newest first.
    List(ListOptions),
}

#[derive(Args)]
#[command(after_help = "Example:\n  papertape incident open --title 'Market data is late' --service market_data")]
pub struct OpenOptions {
    #[command(flatten)]
    settings: Settings,
    /// What is wrong.
    #[arg(long)]
    title: String,
    /// A part that is concerned; may be repeated.
    #[arg(long = "service", value_name = "SERVICE", value_parser = PossibleValuesParser::new(Service::IDS))]
    services: Vec<String>,
    /// A first report.
    #[arg(long)]
    text: Option<String>,
    /// Its state.
    #[arg(long, default_value = "investigating", value_parser = open_states())]
    status: String,
    /// Its id: a-z, 0-9 and - (default: the day and a number).
    #[arg(long)]
    id: Option<String>,
}

#[derive(Args)]
#[command(
    after_help = "Example:\n  papertape incident update 2026-10-02-1 --status identified --text 'A cable is cut.'"
)]
pub struct UpdateOptions {
    #[command(flatten)]
    settings: Settings,
    /// The id of the incident.
    id: String,
    /// The report.
    #[arg(long)]
    text: String,
    /// Its new state.
    #[arg(long, value_parser = open_states())]
    status: Option<String>,
}

#[derive(Args)]
#[command(after_help = "Example:\n  papertape incident resolve 2026-10-02-1 --text 'The cable is mended.'")]
pub struct ResolveOptions {
    #[command(flatten)]
    settings: Settings,
    /// The id of the incident.
    id: String,
    /// A last report.
    #[arg(long)]
    text: Option<String>,
}

#[derive(Args)]
#[command(after_help = "Example:\n  papertape incident list --json")]
pub struct ListOptions {
    #[command(flatten)]
    settings: Settings,
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
}

/// States of an incident that is not closed.
fn open_states() -> PossibleValuesParser {
    PossibleValuesParser::new(&INCIDENT_STATES[..INCIDENT_STATES.len() - 1])
}

/// The state that an option names.
fn state(text: &str) -> &'static str {
    INCIDENT_STATES.into_iter().find(|state| *state == text).expect("the parser accepts no other")
}

impl IncidentVerb {
    pub fn run(self) -> Result<(), Failure> {
        let (settings, change) = match self {
            IncidentVerb::Open(OpenOptions { settings, title, services, text, status, id }) => {
                let mut named: Vec<Service> = services.iter().filter_map(|id| Service::of(id)).collect();
                named.dedup();
                (settings, Change::Open { id, title, services: named, state: state(&status), text })
            }
            IncidentVerb::Update(UpdateOptions { settings, id, text, status }) => {
                (settings, Change::Update { id, state: status.as_deref().map(state), text })
            }
            IncidentVerb::Resolve(ResolveOptions { settings, id, text }) => (settings, Change::Resolve { id, text }),
            IncidentVerb::List(options) => return list(&options),
        };
        let path = settings.load(Vec::new())?.published.incidents_file;
        let in_file = |error: incidents::ChangeError| format!("{}: {error}", path.display());
        let Incident { id, state, .. } = incidents::change(&path, change, Clock::wall().wall_now()).map_err(in_file)?;
        print_line(format_args!("{id} {state}"));
        Ok(())
    }
}

fn list(ListOptions { settings, json }: &ListOptions) -> Result<(), Failure> {
    let path = settings.load(Vec::new())?.published.incidents_file;
    let all = incidents::list(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    for incident in &all {
        let Incident { id, title, state, started_at, resolved_at, services, updates } = incident;
        let services: Vec<_> = services.iter().map(|service| service.id()).collect();
        let (started_at, resolved_at) = (ts_text(*started_at), resolved_at.map(ts_text));
        if *json {
            print_line(json!({
                "id": id, "title": title, "status": state, "started_at": started_at, "resolved_at": resolved_at,
                "services": services, "updates": updates.len(),
            }));
        } else {
            print_line(format_args!("{id}  {state}  {started_at}  {title}  [{}]", services.join(", ")));
        }
    }
    Ok(())
}

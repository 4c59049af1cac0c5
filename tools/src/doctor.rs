//! `doctor`: compares a live venue, as seen from this machine, with what its adapter expects; or shows what the rehearsal
//! of the venue's checks found.

use crate::Failure;
use crate::rehearsed::Rehearsed;
use crate::settings::{Settings, print_line};
use clap::Args;
use venue::VenueKind;
use venue::doctor::{Check, Outcome, examine};
use venue::origin::{Origin, choices};

#[derive(Args)]
pub struct Doctor {
    #[command(flatten)]
    settings: Settings,
    #[arg(
        long,
        value_name = "VENUE",
        required_unless_present = "rehearse",
        conflicts_with = "rehearse",
        help = format!("Venues to check: {}", choices(""))
    )]
    venue: Option<String>,
    #[command(flatten)]
    rehearsed: Rehearsed,
}

impl Doctor {
    /// Prints a line for each check, and the differences. Fails when a check got no answer; differences alone need a
    /// person to judge them.
    pub fn run(self) -> Result<(), Failure> {
        if self.rehearsed.rehearse {
            return self.rehearsed.run(&self.settings.load(Vec::new())?.data.dir);
        }
        let config = self.settings.load(vec![("venue.kind", self.venue)])?;
        if !matches!(config.venue.kind, VenueKind::Live(_)) {
            let names: Vec<&str> = Origin::all().map(Origin::name).collect();
            let kind = config.venue.kind;
            return Err(format!("only live venues can be checked ({}), not {kind}", names.join(", ")).into());
        }
        let well = examine(&config.venue, &mut |check| show(check))?;
        if well { Ok(()) } else { Err("some checks got no answer".into()) }
    }
}

fn show(Check { what, outcome }: &Check) {
    match outcome {
        Outcome::Ok(word) if word.is_empty() => print_line(format_args!("ok       {what}")),
        Outcome::Ok(word) => print_line(format_args!("ok       {what}: {word}")),
        Outcome::Differs(what_differs) => {
            print_line(format_args!("differs  {what}"));
            what_differs.iter().for_each(|line| print_line(format_args!("           {line}")));
        }
        Outcome::Failed(why) => print_line(format_args!("failed   {what}: {why}")),
    }
}

//! The server's route table for tests of all routes: each route with a path that exists in a test's world.

use edge::http::route::Route;
use edge::http::schema::ParamIn;
use edge::settings::Settings;
use gateway::config::Config;
use std::fmt;
use tests::http::Request;
use tests::world::World;

/// Values of the description's examples, and their replacements in a world.
const CONDITION: &str = "0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4";
const TOKEN: &str = "71321045679252212594626385532706912750332728571942532289631379312455583992563";

pub struct Table {
    pub doors: Vec<Door>,
}

/// One route, and a path to it with its required parameters.
pub struct Door {
    pub route: &'static Route,
    pub path: String,
    /// The body of the route's example, about a market of the world.
    pub example: Option<String>,
}

impl Table {
    /// The routes that exist with the default settings: those without a gate, and those whose gate is open.
    pub fn of(world: &World) -> Table {
        Table::split(world, &Config::defaults().edge()).0
    }

    /// The routes that exist with these settings, and those behind a closed gate.
    pub fn split(world: &World, settings: &Settings) -> (Table, Table) {
        let routes = edge::groups::GROUPS.iter().flat_map(|group| group.routes);
        let is_open = |route: &&Route| route.gate.is_none_or(|gate| gate.open(settings));
        let (open, closed): (Vec<&Route>, Vec<&Route>) = routes.partition(is_open);
        let doors = |routes: Vec<&'static Route>| routes.into_iter().map(|route| Door::of(route, world)).collect();
        (Table { doors: doors(open) }, Table { doors: doors(closed) })
    }
}

impl Door {
    fn of(route: &'static Route, world: &World) -> Door {
        let rain = &world.markets.rain;
        let segments = route.path.split('/').map(|segment| match segment {
            "{condition_id}" => rain.condition.clone(),
            "{token_id}" => rain.yes().to_string(),
            "{slug}" => "rain".to_string(),
            "{chat}" => "discord".to_string(),
            segment if segment.starts_with('{') => "1".to_string(),
            literal => literal.to_string(),
        });
        let mut path = segments.collect::<Vec<_>>().join("/");
        // Of two names for one parameter neither is required; a history without a token is invalid.
        let is_needed = |name: &str| route.path.contains("prices-history") && name == "market";
        let needed = route.params.iter().filter(|param| param.place == ParamIn::Query);
        let needed = needed.filter(|param| param.required || is_needed(param.name));
        for (at, param) in needed.enumerate() {
            let value = match param.name {
                "token_id" | "market" => rain.yes(),
                "side" => "BUY",
                _ => "1",
            };
            path.push_str(&format!("{}{}={value}", if at == 0 { '?' } else { '&' }, param.name));
        }
        let real = |text: &str| text.replace(CONDITION, &rain.condition).replace(TOKEN, rain.yes());
        Door { route, path, example: route.takes.map(|takes| real(&takes.example.text())) }
    }

    /// Without a body.
    pub fn request(&self) -> Request {
        Request::new(self.route.method.text(), &self.path)
    }

    /// With the body of the example, if it has one.
    pub fn example(&self) -> Request {
        match &self.example {
            Some(body) => self.request().text("application/json", body),
            None => self.request(),
        }
    }
}

impl fmt::Display for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.route.method.text(), self.path)
    }
}

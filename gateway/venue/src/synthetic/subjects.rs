//! The subjects of the plain events of the synthetic world. All names are invented or general; `{}` is the event's end.

use super::prices::Shape;
use engine::market::terms::Category;

/// The template of an event. It has one market per label, or a single market without labels.
pub(super) struct Subject {
    pub(super) category: Category,
    pub(super) title: &'static str,
    pub(super) shape: Shape,
    pub(super) labels: &'static [&'static str],
    pub(super) tags: &'static [&'static str],
}

const fn one(category: Category, title: &'static str, tags: &'static [&'static str]) -> Subject {
    Subject { category, title, shape: Shape::Thresholds, labels: &[], tags }
}

const fn exclusive(
    category: Category,
    title: &'static str,
    labels: &'static [&'static str],
    tags: &'static [&'static str],
) -> Subject {
    Subject { category, title, shape: Shape::Exclusive, labels, tags }
}

const fn thresholds(
    category: Category,
    title: &'static str,
    labels: &'static [&'static str],
    tags: &'static [&'static str],
) -> Subject {
    Subject { category, title, shape: Shape::Thresholds, labels, tags }
}

/// Each subject has one event at a time; when it has ended, the next one begins.
pub(super) const SUBJECTS: &[Subject] = &[
    one(Category::Sports, "Harbour City to beat Northfield on {}?", &["sports", "soccer"]),
    one(Category::Sports, "Overtime in the Lakes derby on {}?", &["sports", "hockey"]),
    exclusive(
        Category::Sports,
        "Coastal Cup winner, {}",
        &["Harbour City", "Northfield", "Riverside", "Old Mill", "Summit", "Westgate"],
        &["sports", "soccer"],
    ),
    thresholds(
        Category::Sports,
        "Points in the final on {}",
        &["Over 190.5", "Over 200.5", "Over 210.5", "Over 220.5"],
        &["sports", "basketball"],
    ),
    exclusive(
        Category::Sports,
        "Pole position at the Bay circuit, {}",
        &["Team Amber", "Team Cobalt", "Team Jade", "Team Onyx"],
        &["sports", "racing"],
    ),
    one(Category::Finance, "Large-cap index higher on {}?", &["finance", "stocks"]),
    one(Category::Finance, "Orchard Devices beats its earnings estimate by {}?", &["finance", "earnings"]),
    thresholds(
        Category::Finance,
        "Gold close on {}",
        &["Above $4,200", "Above $4,400", "Above $4,600"],
        &["finance", "commodities"],
    ),
    exclusive(
        Category::Finance,
        "Largest company on {}",
        &["Orchard Devices", "Redwood Chips", "Window Systems"],
        &["finance", "business"],
    ),
    one(Category::Politics, "Will the budget bill pass by {}?", &["politics"]),
    one(Category::Politics, "Will the coalition hold until {}?", &["politics"]),
    exclusive(
        Category::Politics,
        "Next mayor of Port Elm, {}",
        &["Adams", "Berger", "Castillo", "Dufour", "Eriksen"],
        &["politics", "elections"],
    ),
    thresholds(
        Category::Politics,
        "Turnout in the Port Elm election, {}",
        &["Over 40%", "Over 50%", "Over 60%"],
        &["politics", "elections"],
    ),
    one(Category::Mentions, "Will the chair say \"inflation\" on {}?", &["mentions"]),
    one(Category::Mentions, "Will the anchor say \"unprecedented\" on {}?", &["mentions"]),
    exclusive(
        Category::Mentions,
        "First word of the keynote on {}",
        &["Hello", "Welcome", "Today", "Good"],
        &["mentions"],
    ),
    thresholds(
        Category::Mentions,
        "How often \"growth\" is said on {}",
        &["5 or more", "10 or more", "20 or more"],
        &["mentions"],
    ),
    one(Category::Tech, "New Orchard phone announced by {}?", &["tech"]),
    one(Category::Tech, "Moon lander launched by {}?", &["tech", "science"]),
    exclusive(
        Category::Tech,
        "Best language model on {}",
        &["Aurora", "Basalt", "Cirrus", "Dune", "Ember"],
        &["tech", "ai"],
    ),
    thresholds(Category::Tech, "Open issues of the big kernel on {}", &["Over 1,000", "Over 2,000"], &["tech"]),
    one(Category::Economics, "Rate cut by {}?", &["economy", "fed"]),
    one(Category::Economics, "Recession declared by {}?", &["economy"]),
    exclusive(Category::Economics, "Central bank decision on {}", &["Cut", "Hold", "Raise"], &["economy", "fed"]),
    thresholds(
        Category::Economics,
        "Inflation reported on {}",
        &["2.4% or more", "2.6% or more", "2.8% or more", "3.0% or more"],
        &["economy", "inflation"],
    ),
    one(Category::Culture, "New album by The Night Ferries by {}?", &["pop-culture", "music"]),
    one(Category::Culture, "\"The Long Field\" opens at number one on {}?", &["culture", "movies"]),
    exclusive(
        Category::Culture,
        "Song of the week, {}",
        &["Glasshouse", "Low Tide", "Parallel", "Saltwater"],
        &["culture", "music"],
    ),
    thresholds(
        Category::Culture,
        "Opening weekend of \"The Long Field\", {}",
        &["Over $50m", "Over $80m", "Over $120m"],
        &["culture", "movies"],
    ),
    one(Category::Weather, "Rain in Lisbon on {}?", &["weather"]),
    one(Category::Weather, "Frost in Vienna on {}?", &["weather"]),
    exclusive(
        Category::Weather,
        "Highest temperature in New York on {}",
        &["65° or below", "66-67°", "68-69°", "70-71°", "72-73°", "74° or above"],
        &["weather"],
    ),
    thresholds(
        Category::Weather,
        "Snow on the pass by {}",
        &["Over 10 cm", "Over 25 cm", "Over 50 cm"],
        &["weather", "climate"],
    ),
    one(Category::Other, "Will the lighthouse reopen by {}?", &["general"]),
    one(Category::Other, "Will the record balloon flight stand on {}?", &["general"]),
    exclusive(Category::Other, "Name of the zoo's panda, {}", &["Bao", "Lin", "Mei"], &["general"]),
    thresholds(Category::Other, "Visitors of the fair by {}", &["Over 50,000", "Over 100,000"], &["general"]),
    one(Category::Crypto, "Bitcoin dominance higher on {}?", &["crypto", "bitcoin"]),
    one(Category::Crypto, "Exchange token listed by {}?", &["crypto"]),
    thresholds(
        Category::Crypto,
        "Bitcoin above on {}",
        &["$55,000", "$60,000", "$65,000", "$70,000", "$75,000"],
        &["crypto", "bitcoin", "crypto-prices"],
    ),
    thresholds(
        Category::Crypto,
        "Ethereum above on {}",
        &["$2,000", "$2,400", "$2,800"],
        &["crypto", "ethereum", "crypto-prices"],
    ),
    one(Category::Geopolitics, "Ceasefire in the northern strait by {}?", &["geopolitics", "world"]),
    one(Category::Geopolitics, "Border crossing reopened by {}?", &["geopolitics", "world"]),
    exclusive(
        Category::Geopolitics,
        "Host of the next summit, {}",
        &["Geneva", "Nairobi", "Singapore"],
        &["geopolitics", "world"],
    ),
    thresholds(
        Category::Geopolitics,
        "Signatories of the accord by {}",
        &["10 or more", "20 or more", "30 or more"],
        &["geopolitics", "world"],
    ),
    exclusive(
        Category::Sports,
        "Riverside against Westgate on {}",
        &["Riverside", "Draw", "Westgate"],
        &["sports", "soccer"],
    ),
    thresholds(Category::Finance, "Ten-year yield on {}", &["Above 3.75%", "Above 4.00%", "Above 4.25%"], &["finance"]),
    exclusive(
        Category::Politics,
        "Largest party in the Eastmark assembly, {}",
        &["Centre", "Greens", "Labour", "Liberals"],
        &["politics", "elections"],
    ),
    thresholds(
        Category::Mentions,
        "Questions taken at the briefing on {}",
        &["10 or more", "15 or more", "20 or more"],
        &["mentions"],
    ),
    thresholds(Category::Tech, "Downloads of the new browser by {}", &["Over 1m", "Over 5m", "Over 10m"], &["tech"]),
    thresholds(
        Category::Economics,
        "Jobs added, report of {}",
        &["Over 50,000", "Over 100,000", "Over 150,000"],
        &["economy"],
    ),
    exclusive(
        Category::Culture,
        "Best picture of the Harbour festival, {}",
        &["The Long Field", "Quiet Hours", "Paper Boats"],
        &["culture", "movies"],
    ),
    thresholds(
        Category::Weather,
        "Named storms by {}",
        &["3 or more", "5 or more", "7 or more"],
        &["weather", "climate"],
    ),
    exclusive(Category::Other, "Winner of the baking contest, {}", &["Ines", "Jonas", "Kofi"], &["general"]),
    thresholds(
        Category::Crypto,
        "Solana above on {}",
        &["$120", "$150", "$180"],
        &["crypto", "solana", "crypto-prices"],
    ),
    exclusive(
        Category::Geopolitics,
        "First to ratify the accord, {}",
        &["Aurelia", "Borduria", "Castellan"],
        &["geopolitics", "world"],
    ),
];

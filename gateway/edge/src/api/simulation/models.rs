//! `GET /v1/simulation/fill-models`.

use super::provenance::FillModelName;
use crate::http::call::Call;
use crate::http::record::{record, value};
use crate::http::reply::{Outcome, Reply};
use engine::backtest::FillModel;
use serde_json::Value;

record! {
    /// The fill models.
    pub struct FillModels {
        models: Vec<FillModelRow> = vec![FillModelRow::example()];
    }

    /// How a fill takes from a book.
    pub struct FillModelRow {
        id: FillModelName = "depth_walk".into();
        label: &'static str = "Depth walk";
        realistic: bool = true, "It fills as a live order would.";
        free: bool = true, "Every plan has it.";
        description: &'static str = FillModel::DepthWalk.description();
    }
}

impl FillModelRow {
    fn new(model: FillModel) -> FillModelRow {
        FillModelRow {
            id: model.into(),
            label: model.label(),
            realistic: model.is_realistic(),
            free: model.is_free(),
            description: model.description(),
        }
    }
}

fn all() -> FillModels {
    FillModels { models: FillModel::ALL.into_iter().map(FillModelRow::new).collect() }
}

pub fn example() -> Value {
    value(&all())
}

pub fn list(_: &Call) -> Outcome {
    Ok(Reply::json(&all()))
}

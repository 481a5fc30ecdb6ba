//! How much a call of a chain computes, stage by stage. In what time is not known here.

use super::schedule::Schedule;
use crate::program::{
    Body, Effort, FUNCTION, Kind, LANES, Layout, QUERIES, RowResult, RowStep, Rows, STRIP, Sizes,
    Stage, StageSizes, Width, terms, tiles,
};

/// What one row computes, of a call of `rows` rows of a program.
pub(super) fn of_program(schedule: &Schedule, sizes: &Sizes, rows: u32) -> Effort {
    let mut effort = Effort::default();
    let share = 1.0 / f64::from(rows.max(1));
    for run in &schedule.runs {
        let stage = &schedule.program.stages[run.stage];
        effort.add(&of_stage(stage, &sizes.stages[run.stage]), share);
    }
    effort
}

/// What a stage computes for one call.
fn of_stage(stage: &Stage, sizes: &StageSizes) -> Effort {
    let layout = Layout::of(stage);
    let word = |at: u32| f64::from(sizes.words[(at - layout.sizes) as usize]);
    let loads = stage.loads.len() as f64;
    match &stage.body {
        Body::Map(map) => {
            let elements = match map.is_counted() {
                true => word(layout.count),
                false => 4.0 * f64::from(sizes.threads),
            };
            Effort::of(Kind::Term, elements * (loads + terms(&map.value)))
        }
        Body::Attention(heads) => {
            let queries = f64::from(sizes.threads / LANES * QUERIES);
            let scores = queries * heads.keys_of_a_query(word(layout.count));
            let mut effort = Effort::of(Kind::Product, scores * 2.0 * f64::from(heads.size));
            effort.add(&Effort::of(Kind::Term, scores * FUNCTION), 1.0);
            effort
        }
        Body::Named(..) | Body::Search(_) => Effort::default(), // Chains have no such stage.
        Body::Rows(rows) => match rows.width {
            Width::Tile(_) => {
                let threads = f64::from(sizes.threads / LANES);
                let behind = layout.matrix(rows.outer);
                let [height, width] =
                    [behind, behind + 1].map(|at| sizes.words[(at - layout.sizes) as usize]);
                let tiles = f64::from(tiles(height, width));
                let (height, width) = (f64::from(height), f64::from(width));
                let elements = threads / tiles.max(1.0) * height * width;
                let mut effort = Effort::of(Kind::Product, elements * word(layout.count));
                effort.add(
                    &Effort::of(Kind::Term, elements * (loads + of_rows(rows))),
                    1.0,
                );
                effort
            }
            Width::Thread | Width::Group => {
                let lanes = if rows.width == Width::Group { LANES } else { 1 };
                let count = word(layout.count);
                let values = match rows.is_cut {
                    true => count.min(f64::from(STRIP)),
                    false => count,
                };
                let elements = f64::from(sizes.threads / lanes) * values;
                Effort::of(Kind::Term, elements * (loads + of_rows(rows)))
            }
        },
    }
}

/// Operations on each value of a row.
fn of_rows(rows: &Rows) -> f64 {
    let folds = rows.steps.iter().map(|step| match step {
        RowStep::Fold(_, value) => 1.0 + terms(value),
        RowStep::Let(_) => 0.0,
    });
    let result = match &rows.result {
        RowResult::Element(value) => terms(value),
        RowResult::Row(_) => 0.0,
    };
    folds.sum::<f64>() + result
}

#[cfg(all(test, not(target_arch = "wasm32")))]
#[path = "cost_tests.rs"]
mod tests;

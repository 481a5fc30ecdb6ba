//! Fusion: a chain becomes a program of as few stages as can be.
//!
//! `lower` makes primitives of composite ops, `cuts` decides which primitives share a stage,
//! `draft` and `finalize` make the stages. A [`Program`] holds no number, so that calls of
//! different shapes merge; [`Sizes`] holds all numbers. Nothing is printed or run here.

#![expect(
    clippy::cast_possible_truncation,
    reason = "a chain has few nodes, and no shape more than 2^30 elements"
)]

mod attention;
mod colocate;
mod cuts;
mod draft;
mod finalize;
mod geometry;
mod in_place;
mod limit;
mod lower;
mod operand_view;
mod recomputation;
mod stages;
mod stored;
mod view;

pub use self::stored::{StoredPrograms, stored_programs};

use self::draft::{Context, draft};
use self::limit::StageTooLarge;
use self::lower::Lowered;
use self::stages::{Stages, Target};
use crate::graph::chain::{Chain, Home, Op};
use crate::program::{BufferId, Program, Sizes};

/// The program of a chain, and the sizes of a call of it.
pub fn fuse(chain: &Chain) -> (Program, Sizes) {
    let lowered = lower::lower(chain);
    let homes: Vec<Home> = chain
        .inputs()
        .map(|node| match node.op {
            Op::Input { home, .. } => home,
            _ => Home::Call,
        })
        .collect();
    let mut forced = vec![false; lowered.values.len()];
    loop {
        let stages = cuts::cut(&lowered, &forced);
        match assemble(&lowered, &stages, &homes) {
            Ok((mut program, mut sizes)) => {
                in_place::reuse(&mut program, &mut sizes);
                return (program, sizes);
            }
            // Invariant: the value is another one each time, so that the loop ends.
            Err(StageTooLarge(value)) => forced[value] = true,
        }
    }
}

fn assemble(
    lowered: &Lowered,
    stages: &Stages<'_>,
    homes: &[Home],
) -> Result<(Program, Sizes), StageTooLarge> {
    let mut program = Program::default();
    let mut sizes = Sizes::default();
    let mut buffers: Vec<Option<u32>> = vec![None; lowered.values.len()];
    let mut results: Vec<Option<u32>> = vec![None; lowered.values.len()];
    for root in &stages.roots {
        let (value, is_result) = match root.target {
            Target::Value => (root.value, false),
            Target::Output => (root.value, true),
            Target::Part { whole, .. } => (whole, !stages.is_kept[whole]),
        };
        let home = if is_result {
            &mut results
        } else {
            &mut buffers
        };
        let buffer = *home[value].get_or_insert_with(|| {
            sizes.buffers.push(lowered.values[value].shape.count());
            program.buffers += 1;
            program.buffers - 1
        });
        let context = Context {
            lowered,
            stages,
            homes,
            buffers: &buffers,
        };
        let draft = draft(&context, root);
        limit::check(&context, root, &draft)?;
        let (stage, numbers) = finalize::build(&context, root, &draft, BufferId(buffer));
        program.stages.push(stage);
        sizes.stages.push(numbers);
    }
    for output in &lowered.outputs {
        let buffer = results[*output].expect("every result has a stage");
        program.outputs.push(BufferId(buffer));
    }
    Ok((program, sizes))
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;

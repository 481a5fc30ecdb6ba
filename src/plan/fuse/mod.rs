//! Fusion: a chain becomes a program of as few kernels as can be.
//!
//! `lower` makes primitives of composite ops, `partition` decides which of them
//! share a stage, `stage` and `finalize` make the stages. A [`Program`] holds no
//! number, so that calls of different shapes merge; [`Sizes`] holds them all.
//! WGSL is printed by `kernel::generated`, and the processor runs the same
//! stages in `device/cpu/program`.

#![expect(
    clippy::cast_possible_truncation,
    reason = "a chain has few nodes, and no shape more than 2^30 elements"
)]

mod attention;
mod colocate;
mod cost;
mod finalize;
mod in_place;
mod limit;
mod lower;
mod partition;
mod places;
mod stage;
mod view;

use self::limit::TooMuch;
use self::lower::Lowered;
use self::partition::{Cut, Target};
use self::stage::Context;
use crate::graph::chain::{Chain, Home, Op};
use crate::program::{BufferId, Program, Sizes};

/// The program of a chain, and the numbers of a call of it.
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
        let cut = partition::cut(&lowered, &forced);
        match assemble(&lowered, &cut, &homes) {
            Ok((mut program, mut sizes)) => {
                in_place::reuse(&mut program, &mut sizes);
                return (program, sizes);
            }
            // Invariant: another value each time, so this ends.
            Err(TooMuch(value)) => forced[value] = true,
        }
    }
}

fn assemble(lowered: &Lowered, cut: &Cut, homes: &[Home]) -> Result<(Program, Sizes), TooMuch> {
    let mut program = Program::default();
    let mut sizes = Sizes::default();
    let mut buffers: Vec<Option<u32>> = vec![None; lowered.values.len()];
    let mut results: Vec<Option<u32>> = vec![None; lowered.values.len()];
    for root in &cut.roots {
        let (value, is_result) = match root.target {
            Target::Value => (root.value, false),
            Target::Output => (root.value, true),
            Target::Part { whole, .. } => (whole, !cut.is_kept[whole]),
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
            cut,
            homes,
            buffers: &buffers,
        };
        let draft = stage::draft(&context, root);
        limit::check(&context, root, &draft)?;
        let (stage, numbers) = finalize::build(&context, root, (&draft, buffer));
        program.stages.push(stage);
        sizes.stages.push(numbers);
    }
    for output in &lowered.outputs {
        let buffer = results[*output].expect("every result has a stage");
        program.outputs.push(BufferId(buffer));
        sizes.outputs.push(lowered.values[*output].shape);
    }
    Ok((program, sizes))
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;

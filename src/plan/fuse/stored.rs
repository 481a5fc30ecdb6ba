//! Programs whose results stay on the device, in resident tensors.
//!
//! WebGPU refuses a dispatch that binds one buffer for reading and for writing. A stage
//! therefore writes to a tensor *directly* where it does not read that tensor's buffer, *in
//! place* where each element is computed of its own place, which is read through the binding of
//! the result, and otherwise *by scratch*: to a buffer of the program, which a last stage copies.

use super::in_place::read_by_result;
use crate::graph::chain::{Chain, Op, Store, StoreExtent};
use crate::graph::{ExprBuilder, Term};
use crate::program::{
    Access, Body, BufferId, Load, Map, Program, Sizes, Source, Stage, StageSizes, Target,
};

/// The programs of a chain whose results are stored.
#[derive(Debug)]
pub struct StoredPrograms {
    /// Right where no target shares its buffer with another tensor that its stage reads. `None`
    /// where stages have to read what was there before from other places than they write.
    pub direct: Option<(Program, Sizes)>,
    /// Right wherever tensors lie.
    pub by_scratch: (Program, Sizes),
}

/// The programs of a chain whose results are stored, and the sizes of a call of each; `program`
/// and `sizes` are those of the chain if its results were read.
pub fn stored_programs(chain: &Chain, program: Program, sizes: Sizes) -> StoredPrograms {
    let targets: Vec<StoreTarget> = chain
        .stores()
        .iter()
        .zip(&program.outputs)
        .map(|(store, output)| StoreTarget {
            input: target_input(chain, *store),
            result: *output,
            extent: store.extent,
        })
        .collect();
    StoredPrograms {
        direct: direct(&program, &sizes, &targets),
        by_scratch: by_scratch(program, sizes, &targets),
    }
}

/// A result, and where it is stored.
#[derive(Clone, Copy)]
struct StoreTarget {
    /// The number of the input that is the target.
    input: u32,
    result: BufferId,
    extent: StoreExtent,
}

/// The number of the input that a store's target is.
fn target_input(chain: &Chain, store: Store) -> u32 {
    match chain.node(store.target).op {
        Op::Input { index, .. } => index,
        _ => unreachable!("a target is an input"),
    }
}

/// The program whose stages write where results are stored.
fn direct(program: &Program, sizes: &Sizes, targets: &[StoreTarget]) -> Option<(Program, Sizes)> {
    let (mut program, mut sizes) = (program.clone(), sizes.clone());
    let results = std::mem::take(&mut program.outputs);
    let is_repeated = |(at, result)| results[..at].contains(result);
    if results.iter().enumerate().any(is_repeated) {
        return None; // One stage cannot write to two tensors.
    }
    for target in targets {
        redirect(&mut program, &mut sizes, *target)?;
    }
    let mut gone: Vec<u32> = results.iter().map(|BufferId(number)| *number).collect();
    gone.sort_unstable();
    for buffer in gone.into_iter().rev() {
        remove_buffer(&mut program, buffer);
        sizes.buffers.remove(buffer as usize);
    }
    Some((program, sizes))
}

/// Has the stages of a result write to the result's target; `None` where they cannot.
fn redirect(program: &mut Program, sizes: &mut Sizes, target: StoreTarget) -> Option<()> {
    let source = Source::Resident(target.input);
    let writes = |stage: &Stage| stage.buffer() == Some(target.result);
    let first = program.stages.iter().position(writes)?;
    let count = program.stages.iter().filter(|stage| writes(stage)).count();
    let reads = |stage: &Stage| stage.loads.iter().any(|load| load.source == source);
    // What an earlier stage reads, nobody has written yet.
    if program.stages[first + 1..].iter().any(reads) {
        return None;
    }
    if reads(&program.stages[first]) {
        let is_whole = target.extent == StoreExtent::Whole && count == 1;
        if !is_whole || !reads_own_place(&program.stages[first], &sizes.stages[first], source) {
            return None;
        }
        read_by_result(&mut program.stages[first], source);
    }
    if target.extent == StoreExtent::Part {
        let is_alone = count == 1;
        let is_strided = is_alone
            && stride_result(
                &mut program.stages[first],
                &mut sizes.stages[first],
                sizes.buffers[target.result.0 as usize],
            );
        if !is_strided {
            return None;
        }
    }
    for stage in program.stages.iter_mut().filter(|stage| writes(stage)) {
        stage.target = Target::Resident(target.input);
    }
    Some(())
}

/// Whether a stage is a map that reads each element of a source in the element's own place.
fn reads_own_place(stage: &Stage, sizes: &StageSizes, source: Source) -> bool {
    let is_whole = matches!(&stage.body, Body::Map(map) if !map.is_strided);
    let mut loads = stage.loads.iter().zip(&sizes.offsets);
    is_whole
        && loads.all(|(load, offset)| {
            load.source != source || load.access == Access::Flat && *offset == 0
        })
}

/// Gives a flat map strides for its result, so that it stores single elements and leaves those
/// behind its last one as they are: `true` where it did.
fn stride_result(stage: &mut Stage, sizes: &mut StageSizes, count: u32) -> bool {
    let is_flat = stage.is_flat_map() && !stage.looks_anywhere();
    if let (Body::Map(map), true) = (&mut stage.body, is_flat) {
        map.rank = 1;
        map.is_strided = true;
        sizes.words = vec![count, 1];
    }
    is_flat
}

/// The program that computes results as those of any chain, and copies each to its target.
fn by_scratch(mut program: Program, mut sizes: Sizes, targets: &[StoreTarget]) -> (Program, Sizes) {
    program.outputs.clear();
    for target in targets {
        let count = sizes.buffers[target.result.0 as usize];
        let mut stage = copy_stage(*target);
        let mut own = StageSizes {
            threads: count.div_ceil(4),
            elements: count,
            offsets: vec![0],
            ..StageSizes::default()
        };
        if target.extent == StoreExtent::Part {
            stride_result(&mut stage, &mut own, count);
        }
        program.stages.push(stage);
        sizes.stages.push(own);
    }
    (program, sizes)
}

/// A map that copies a result to its target.
fn copy_stage(target: StoreTarget) -> Stage {
    let mut value = ExprBuilder::default();
    let element = value.push(Term::Variable(0));
    Stage {
        body: Body::Map(Map {
            rank: 0,
            value: value.finish(element),
            is_strided: false,
        }),
        loads: vec![Load {
            source: Source::Buffer(target.result),
            binding: 0,
            access: Access::Flat,
            packing: None,
        }],
        scalars: Vec::new(),
        target: Target::Resident(target.input),
    }
}

/// Takes a buffer that no stage writes from a program.
fn remove_buffer(program: &mut Program, gone: u32) {
    let renumber = |buffer: &mut BufferId| buffer.0 -= u32::from(buffer.0 > gone);
    for stage in &mut program.stages {
        if let Target::Buffer(buffer) = &mut stage.target {
            renumber(buffer);
        }
        for load in &mut stage.loads {
            if let Source::Buffer(buffer) = &mut load.source {
                renumber(buffer);
            }
        }
    }
    program.buffers -= 1;
}

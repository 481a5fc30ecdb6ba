//! Maps that write where they read.
//!
//! The last reader of an intermediate needs no second buffer if that reader is a map which
//! reads each element in its own place: a thread then reads and writes only its own elements.
//! WebGPU refuses a buffer that a dispatch binds both for reading and for writing, so such a
//! load goes through the binding of the result.

use crate::program::{Access, Body, BufferId, Program, RESULT, Sizes, Source, Stage, Target};

/// Gives every map that may work in place the buffer of an operand.
pub(super) fn reuse(program: &mut Program, sizes: &mut Sizes) {
    let outputs = program.outputs.iter().enumerate();
    let mut repeated = outputs.filter(|(at, output)| program.outputs[..*at].contains(output));
    if repeated.next().is_some() {
        return; // A stage runs again at the end, on operands that must not be overwritten.
    }
    for at in 0..program.stages.len() {
        if let Some(buffer) = operand(program, sizes, at) {
            merge(program, sizes, at, buffer);
        }
    }
}

/// The operand that a stage may write over.
fn operand(program: &Program, sizes: &Sizes, at: usize) -> Option<BufferId> {
    let stage = &program.stages[at];
    let is_whole = matches!(&stage.body, Body::Map(map) if !map.is_strided);
    let own = stage.buffer()?;
    if !is_whole || program.outputs.contains(&own) {
        return None;
    }
    let words = |buffer: BufferId| sizes.buffers[buffer.0 as usize];
    let reads = |stage: usize, buffer| {
        let mut loads = program.stages[stage].loads.iter();
        loads.any(|load| load.source == Source::Buffer(buffer))
    };
    let is_own_place = |load: usize| {
        stage.loads[load].access == Access::Flat && sizes.stages[at].offsets[load] == 0
    };
    stage.loads.iter().find_map(|load| match load.source {
        Source::Buffer(buffer) => {
            let mut loads = stage.loads.iter().enumerate();
            let fits = words(buffer) == words(own)
                && loads.all(|(at, of)| of.source != load.source || is_own_place(at))
                && !(at + 1..program.stages.len()).any(|later| reads(later, buffer));
            fits.then_some(buffer)
        }
        Source::Input(_) | Source::Scalar | Source::Resident(_) => None,
    })
}

/// Has a stage read a source through the binding of the result.
pub(super) fn read_by_result(stage: &mut Stage, source: Source) {
    let mut loads = stage.loads.iter();
    let own = loads.find(|load| load.source == source);
    let binding = own.map_or(RESULT, |load| load.binding);
    for load in &mut stage.loads {
        load.binding = match load.binding {
            own if own == binding => RESULT,
            other if other > binding && other < RESULT => other - 1,
            other => other,
        };
    }
}

/// Gives a stage the buffer of an operand, and takes its own buffer from the program.
fn merge(program: &mut Program, sizes: &mut Sizes, at: usize, kept: BufferId) {
    let Target::Buffer(gone) = program.stages[at].target else {
        return;
    };
    let renamed = |buffer: BufferId| match buffer {
        buffer if buffer == gone => BufferId(kept.0 - u32::from(kept.0 > gone.0)),
        BufferId(number) => BufferId(number - u32::from(number > gone.0)),
    };
    read_by_result(&mut program.stages[at], Source::Buffer(kept));
    for stage in &mut program.stages {
        if let Target::Buffer(buffer) = &mut stage.target {
            *buffer = renamed(*buffer);
        }
        for load in &mut stage.loads {
            if let Source::Buffer(buffer) = &mut load.source {
                *buffer = renamed(*buffer);
            }
        }
    }
    for output in &mut program.outputs {
        *output = renamed(*output);
    }
    program.buffers -= 1;
    sizes.buffers.remove(gone.0 as usize);
}

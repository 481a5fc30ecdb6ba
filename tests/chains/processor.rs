//! Runs programs on the processor.

use framebatch::device::program::{Numbers, Operands, Runner};
use framebatch::plan::fuse::{Program, Sizes, Source};
use framebatch::tensor::aligned;

/// A call's tensors, as words, and its constants.
#[derive(Clone, Debug, Default)]
pub(crate) struct Call {
    pub(crate) inputs: Vec<Vec<u32>>,
    pub(crate) constants: Vec<u32>,
}

/// The results of one call.
pub(crate) fn process(program: &Program, sizes: &Sizes, call: &Call) -> Vec<Vec<u32>> {
    let mut buffers: Vec<Vec<u32>> = (sizes.buffers.iter())
        .map(|words| vec![0xdead_beef; aligned(*words) as usize])
        .collect();
    for (stage, numbers) in program.stages.iter().zip(&sizes.stages) {
        let mut output = std::mem::take(&mut buffers[stage.buffer.0 as usize]);
        let source = |source: Source| match source {
            Source::Input(input) | Source::Resident(input) => &call.inputs[input as usize][..],
            Source::Buffer(buffer) => &buffers[buffer.0 as usize][..],
        };
        let loads: Vec<&[u32]> = stage.loads.iter().map(|load| source(load.source)).collect();
        let operands = Operands {
            loads: &loads,
            constants: &call.constants,
        };
        let numbers = Numbers {
            threads: numbers.threads,
            offsets: &numbers.offsets,
            result: numbers.result,
            words: &numbers.words,
        };
        Runner::new(stage).run(numbers, &operands, &mut output);
        buffers[stage.buffer.0 as usize] = output;
    }
    let outputs = program.outputs.iter();
    outputs
        .map(|output| {
            let words = sizes.buffers[output.0 as usize] as usize;
            buffers[output.0 as usize][..words].to_vec()
        })
        .collect()
}

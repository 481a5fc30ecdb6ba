//! Runs programs on the CPU.

use framebatch::device::program::{Numbers, Operands, Output, Runner, StageCall};
use framebatch::program::{Program, Sizes, Source};
use framebatch::tensor::aligned;

/// A call's tensors, as words, and its constants.
#[derive(Clone, Debug, Default)]
pub(crate) struct Call {
    pub(crate) inputs: Vec<Vec<u32>>,
    pub(crate) constants: Vec<u32>,
}

/// The results of one call.
pub(crate) fn compute(program: &Program, sizes: &Sizes, call: &Call) -> Vec<Vec<u32>> {
    compute_in_shares(program, sizes, call, usize::MAX)
}

/// The same in shares of so many lines wherever these lie one after the other,
/// the last share first, and each without the words of others.
pub(crate) fn compute_in_shares(
    program: &Program,
    sizes: &Sizes,
    call: &Call,
    share: usize,
) -> Vec<Vec<u32>> {
    let mut buffers: Vec<Vec<u32>> = (sizes.buffers.iter())
        .map(|words| vec![0xdead_beef; aligned(*words) as usize])
        .collect();
    for (stage, numbers) in program.stages.iter().zip(&sizes.stages) {
        let mut output = std::mem::take(&mut buffers[stage.buffer().unwrap().0 as usize]);
        let source = |source: Source| match source {
            Source::Input(input) | Source::Resident(input) => &call.inputs[input as usize][..],
            Source::Scalar => unreachable!("a chain has none"),
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
        let mut runner = Runner::new(stage);
        let lines = runner.lines(numbers);
        match lines.words {
            Some(words) if share < lines.count => {
                let shares = (0..lines.count).step_by(share);
                for first in shares.rev() {
                    let lines = first..lines.count.min(first + share);
                    let at = |line: usize| numbers.result as usize + line * words;
                    let own = Output {
                        words: &mut output[at(lines.start)..at(lines.end)],
                        start: at(lines.start),
                    };
                    // Whoever computes a share has a runner of its own.
                    let call = StageCall {
                        numbers,
                        operands: &operands,
                    };
                    Runner::new(stage).run_lines(call, lines, own);
                }
            }
            _ => runner.run(numbers, &operands, &mut output),
        }
        buffers[stage.buffer().unwrap().0 as usize] = output;
    }
    let outputs = program.outputs.iter();
    outputs
        .map(|output| {
            let words = sizes.buffers[output.0 as usize] as usize;
            buffers[output.0 as usize][..words].to_vec()
        })
        .collect()
}

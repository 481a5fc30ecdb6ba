//! How what was asked becomes a recipe: chains, ops, samplings of clips and searches.
//!
//! The only place of the planner that knows them; the rest knows programs.

use super::Recipe;
use super::cost::of_program;
use super::fuse::fuse;
use super::recipe::Extent;
use super::schedule::Schedule;
use super::slicing::{AxisRows, Slicing};
use crate::graph::chain::{Chain, Home, Node, Op};
use crate::graph::sampling::Sampling;
use crate::graph::searching::{BLOCK, Searching};
use crate::kernel::{Named, Settings};
use crate::program::{
    Access, Body, BufferId, Effort, Kind, Load, Program, RowOp, Sizes, Source, Stage, StageSizes,
    Target,
};
use crate::tensor::{DType, Format, aligned};

impl Recipe {
    /// Rows of an op.
    pub fn new(op: &RowOp) -> Recipe {
        let operands = op
            .operands
            .iter()
            .map(|format| Extent::rows(format.words()));
        Recipe {
            operands: operands.collect(),
            results: vec![Extent::rows(op.result.words())],
            inputs: op.operands.to_vec(),
            scalar: op.scalar,
            slicing: Slicing::Rows,
            effort: op.kernel.effort(&op.settings),
            ..of_one_stage(op.program(), 1, &[])
        }
    }

    /// Fuses a chain. `known` are recipes of which equal ones share a program,
    /// so that their calls are computed together.
    pub fn fuse(chain: &Chain, known: &[Recipe]) -> Recipe {
        let (program, sizes) = fuse(chain);
        let schedule = Schedule::shared(program, known.iter().map(|recipe| &recipe.schedule));
        let inputs = Inputs::of(chain);
        let is_flat = is_flat(&schedule.program, &sizes, &inputs.carried);
        let slicing = match is_flat {
            true => Slicing::Elements,
            false => AxisRows::of(chain).map_or(Slicing::Never, |rows| Slicing::Axis(rows.into())),
        };
        let rows = match &slicing {
            Slicing::Elements => sizes.buffers[0],
            Slicing::Axis(along) => along.by.rows,
            Slicing::Never | Slicing::Rows => 1,
        };
        let row_words = |input: usize| match &slicing {
            Slicing::Axis(along) => along.by.inputs[input],
            _ => u32::from(is_flat),
        };
        let (mut operands, mut tensors) = (Vec::new(), Vec::new());
        for (input, node) in chain.inputs().enumerate() {
            let words = row_words(input);
            match home(node) {
                Home::Call if words == 0 => operands.push(Extent::fixed(node.shape.count())),
                Home::Call => operands.push(Extent::rows(words)),
                Home::Resident | Home::Packed(_) => tensors.push(words),
            }
        }
        operands.push(Extent::fixed(chain.constants()));
        let outputs = schedule.program.outputs.iter().enumerate();
        let results = outputs.map(|(at, output)| match &slicing {
            Slicing::Elements => Extent::rows(1),
            Slicing::Axis(along) => Extent::rows(along.by.outputs[at]),
            _ => Extent::fixed(aligned(sizes.buffers[output.0 as usize])),
        });
        let results = results.collect();
        Recipe {
            effort: of_program(&schedule, &sizes, rows),
            operands,
            results,
            tensors,
            places: inputs.places,
            numbers: chain.constants(),
            rows: Some(rows),
            slicing,
            schedule,
            sizes,
            ..Recipe::default()
        }
    }

    /// A sampling of clips: lanes of rows as threads. Lanes, widths and clips are the
    /// calls' own, so that calls of any clips are computed together.
    pub fn sample(sampling: &Sampling, known: &[Recipe]) -> Recipe {
        // The rows, the header, the store and the target.
        let [rows, header, store, target] = [0, 1, 2, 3];
        let load = |source, binding, access| Load {
            source,
            binding,
            access,
            packing: None,
        };
        let stage = Stage {
            body: Body::Named(Named::Clip, Settings::default()),
            loads: vec![
                load(Source::Input(rows), 0, Access::Flat),
                load(Source::Input(header), 0, Access::Flat),
                load(Source::Resident(store), 1, Access::Found),
            ],
            scalars: Vec::new(),
            target: match sampling.is_stored {
                true => Target::Resident(target),
                false => Target::Buffer(BufferId(0)),
            },
        };
        // A lane blends up to four floats of two keys, and looks for these.
        let lanes = f64::from(sampling.layers) * f64::from(sampling.lanes);
        let (results, slicing) = match sampling.is_stored {
            // A part of what is stored would have no answer of its own.
            true => (Extent::default(), Slicing::Never),
            false => (Extent::rows(sampling.width), Slicing::Rows),
        };
        Recipe {
            operands: vec![Extent::rows(sampling.row), Extent::fixed(sampling.header())],
            results: vec![results],
            tensors: vec![0; sampling.tensors() as usize],
            places: vec![0, 1, 0, 1],
            inputs: vec![Format {
                dtype: DType::Parameter,
                width: sampling.row,
            }],
            slicing,
            effort: Effort::of(Kind::Blend, 8.0 * lanes),
            ..of_one_stage(Program::of(stage), sampling.lanes, known)
        }
    }

    /// A search of an index: queries, and the mask of their call.
    pub fn search(searching: &Searching) -> Recipe {
        let load = |input| Load {
            source: Source::Input(input),
            binding: 0,
            access: Access::Flat,
            packing: None,
        };
        let stage = Stage {
            body: Body::Search(*searching),
            loads: vec![load(0), load(1)],
            scalars: Vec::new(),
            target: Target::Buffer(BufferId(0)),
        };
        // A vector is read once for several queries, and little is computed of it.
        let vectors = f64::from(searching.blocks) * f64::from(BLOCK);
        let products = vectors * f64::from(searching.query());
        Recipe {
            operands: vec![
                Extent::rows(searching.query()),
                Extent::fixed(searching.mask.words),
            ],
            results: vec![Extent::rows(2 * searching.count)],
            tensors: vec![0; searching.pages() as usize],
            slicing: Slicing::Rows,
            effort: Effort::of(Kind::Product, products),
            ..of_one_stage(Program::of(stage), 1, &[])
        }
    }
}

/// What recipes of one stage have in common, whose rows take so many threads; its inputs
/// are the operands.
fn of_one_stage(program: Program, threads: u32, known: &[Recipe]) -> Recipe {
    let loads = program.stages[0].loads.len();
    let sizes = Sizes {
        stages: vec![StageSizes {
            threads,
            offsets: vec![0; loads],
            ..StageSizes::default()
        }],
        buffers: vec![0; program.buffers as usize],
        ..Sizes::default()
    };
    Recipe {
        schedule: Schedule::shared(program, known.iter().map(|recipe| &recipe.schedule)),
        places: (0..loads).collect(),
        sizes,
        ..Recipe::default()
    }
}

/// Where the inputs of a chain lie.
#[derive(Default)]
struct Inputs {
    /// For each its number among those of its home.
    places: Vec<usize>,
    /// Elements of those that come with the call.
    carried: Vec<u32>,
}

impl Inputs {
    fn of(chain: &Chain) -> Inputs {
        let (mut inputs, mut residents) = (Inputs::default(), 0);
        for node in chain.inputs() {
            inputs.places.push(match home(node) {
                Home::Call => {
                    inputs.carried.push(node.shape.count());
                    inputs.carried.len() - 1
                }
                Home::Resident | Home::Packed(_) => {
                    residents += 1;
                    residents - 1
                }
            });
        }
        inputs
    }
}

/// Whether elements are computed one by one, each from those in its place, so that a
/// call can be cut anywhere.
fn is_flat(program: &Program, sizes: &Sizes, carried: &[u32]) -> bool {
    let ([stage], [_]) = (&program.stages[..], &program.outputs[..]) else {
        return false;
    };
    let Body::Map(map) = &stage.body else {
        return false;
    };
    let mut loads = stage.loads.iter().zip(&sizes.stages[0].offsets);
    !map.is_strided
        && carried.iter().all(|count| *count == sizes.buffers[0])
        && loads.all(|(load, offset)| load.access == Access::Flat && *offset == 0)
}

fn home(node: &Node) -> Home {
    match node.op {
        Op::Input { home, .. } => home,
        _ => Home::Call,
    }
}

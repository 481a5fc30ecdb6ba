//! Kernels to run, and their sources with a count in each loop.
//!
//! What they are run over is said in `words.rs`.

use framebatch::graph::chain::{Chain, Home};
use framebatch::graph::shape::Shape;
use framebatch::graph::{NodeId, Precision};
use framebatch::kernel::{Kernel, PARAMS, generated};
use framebatch::plan::fuse::fuse;
use framebatch::program::{Products, Tiles};
use framebatch::tensor::{DType, Packing};

/// Steps that a thread may take in all loops together, fewer than where GPU drivers leave
/// one: enough for every kernel that goes through all words, or the 4096 values of a
/// row, a few times.
const STEPS: u32 = 1 << 15;

/// The binding of the count of steps, behind all others.
pub(crate) const COUNT: u32 = PARAMS + 1;

/// A kernel to run.
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) operands: usize,
}

impl Subject {
    pub(crate) fn of(kernel: &Kernel) -> Subject {
        Subject {
            name: format!("{kernel:?}"),
            text: kernel.source(Precision::F32),
            operands: kernel.operands(),
        }
    }
}

/// The kernels of the stages of a chain.
pub(crate) fn fused(record: impl Fn(&mut Chain) -> Vec<NodeId>) -> Vec<Subject> {
    let mut chain = Chain::default();
    for value in record(&mut chain) {
        chain.output(value).unwrap();
    }
    let (program, _) = fuse(&chain);
    let mut subjects = Vec::new();
    for stage in &program.stages {
        let tiles: &[Tiles] = match Products::of(stage) {
            Some(_) => &[Tiles::Large, Tiles::Small],
            None => &[Tiles::Large],
        };
        for tiles in tiles {
            subjects.push(Subject {
                name: format!("{tiles:?} {:?}", stage.body),
                text: generated::source(stage, *tiles, Precision::F32),
                operands: stage.bindings(),
            });
        }
    }
    subjects
}

/// The source of a kernel whose threads count the steps of their loops, and how many
/// loops it has. Whether a thread took too many is written to the first word of `counts`
/// as the number of the filling, which the second word holds.
pub(crate) fn counting(text: &str) -> (String, usize) {
    let mut counted = format!(
        "struct Counts {{ filling_of_most: atomic<u32>, filling: u32, most: atomic<u32> }}
        @group(0) @binding({COUNT}) var<storage, read_write> counts: Counts;
        var<private> steps_taken: u32;
        fn count_step() {{
            steps_taken += 1u;
            if steps_taken > {STEPS}u {{
                atomicStore(&counts.filling_of_most, counts.filling);
                atomicMax(&counts.most, steps_taken);
            }}
        }}\n"
    );
    let (mut rest, mut loops) = (text, 0);
    while let Some(at) = ["for", "while", "loop"]
        .iter()
        .filter_map(|keyword| find_word(rest, keyword))
        .min()
    {
        // No header of a loop has braces.
        let body = at + rest[at..].find('{').expect("a loop has a body") + 1;
        counted += &rest[..body];
        counted += "count_step();";
        rest = &rest[body..];
        loops += 1;
    }
    (counted + rest, loops)
}

/// Where a keyword is that is no part of a name.
fn find_word(text: &str, keyword: &str) -> Option<usize> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut places = text.match_indices(keyword).map(|(at, _)| at);
    places.find(|at| {
        let (before, behind) = (&text[..*at], &text[at + keyword.len()..]);
        !before.ends_with(is_name) && !behind.starts_with(is_name)
    })
}

pub(crate) fn input(chain: &mut Chain, dims: &[u32]) -> NodeId {
    let shape = Shape::new(dims).unwrap();
    chain.input(shape, DType::F32, Home::Call).unwrap()
}

pub(crate) fn resident(chain: &mut Chain, dims: &[u32], packing: Option<Packing>) -> NodeId {
    let home = packing.map_or(Home::Resident, Home::Packed);
    let shape = Shape::new(dims).unwrap();
    chain.input(shape, DType::F32, home).unwrap()
}

/// Every packing, and none.
pub(crate) fn packings() -> impl Iterator<Item = Option<Packing>> {
    [None].into_iter().chain(Packing::ALL.map(Some))
}

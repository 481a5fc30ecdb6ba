//! Chains in chunks: cutting a call between its rows changes no bit.

use std::cell::{Cell, RefCell};

use framebatch::Error;
use framebatch::device::{
    Compiled, Counters, Cpu, Device, DeviceInfo, DeviceLimits, Engine, Flight, Readiness,
};
use framebatch::graph::chain::{Axes, Chain, Home, Norm, Reduction};
use framebatch::graph::shape::Shape;
use framebatch::graph::{BinaryFn, UnaryFn};
use framebatch::kernel::Kernel;
use framebatch::plan::Plan;
use framebatch::plan::fuse::fuse;
use framebatch::tensor::{Arena, DType, Packing};
use proptest::prelude::*;

use crate::engines;
use crate::random::{Sample, Words, values};
use crate::sessions::Sent;
use crate::under_random::{Tally, check, difference, runner, words};

/// A device that starts few threads at once, so that all that can be cut is.
struct Small<D> {
    device: D,
    threads: u64,
}

impl<D: Device> Device for Small<D> {
    fn limits(&self) -> DeviceLimits {
        DeviceLimits {
            max_threads: self.threads,
            ..self.device.limits()
        }
    }

    fn info(&self) -> DeviceInfo {
        self.device.info()
    }

    fn counters(&self) -> Counters {
        self.device.counters()
    }

    fn prepare(&mut self, kernel: &Kernel) -> Readiness {
        self.device.prepare(kernel)
    }

    fn adopt(&mut self, compiled: Compiled) {
        self.device.adopt(compiled);
    }

    fn launch(&mut self, plan: &Plan, arena: &mut Arena) -> Result<Flight, Error> {
        self.device.launch(plan, arena)
    }

    fn fill(&mut self, tensor: u32, words: &[u32], packing: Option<Packing>) -> Result<(), Error> {
        self.device.fill(tensor, words, packing)
    }

    fn allocate(&mut self, tensor: u32, words: u32) -> Result<(), Error> {
        self.device.allocate(tensor, words)
    }

    fn tensor_bytes(&self, tensor: u32) -> u64 {
        self.device.tensor_bytes(tensor)
    }

    fn patch(&mut self, tensor: u32, at: u32, words: &[u32]) {
        self.device.patch(tensor, at, words);
    }

    fn release(&mut self, tensor: u32) {
        self.device.release(tensor);
    }

    fn destroy(&mut self) {
        self.device.destroy();
    }
}

/// A network of random layers, of which each row is computed by itself.
fn network(words: &[u32], rows: u32) -> Sample {
    let mut words = Words(words.iter());
    let mut chain = Chain::default();
    let homes = [
        Home::Call,
        Home::Call,
        Home::Resident,
        Home::Packed(Packing::Int8),
        Home::Packed(Packing::Int4),
    ];
    let columns = words.pick(&[4, 5, 8, 33, 64]);
    let input = |words: &mut Words<'_>, chain: &mut Chain, dims: &[u32]| {
        let shape = Shape::new(dims).unwrap();
        chain.input(shape, DType::F32, words.pick(&homes)).unwrap()
    };
    let epsilon = chain.constant().unwrap();
    let mut layers = vec![input(&mut words, &mut chain, &[rows, columns])];
    for _ in 0..1 + words.below(6) {
        let x = *layers.last().unwrap();
        let columns = chain.node(x).shape.dims()[1];
        let made = match words.below(11) {
            0 => chain.unary(words.pick(&UnaryFn::OF_TENSORS), x),
            1 => {
                let shapes = [
                    vec![columns],
                    vec![1, columns],
                    vec![rows, 1],
                    vec![rows, columns],
                ];
                let shape = words.below(shapes.len());
                let y = input(&mut words, &mut chain, &shapes[shape]);
                chain.binary(words.pick(&BinaryFn::OF_TENSORS), x, y)
            }
            2..=4 => {
                let units = words.pick(&[3, 8, 65]);
                let w = input(&mut words, &mut chain, &[columns, units]);
                chain.matmul(x, w)
            }
            5 | 6 => {
                let norm = words.pick(&Norm::ALL);
                let epsilon = (norm != Norm::Softmax).then_some(epsilon);
                chain.norm(norm, x, 1, epsilon)
            }
            7 => {
                let mean = chain.reduce(words.pick(&Reduction::ALL[..4]), x, Axes::of(&[1]).kept());
                mean.and_then(|mean| chain.binary(BinaryFn::Sub, x, mean))
            }
            8 => {
                let other = words.pick(&layers);
                chain.concat(&[x, other], 1)
            }
            9 => chain.slice(x, &[(0, i32::MAX, 1), (1, i32::MAX, 2)]),
            // Refused where there are no columns.
            _ => match chain.reduce(Reduction::Argmax, x, Axes::of(&[1])) {
                Ok(best) => {
                    let table = input(&mut words, &mut chain, &[columns, 6]);
                    chain.gather(table, best, 0)
                }
                refused => refused,
            },
        };
        layers.extend(made.ok());
    }
    let last = *layers.last().unwrap();
    if words.below(3) == 0 {
        let sum = chain.reduce(Reduction::Sum, last, Axes::of(&[1])).unwrap();
        chain.output(sum).unwrap();
        chain.output(words.pick(&layers)).unwrap();
    }
    if words.below(3) == 0 {
        let columns = chain.node(last).shape.dims()[1];
        let vector = input(&mut words, &mut chain, &[columns]);
        let weighed = chain.matmul(last, vector).unwrap();
        chain.output(weighed).unwrap();
    }
    chain.output(last).unwrap();
    let call = values(&chain, u64::from(rows) << 8 | words.below(256) as u64);
    Sample { chain, call }
}

/// Compares random graphs whole and in chunks. On a GPU bits are only compared
/// where the oracle knows something (see `under_random`).
fn explore<D: Device>(open: impl Fn() -> D) {
    let is_exact = open().info().engine == Engine::Cpu;
    let small = |device| Small {
        device,
        threads: 64,
    };
    let sessions = RefCell::new((Sent::to(open()), Sent::to(small(open()))));
    let tally = RefCell::new(Tally::default());
    let (graphs, cut) = (Cell::new(0_u64), Cell::new(0_u64));
    let result = runner(40).run(&words(), |(words, rows)| {
        let (whole, small) = &mut *sessions.borrow_mut();
        let call = network(&words, rows * 4 + 9);
        let before = small.chunks();
        let (expected, _) = whole.run(&[&call]);
        let (results, _) = small.run(&[&call]);
        graphs.set(graphs.get() + 1);
        cut.set(cut.get() + u64::from(small.chunks() - before > 1));
        let known = check(&call, &expected[0], &mut tally.borrow_mut())?;
        let counts = |result: usize, i: usize| is_exact || known[result][i];
        let difference = difference(&expected[0], &results[0], counts);
        prop_assert!(
            difference.is_none(),
            "{}\n{}",
            difference.unwrap_or_default(),
            fuse(&call.chain).0
        );
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    let (graphs, cut) = (graphs.get(), cut.get());
    assert!(cut * 3 > graphs * 2, "{cut} of {graphs} graphs were cut");
}

#[test]
fn random_graphs_have_the_same_bits_in_chunks_on_the_cpu() {
    explore(Cpu::default);
}

#[test]
fn random_graphs_have_the_same_bits_in_chunks_on_the_gpu() {
    explore(engines::device);
}

/// Rows of a factor without columns, which a tensor on the device holds.
const EMPTY: [u32; 13] = [
    0, 0, 3172236388, 800745577, 0, 3647202671, 4022677896, 0, 1390582796, 3966392406, 1267790393,
    2040763043, 1769163583,
];

#[test]
fn a_tensor_without_elements_is_read_as_any_other() {
    let call = network(&EMPTY, 13);
    let (expected, _) = Sent::to(Cpu::default()).run(&[&call]);
    check(&call, &expected[0], &mut Tally::default()).unwrap();
}

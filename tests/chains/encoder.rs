//! An encoder of texts: how few dispatches it takes, that texts of all lengths
//! are one program, and that a text gives the same bits in any company.

use framebatch::device::{Cpu, Device};
use framebatch::embed::Pooling;
use framebatch::graph::chain::{Axes, Chain, Heads, Home, Norm, Reduction};
use framebatch::graph::shape::Shape;
use framebatch::graph::{BinaryFn, NodeId, UnaryFn};
use framebatch::plan::fuse::fuse;
use framebatch::tensor::{DType, Packing};

use crate::engines;
use crate::random::{Sample, values};
use crate::sessions::{Results, Sent};

/// The sizes of an encoder.
#[derive(Clone, Copy)]
struct Sizes {
    words: u32,
    positions: u32,
    width: u32,
    heads: u32,
    /// Floats between the two products of a layer.
    inner: u32,
    layers: usize,
}

const SMALL: Sizes = Sizes {
    words: 50,
    positions: 70,
    width: 64,
    heads: 2,
    inner: 96,
    layers: 2,
};

/// Records an encoder, whose weights lie at `home`.
struct Encoder {
    chain: Chain,
    sizes: Sizes,
    home: Home,
    epsilon: NodeId,
    scale: NodeId,
}

impl Encoder {
    fn weight(&mut self, dims: &[u32]) -> NodeId {
        // What is no matrix stays as it is.
        let home = if dims.len() > 1 {
            self.home
        } else {
            Home::Resident
        };
        let shape = Shape::new(dims).unwrap();
        self.chain.input(shape, DType::F32, home).unwrap()
    }

    fn binary(&mut self, function: BinaryFn, a: NodeId, b: NodeId) -> NodeId {
        self.chain.binary(function, a, b).unwrap()
    }

    fn add(&mut self, a: NodeId, b: NodeId) -> NodeId {
        self.binary(BinaryFn::Add, a, b)
    }

    /// x · w + b.
    fn linear(&mut self, x: NodeId, [from, to]: [u32; 2]) -> NodeId {
        let (w, b) = (self.weight(&[from, to]), self.weight(&[to]));
        let y = self.chain.matmul(x, w).unwrap();
        self.add(y, b)
    }

    fn norm(&mut self, x: NodeId) -> NodeId {
        let (w, b) = (
            self.weight(&[self.sizes.width]),
            self.weight(&[self.sizes.width]),
        );
        let epsilon = Some(self.epsilon);
        let y = self.chain.norm(Norm::Layer, x, -1, epsilon).unwrap();
        let y = self.binary(BinaryFn::Mul, y, w);
        self.add(y, b)
    }

    fn embed(&mut self, ids: NodeId, tokens: i32) -> NodeId {
        let width = self.sizes.width;
        let words = self.weight(&[self.sizes.words, width]);
        let positions = self.weight(&[self.sizes.positions, width]);
        let kinds = self.weight(&[2, width]);
        let x = self.chain.gather(words, ids, 0).unwrap();
        let at = self.chain.slice(positions, &[(0, tokens, 1)]).unwrap();
        let kind = self.chain.slice(kinds, &[(0, 1, 1)]).unwrap();
        let x = self.add(x, kind);
        let x = self.add(x, at);
        self.norm(x)
    }

    fn layer(&mut self, x: NodeId) -> NodeId {
        let Sizes {
            width,
            heads,
            inner,
            ..
        } = self.sizes;
        let all = self.linear(x, [width, 3 * width]);
        let part = [0, 1, 2].map(|part| {
            let start = part * width as i32;
            let ranges = [(0, i32::MAX, 1), (start, start + width as i32, 1)];
            self.chain.slice(all, &ranges).unwrap()
        });
        let heads = Heads {
            count: heads,
            is_causal: false,
            window: None,
        };
        let y = self.chain.attention(heads, part, self.scale).unwrap();
        let y = self.linear(y, [width, width]);
        let y = self.add(y, x);
        let x = self.norm(y);
        let y = self.linear(x, [width, inner]);
        let y = self.chain.unary(UnaryFn::Gelu, y).unwrap();
        let y = self.linear(y, [inner, width]);
        let y = self.add(y, x);
        self.norm(y)
    }
}

/// The encoder of a text of so many tokens: the mean of its rows or the first row, scaled to
/// length 1.
fn encoder(sizes: Sizes, home: Home, pooling: Pooling, tokens: u32) -> Chain {
    let mut chain = Chain::default();
    let ids = Shape::new(&[tokens]).unwrap();
    let ids = chain.input(ids, DType::U32, Home::Call).unwrap();
    let epsilon = chain.constant().unwrap();
    let scale = chain.constant().unwrap();
    let mut encoder = Encoder {
        chain,
        sizes,
        home,
        epsilon,
        scale,
    };
    let mut x = encoder.embed(ids, tokens as i32);
    for _ in 0..sizes.layers {
        x = encoder.layer(x);
    }
    let mut chain = encoder.chain;
    let x = match pooling {
        Pooling::Mean => chain
            .reduce(Reduction::Mean, x, Axes::of(&[0]).kept())
            .unwrap(),
        _ => chain.slice(x, &[(0, 1, 1)]).unwrap(),
    };
    let x = chain.norm(Norm::Normalize, x, -1, Some(epsilon)).unwrap();
    chain.output(x).unwrap();
    chain
}

/// Every home that weights may have.
const HOMES: [Home; 4] = [
    Home::Resident,
    Home::Packed(Packing::F16),
    Home::Packed(Packing::Int8),
    Home::Packed(Packing::Int4),
];

#[test]
fn a_layer_is_seven_dispatches_and_texts_of_all_lengths_are_one_program() {
    for home in HOMES {
        for pooling in [Pooling::Mean, Pooling::Cls] {
            let own = |tokens| fuse(&encoder(SMALL, home, pooling, tokens)).0;
            let usual = own(9);
            let count = usual.stages.len();
            assert!(count <= 7 * SMALL.layers + 3, "{count} stages:\n{usual}");
            for tokens in [1, 2, 31, 32, 33, 64, 65, 70] {
                let own = own(tokens);
                assert!(own == usual, "{tokens} tokens: {own}\ninstead of\n{usual}");
            }
        }
    }
}

/// Holds what texts give in one batch to what each gives alone; how many
/// dispatches that saves.
fn hold_together<D: Device>(device: D, home: Home) -> u64 {
    let mut session = Sent::to(device);
    let lengths = [5, 1, 33, 64, 2, 70, 17, 32];
    let weights = values(&encoder(SMALL, home, Pooling::Mean, 1), 11);
    let samples = lengths.map(|tokens| {
        let pooling = [Pooling::Mean, Pooling::Cls][tokens as usize % 2];
        let chain = encoder(SMALL, home, pooling, tokens);
        let mut call = weights.clone();
        call.inputs[0] = (0..tokens)
            .map(|i| (i * i + tokens) % SMALL.words)
            .collect();
        Sample { chain, call }
    });
    let mut apart = 0;
    let alone: Vec<Results> = (samples.iter())
        .map(|sample| {
            let (mut results, dispatches) = session.run(&[sample]);
            apart += dispatches;
            results.remove(0)
        })
        .collect();
    let (together, dispatches) = session.run(&samples.each_ref());
    for (tokens, (alone, together)) in lengths.iter().zip(alone.iter().zip(&together)) {
        assert_eq!(alone, together, "{tokens} tokens, {home:?}");
        let length: f32 = alone[0].iter().map(|x| f32::from_bits(*x).powi(2)).sum();
        assert!((length - 1.0).abs() < 1e-3, "a vector of length {length}");
    }
    apart - dispatches
}

#[test]
fn a_text_gives_the_same_bits_in_any_company() {
    for home in HOMES {
        let gpu = engines::device();
        // Two programs instead of eight, that of first rows with a stage less.
        assert_eq!(hold_together(gpu, home), 3 * (17 + 16));
        hold_together(Cpu::default(), home);
    }
}

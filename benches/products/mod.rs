//! Products of square matrices that stay on the device: how many operations a
//! second, without transfers.
//!
//! A chain of many products takes longer than a chain of few by the products
//! alone; all else they have in common.

use framebatch::{Blocking, Config, Error, Tensor};

use crate::clock::{Times, time, times_of};
use crate::report::{Row, Table, Unit};
use crate::{Options, open};

pub(crate) const NAME: &str = "products";

/// Numbers of a side, and the products of the short chain and of the long one.
const SIDES: [(usize, [usize; 2]); 3] = [(256, [10, 210]), (1024, [10, 110]), (4096, [2, 22])];
const RUNS: usize = 15;
const QUICK_RUNS: usize = 3;

/// A·B·B·…, a row's sum each. B keeps sums as they are, about.
struct Chain {
    side: usize,
    a: Vec<f32>,
    b: Vec<f32>,
    on_device: [Tensor; 3],
}

/// Measures; on a software adapter only the smallest case, unless `--largest`
/// says otherwise.
pub(crate) fn measure(options: &Options) -> Table {
    let default_runs = if options.quick { QUICK_RUNS } else { RUNS };
    let runs = options.runs.unwrap_or(default_runs);
    let gpu = open(Config::default()).blocking();
    let default = if gpu.info().software {
        SIDES[0].0
    } else {
        usize::MAX
    };
    let largest = options.largest.unwrap_or(default);
    println!("\n  side  products   short ms    long ms  ms a product  TFLOP/s");
    let sides = SIDES.into_iter().filter(|(side, _)| *side <= largest);
    let rows = sides.map(|(side, counts)| {
        let chain = Chain::new(&gpu, side);
        for count in counts {
            chain.check(&chain.sums(&gpu, count).expect("answered"), count);
        }
        let [short, long] = counts.map(|count| times_of(runs, || time(|| chain.sums(&gpu, count))));
        row(side, counts, [&short, &long])
    });
    Table {
        about: "one product of matrices of that side that stay on the device: a long chain less a short one, over the products between",
        unit: Some(Unit::Time("ms a product")),
        rows: rows.collect(),
    }
}

impl Chain {
    fn new(gpu: &Blocking, side: usize) -> Chain {
        let count = side * side;
        let a = numbers(count, 1, 1.0);
        let b = numbers(count, 40_503, 2.0 / side as f32);
        let ones = vec![1.0; side];
        let dims = |columns: usize| [side, columns].map(|dim| u32::try_from(dim).expect("small"));
        let tensor =
            |data: &[f32], columns| gpu.tensor(data, &dims(columns)).expect("there is room");
        let on_device = [tensor(&a, side), tensor(&b, side), tensor(&ones, 1)];
        Chain {
            side,
            a,
            b,
            on_device,
        }
    }

    fn sums(&self, gpu: &Blocking, products: usize) -> Result<Vec<f32>, Error> {
        let mut batch = gpu.batch();
        let [a, b, ones] = &self.on_device;
        let mut x = batch.tensor(a)?;
        let (b, ones) = (batch.tensor(b)?, batch.tensor(ones)?);
        for _ in 0..products {
            x = batch.matmul(x, b)?;
        }
        let sums = batch.matmul(x, ones)?;
        batch.execute()?;
        batch.read(sums)
    }

    /// Compares sums with those in double precision, of vectors from the right.
    fn check(&self, sums: &[f32], products: usize) {
        let times = |matrix: &[f32], vector: &[f64]| -> Vec<f64> {
            let rows = matrix.chunks(self.side);
            let dot = |row: &[f32]| row.iter().zip(vector).map(|(m, v)| f64::from(*m) * v).sum();
            rows.map(dot).collect()
        };
        let ones = vec![1.0; self.side];
        let right = (0..products).fold(ones, |vector, _| times(&self.b, &vector));
        let expected = times(&self.a, &right);
        let is_near = |(sum, expected): (&f32, &f64)| {
            let error = (f64::from(*sum) - expected).abs();
            error <= 1e-4 * expected
        };
        assert!(
            sums.len() == self.side && sums.iter().zip(&expected).all(is_near),
            "{products} products of {} are wrong",
            self.side
        );
    }
}

fn row(side: usize, counts: [usize; 2], [short, long]: [&Times; 2]) -> Row {
    let more = (counts[1] - counts[0]) as f64;
    let few = short.median();
    let each = long.map(|many| (many - few) / more);
    let teraflops = 2.0 * (side as f64).powi(3) / (each.median() * 1e9);
    let (many, one) = (long.median(), each.median());
    println!(
        "{side:6}  {:3} {:4} {few:10.3} {many:10.3} {one:13.4} {teraflops:8.3}",
        counts[0], counts[1]
    );
    Row::new(&format!("product-{side}"), "framebatch", each)
        .with("teraflops", teraflops)
        .with("shortChain", few)
        .with("longChain", many)
}

/// Numbers from 0 to `most`.
fn numbers(count: usize, seed: usize, most: f32) -> Vec<f32> {
    let word = |i: usize| (i.wrapping_mul(2_654_435_769) + seed) >> 7 & 0xffff;
    (0..count)
        .map(|i| word(i) as f32 / 65536.0 * most)
        .collect()
}

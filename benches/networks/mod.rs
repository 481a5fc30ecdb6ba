//! 500 callers of one small network, with 1 to 40 rows each: one after the other,
//! all at the same time, and by hand as one call of all rows.

use framebatch::{Batch, Error, Gpu, Preset, Tensor, Value};
use pollster::block_on;

use crate::clock::{time, times_of};
use crate::report::{Row, Table};
use crate::{Options, open};

pub(crate) const NAME: &str = "networks";

const CALLERS: usize = 500;
const MOST_ROWS: usize = 40;
/// Numbers of a row on its way.
const WIDTHS: [usize; 3] = [32, 64, 10];
const RUNS: usize = 15;
const QUICK_RUNS: usize = 3;

type Answers = Vec<Vec<f32>>;
type Way = fn(&Gpu, &[Tensor; 4], &[Vec<f32>]) -> Result<Answers, Error>;

const WAYS: [(&str, Way); 3] = [
    ("one by one", one_by_one),
    ("together", together),
    ("all rows in one call", all_rows),
];

pub(crate) fn measure(options: &Options) -> Table {
    let default_runs = if options.quick { QUICK_RUNS } else { RUNS };
    let runs = options.runs.unwrap_or(default_runs);
    let gpu = open(Preset::Frame.into());
    let weights = weights(&gpu);
    let callers = callers();
    let rows: usize = callers.iter().map(|rows| rows.len() / WIDTHS[0]).sum();
    println!("\n{CALLERS} callers, {rows} rows\n  way                          ms  submissions");
    let expected = one_by_one(&gpu, &weights, &callers).expect("answered");
    let measured = WAYS.map(|(name, way)| {
        let run = || way(&gpu, &weights, &callers);
        let before = gpu.stats().device.submits;
        assert!(run().expect("answered") == expected, "{name}: other bits");
        let submits = gpu.stats().device.submits - before;
        let times = times_of(runs, || time(run));
        println!("  {name:24} {:8.3} {submits:12}", times.median());
        let system = format!("framebatch-{}", name.replace(' ', "-"));
        Row::new(&format!("callers-{CALLERS}"), &system, times).with("submits", submits as f64)
    });
    Table {
        about: "callers of one small network, with 1 to 40 rows each",
        unit: None,
        rows: measured.into(),
    }
}

fn one_by_one(gpu: &Gpu, weights: &[Tensor; 4], callers: &[Vec<f32>]) -> Result<Answers, Error> {
    let each = callers.iter().map(|rows| {
        let (mut batch, scores) = record(gpu, weights, rows)?;
        let execution = batch.execute();
        gpu.flush();
        block_on(execution)?;
        block_on(batch.read(scores))
    });
    each.collect()
}

fn together(gpu: &Gpu, weights: &[Tensor; 4], callers: &[Vec<f32>]) -> Result<Answers, Error> {
    let recorded = callers.iter().map(|rows| record(gpu, weights, rows));
    let mut recorded = recorded.collect::<Result<Vec<_>, _>>()?;
    let running = recorded.iter_mut().map(|(batch, _)| batch.execute());
    let running: Vec<_> = running.collect();
    gpu.flush();
    for execution in running {
        block_on(execution)?;
    }
    let answers = recorded.iter();
    answers
        .map(|(batch, scores)| block_on(batch.read(*scores)))
        .collect()
}

fn all_rows(gpu: &Gpu, weights: &[Tensor; 4], callers: &[Vec<f32>]) -> Result<Answers, Error> {
    let rows = callers.concat();
    let mut all = one_by_one(gpu, weights, &[rows])?.remove(0).into_iter();
    let counts = callers.iter().map(|rows| rows.len() / WIDTHS[0]);
    Ok(counts
        .map(|rows| all.by_ref().take(rows * WIDTHS[2]).collect())
        .collect())
}

/// The network for a caller's rows: its scores.
fn record<'a>(
    gpu: &Gpu,
    weights: &[Tensor; 4],
    rows: &'a [f32],
) -> Result<(Batch<'a>, Value), Error> {
    let mut batch = gpu.batch();
    let dims = [rows.len() / WIDTHS[0], WIDTHS[0]].map(dim);
    let x = batch.upload_shaped(rows, &dims)?;
    let [w1, b1, w2, b2] = weights;
    let (w1, b1) = (batch.tensor(w1)?, batch.tensor(b1)?);
    let (w2, b2) = (batch.tensor(w2)?, batch.tensor(b2)?);
    let hidden = batch.matmul(x, w1)?;
    let hidden = batch.add(hidden, b1)?;
    let hidden = batch.gelu(hidden)?;
    let scores = batch.matmul(hidden, w2)?;
    let scores = batch.add(scores, b2)?;
    Ok((batch, scores))
}

fn weights(gpu: &Gpu) -> [Tensor; 4] {
    let [inputs, hidden, classes] = WIDTHS;
    let shapes: [&[usize]; 4] = [&[inputs, hidden], &[hidden], &[hidden, classes], &[classes]];
    let mut seed = 0;
    shapes.map(|shape| {
        seed += 1;
        let data = numbers(shape.iter().product(), seed);
        let dims: Vec<u32> = shape.iter().copied().map(dim).collect();
        gpu.tensor(&data, &dims).expect("there is room")
    })
}

/// Each caller's rows.
fn callers() -> Vec<Vec<f32>> {
    let rows = |caller: usize| 1 + caller.wrapping_mul(2_654_435_769) % MOST_ROWS;
    let each = (0..CALLERS).map(|caller| numbers(rows(caller) * WIDTHS[0], 100 + caller));
    each.collect()
}

/// Numbers from -0.5 to 0.5.
fn numbers(count: usize, seed: usize) -> Vec<f32> {
    let word = |i: usize| ((i + 1).wrapping_mul(2_654_435_769) ^ (seed * 40_503)) >> 7 & 0xffff;
    (0..count).map(|i| word(i) as f32 / 65536.0 - 0.5).collect()
}

fn dim(length: usize) -> u32 {
    u32::try_from(length).expect("small")
}

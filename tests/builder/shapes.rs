//! What goes along axes or moves elements, against float64 on both engines, and
//! what it refuses.

use framebatch::{Axes, Batch, Code, Error, Part, Value};
use pollster::block_on;

use crate::engines::both;
use crate::samples::Samples;

const ROWS: usize = 5;
const COLUMNS: usize = 7;

/// What is recorded of a matrix of 5 by 7 and a vector of 7.
type Record = fn(&mut Batch<'_>, [Value; 2]) -> Result<Value, Error>;

/// What that gives, of the same.
type Expected = fn(&[f64], &[f64]) -> Vec<f64>;

type Case = (&'static str, Record, &'static [u32], Expected);

fn by_rows(x: &[f64], of: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
    x.chunks(COLUMNS).flat_map(of).collect()
}

fn by_columns(x: &[f64], of: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let column = |c| -> Vec<f64> { x.iter().skip(c).step_by(COLUMNS).copied().collect() };
    (0..COLUMNS).map(|c| of(&column(c))).collect()
}

fn mean(row: &[f64]) -> f64 {
    row.iter().sum::<f64>() / row.len() as f64
}

fn squares(row: &[f64]) -> f64 {
    row.iter().map(|x| x * x).sum()
}

fn largest(row: &[f64]) -> f64 {
    row.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

const CASES: [Case; 22] = [
    (
        "exp",
        |batch, [x, _]| batch.exp(x),
        &[5, 7],
        |x, _| x.iter().map(|x| x.exp()).collect(),
    ),
    (
        "log of abs",
        |batch, [x, _]| {
            let x = batch.abs(x)?;
            batch.log(x)
        },
        &[5, 7],
        |x, _| x.iter().map(|x| x.abs().ln()).collect(),
    ),
    (
        "sqrt of neg of neg of a square",
        |batch, [x, _]| {
            let x = batch.mul(x, x)?;
            let x = batch.neg(x)?;
            let x = batch.neg(x)?;
            batch.sqrt(x)
        },
        &[5, 7],
        |x, _| x.iter().map(|x| x.abs()).collect(),
    ),
    (
        "gelu_tanh",
        |batch, [x, _]| batch.gelu_tanh(x),
        &[5, 7],
        |x, _| {
            let root = (2.0 / std::f64::consts::PI).sqrt();
            x.iter()
                .map(|x| 0.5 * x * (1.0 + (root * (x + 0.044715 * x.powi(3))).tanh()))
                .collect()
        },
    ),
    (
        "div",
        |batch, [x, b]| batch.div(x, b),
        &[5, 7],
        |x, b| by_rows(x, |row| row.iter().zip(b).map(|(x, b)| x / b).collect()),
    ),
    (
        "minimum of a number",
        |batch, [x, _]| {
            let number = batch.number(0.25)?;
            batch.minimum(number, x)
        },
        &[5, 7],
        |x, _| x.iter().map(|x| x.min(0.25)).collect(),
    ),
    (
        "maximum",
        |batch, [x, b]| batch.maximum(x, b),
        &[5, 7],
        |x, b| by_rows(x, |row| row.iter().zip(b).map(|(x, b)| x.max(*b)).collect()),
    ),
    (
        "pow",
        |batch, [x, _]| {
            let x = batch.abs(x)?;
            let number = batch.number(1.5)?;
            batch.pow(x, number)
        },
        &[5, 7],
        |x, _| x.iter().map(|x| x.abs().powf(1.5)).collect(),
    ),
    (
        "clamp",
        |batch, [x, b]| {
            let low = batch.number(-0.5)?;
            batch.clamp(x, low, b)
        },
        &[5, 7],
        |x, b| {
            by_rows(x, |row| {
                row.iter()
                    .zip(b)
                    .map(|(x, b)| x.max(-0.5).min(*b))
                    .collect()
            })
        },
    ),
    (
        "sum of all",
        |batch, [x, _]| batch.sum(x, Axes::ALL),
        &[],
        |x, _| vec![x.iter().sum()],
    ),
    (
        "mean of columns",
        |batch, [x, _]| batch.mean(x, Axes::of(&[0])),
        &[7],
        |x, _| by_columns(x, mean),
    ),
    (
        "max of rows, kept",
        |batch, [x, _]| batch.max(x, Axes::of(&[-1]).kept()),
        &[5, 1],
        |x, _| by_rows(x, |row| vec![largest(row)]),
    ),
    (
        "min of both",
        |batch, [x, _]| batch.min(x, Axes::of(&[0, 1]).kept()),
        &[1, 1],
        |x, _| vec![x.iter().copied().fold(f64::INFINITY, f64::min)],
    ),
    (
        "softmax",
        |batch, [x, _]| batch.softmax(x, -1),
        &[5, 7],
        |x, _| {
            by_rows(x, |row| {
                let sum: f64 = row.iter().map(|x| x.exp()).sum();
                row.iter().map(|x| x.exp() / sum).collect()
            })
        },
    ),
    (
        "layer_norm with a weight",
        |batch, [x, b]| {
            let y = batch.layer_norm(x, 1, 1e-5)?;
            batch.mul(y, b)
        },
        &[5, 7],
        |x, b| {
            by_rows(x, |row| {
                let middle = mean(row);
                let variance = row.iter().map(|x| (x - middle).powi(2)).sum::<f64>() / 7.0;
                let root = (variance + 1e-5).sqrt();
                let pairs = row.iter().zip(b);
                pairs.map(|(x, b)| (x - middle) / root * b).collect()
            })
        },
    ),
    (
        "rms_norm",
        |batch, [x, _]| batch.rms_norm(x, -1, 1e-6),
        &[5, 7],
        |x, _| {
            by_rows(x, |row| {
                let root = (squares(row) / 7.0 + 1e-6).sqrt();
                row.iter().map(|x| x / root).collect()
            })
        },
    ),
    (
        "normalize",
        |batch, [x, _]| batch.normalize(x, -1, 1e-12),
        &[5, 7],
        |x, _| {
            by_rows(x, |row| {
                let length = squares(row).sqrt();
                row.iter().map(|x| x / length).collect()
            })
        },
    ),
    (
        "transpose",
        |batch, [x, _]| batch.transpose(x, &[]),
        &[7, 5],
        |x, _| {
            (0..COLUMNS)
                .flat_map(|c| (0..ROWS).map(move |r| x[r * COLUMNS + c]))
                .collect()
        },
    ),
    (
        "slice",
        |batch, [x, _]| batch.slice(x, &[Part::between(1, -1), Part::ALL.by(-3)]),
        &[3, 3],
        |x, _| {
            x.chunks(COLUMNS)
                .skip(1)
                .take(3)
                .flat_map(|row| [row[6], row[3], row[0]])
                .collect()
        },
    ),
    (
        "slice of open ranges, turned",
        |batch, [x, _]| {
            let y = batch.slice(x, &[Part::starting(-2), Part::ending(2)])?;
            batch.transpose(y, &[1, 0])
        },
        &[2, 2],
        |x, _| vec![x[21], x[28], x[22], x[29]],
    ),
    (
        "reshape and concat",
        |batch, [x, b]| {
            let row = batch.reshape(b, &[1, 7])?;
            batch.concat(&[row, x, row], 0)
        },
        &[7, 7],
        |x, b| [b, x, b].concat(),
    ),
    (
        "gather of rows and of the largest of each",
        |batch, [x, _]| {
            let places = batch.upload_indexes(vec![4, 0, 4], &[3])?;
            let y = batch.gather(x, places, 0)?;
            let place = batch.argmax(y, Axes::of(&[1]))?;
            batch.gather(y, place, -1)
        },
        &[3, 3],
        |x, _| {
            let rows = [4, 0, 4].map(|row| &x[row * COLUMNS..][..COLUMNS]);
            let places = rows.map(|row| row.iter().position(|x| *x == largest(row)).unwrap());
            rows.iter()
                .flat_map(|row| places.map(|place| row[place]))
                .collect()
        },
    ),
];

#[test]
fn every_operation_gives_what_it_says() {
    let mut samples = Samples(17);
    let mut floats =
        |count: usize| -> Vec<f32> { (0..count).map(|_| samples.unit() * 4.0 - 1.99).collect() };
    let (x, b) = (floats(ROWS * COLUMNS), floats(COLUMNS));
    let wide = |values: &[f32]| values.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>();
    for gpu in both() {
        for (name, record, dims, expected) in CASES {
            let mut batch = gpu.batch();
            let matrix = batch.upload_shaped(&x, &[5, 7]).unwrap();
            let vector = batch.upload(&b);
            let y = record(&mut batch, [matrix, vector]).unwrap();
            assert_eq!(batch.shape(y).unwrap(), dims, "{name}");
            block_on(batch.execute()).unwrap();
            let got = block_on(batch.read(y)).unwrap();
            let expected = expected(&wide(&x), &wide(&b));
            assert_eq!(got.len(), expected.len(), "{name}");
            for (i, (got, expected)) in wide(&got).iter().zip(expected).enumerate() {
                let off = (got - expected).abs();
                let bound = 4e-6 * expected.abs().max(1.0);
                assert!(off <= bound, "{name}[{i}]: {got} instead of {expected}");
            }
        }
    }
}

#[test]
fn indexes_are_read_as_such() {
    for gpu in both() {
        let mut batch = gpu.batch();
        let x = batch
            .upload_shaped(&[1.0, 5.0, f32::NAN, 2.0, 9.0, 9.0], &[2, 3])
            .unwrap();
        let given = batch.upload_indexes(vec![7, u32::MAX], &[2]).unwrap();
        let places = batch.argmax(x, Axes::of(&[1])).unwrap();
        let place = batch.argmax(x, Axes::ALL).unwrap();
        let y = batch.relu(x).unwrap();
        batch.keep(given).unwrap();
        block_on(batch.execute()).unwrap();
        let read = |value| block_on(batch.read_indexes(value)).unwrap();
        assert_eq!(read(places), [2, 1]);
        assert_eq!(read(place), [2]);
        assert_eq!(read(given), [7, u32::MAX]);
        let errors = [
            block_on(batch.read(places)).unwrap_err(),
            block_on(batch.read_indexes(y)).unwrap_err(),
        ];
        for (error, fix) in errors.iter().zip(["call `read_indexes`", "call `read`"]) {
            assert_eq!(error.code(), Code::InvalidInput);
            assert!(error.to_string().contains(fix), "{error}");
        }
        // Blocking, the same.
        let mut batch = gpu.blocking().batch();
        let x = batch.upload(&[3.0, 4.0]);
        let place = batch.argmax(x, Axes::ALL).unwrap();
        batch.execute().unwrap();
        assert_eq!(batch.read_indexes(place).unwrap(), [1]);
        assert!(batch.read(place).is_err());
    }
}

#[test]
fn what_does_not_suit_is_refused_at_its_line() {
    let mistakes: [(&str, Record, &str); 9] = [
        (
            "axis",
            |batch, [x, _]| batch.softmax(x, 2),
            "softmax: axis 2 is outside of shape [5, 7]",
        ),
        (
            "twice",
            |batch, [x, _]| batch.sum(x, Axes::of(&[1, -1])),
            "sum: an axis is named twice",
        ),
        (
            "epsilon",
            |batch, [x, _]| batch.layer_norm(x, -1, f32::NAN),
            "layer_norm: epsilon must be 0 or more",
        ),
        (
            "order",
            |batch, [x, _]| batch.transpose(x, &[1, 1]),
            "transpose: the order must name each axis of shape [5, 7] once",
        ),
        (
            "parts",
            |batch, [_, b]| batch.slice(b, &[Part::ALL, Part::ALL]),
            "slice: 2 ranges are more than shape [7] has axes",
        ),
        (
            "step",
            |batch, [_, b]| batch.slice(b, &[Part::ALL.by(0)]),
            "slice: a step must not be 0",
        ),
        (
            "reshape",
            |batch, [x, _]| batch.reshape(x, &[6, 6]),
            "reshape: shapes [5, 7] and [6, 6] hold different numbers of elements",
        ),
        (
            "gather",
            |batch, [x, b]| batch.gather(x, b, 0),
            "gather: the indexes must be whole numbers, as argmax gives",
        ),
        (
            "concat",
            |batch, [x, b]| batch.concat(&[x, b], 0),
            "concat: shapes [5, 7] and [7] differ outside of the axis",
        ),
    ];
    for gpu in both() {
        for (name, record, message) in mistakes {
            let mut batch = gpu.batch();
            let x = batch.upload_shaped(vec![0.0; 35], &[5, 7]).unwrap();
            let b = batch.upload(vec![0.0; 7]);
            let error = record(&mut batch, [x, b]).unwrap_err();
            assert_eq!(error.code(), Code::InvalidInput, "{name}");
            assert!(error.to_string().contains(message), "{name}: {error}");
        }
    }
}

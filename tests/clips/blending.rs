//! Layers of clips against float64: means by weight, additive ones on top.

use framebatch::clips::{Kind, Wrap};
use framebatch::{Clip, Gpu, Layer, Parameter};

use crate::oracle::{Track, dot};
use crate::samples::Samples;
use crate::{BOUND, engines};

/// What layers of (value, weight) come to; additive ones are behind the others.
fn blend(kind: Kind, base: &[(Vec<f64>, f64)], added: &[(Vec<f64>, f64)]) -> Option<Vec<f64>> {
    let width = base[0].0.len();
    let mut sum = vec![0.0; width];
    for (value, weight) in base.iter().filter(|(_, weight)| *weight > 0.0) {
        let cosine = dot(&sum, value);
        if kind == Kind::Quaternion && cosine != 0.0 && cosine.abs() < 1e-5 {
            return None; // Rounding decides which arc is the shorter one.
        }
        let sign = if kind == Kind::Quaternion && cosine < 0.0 {
            -1.0
        } else {
            1.0
        };
        for (sum, x) in sum.iter_mut().zip(value) {
            *sum += sign * weight * x;
        }
    }
    let total: f64 = base.iter().map(|(_, weight)| weight.max(0.0)).sum();
    if kind == Kind::Vector {
        for (k, sum) in sum.iter_mut().enumerate() {
            let mean = if total > 0.0 { *sum / total } else { 0.0 };
            *sum = added.iter().fold(mean, |sum, (value, weight)| {
                sum + weight.max(0.0) * value[k]
            });
        }
        return Some(sum);
    }
    let mut q = unit(if total > 0.0 {
        sum
    } else {
        vec![0.0, 0.0, 0.0, 1.0]
    })?;
    for (value, weight) in added.iter().filter(|(_, weight)| *weight > 0.0) {
        if value[3].abs() < 1e-5 {
            return None;
        }
        let turn: Vec<f64> = value
            .iter()
            .map(|x| x * value[3].signum() * weight)
            .collect();
        let turn = unit(vec![turn[0], turn[1], turn[2], turn[3] + 1.0 - weight])?;
        q = hamilton(&q, &turn);
    }
    Some(q)
}

/// Far from 0, where float32 knows a direction.
fn unit(q: Vec<f64>) -> Option<Vec<f64>> {
    let length = dot(&q, &q).sqrt();
    (length > 0.1).then(|| q.into_iter().map(|x| x / length).collect())
}

fn hamilton(a: &[f64], b: &[f64]) -> Vec<f64> {
    let [ax, ay, az, aw] = [a[0], a[1], a[2], a[3]];
    let [bx, by, bz, bw] = [b[0], b[1], b[2], b[3]];
    vec![
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
        aw * bw - ax * bx - ay * by - az * bz,
    ]
}

/// A layer that owns its numbers.
struct Sample {
    tracks: Vec<Track>,
    clip: Clip,
    times: Vec<f32>,
    weights: Vec<f32>,
    /// Whether all rows have the first weight.
    is_even: bool,
    additive: bool,
}

const ROWS: usize = 6;

impl Sample {
    fn new(gpu: &Gpu, samples: &mut Samples, shape: &[(Kind, usize)]) -> Sample {
        let tracks = shape.iter();
        let tracks: Vec<Track> = tracks
            .map(|(kind, width)| samples.track_of(*kind, *width))
            .collect();
        let borrowed: Vec<_> = tracks.iter().map(Track::borrow).collect();
        let clip = gpu.clip(&borrowed, None).unwrap();
        let times = samples.times(&tracks[0].times, ROWS);
        let weights = (0..ROWS)
            .map(|_| [0.0, 1.0, -0.5, samples.unit(), samples.unit()][samples.below(5)])
            .collect();
        Sample {
            tracks,
            clip,
            times,
            weights,
            is_even: samples.below(3) == 0,
            additive: false,
        }
    }

    fn layer(&self) -> Layer<'_> {
        Layer {
            weight: match self.is_even {
                true => Parameter::Call(self.weights[0]),
                false => Parameter::Each(&self.weights),
            },
            additive: self.additive,
            ..self.clip.layer(&self.times)
        }
    }

    /// The value of a track, and its weight.
    fn at(&self, track: usize, row: usize) -> Option<(Vec<f64>, f64)> {
        let weight = self.weights[if self.is_even { 0 } else { row }];
        let value = self.tracks[track].at(f64::from(self.times[row]))?;
        Some((value, f64::from(weight)))
    }
}

/// Compares a row; how many of its tracks the oracle knows.
#[track_caller]
fn check_row(got: &[f32], layers: &[Sample], shape: &[(Kind, usize)], row: usize) -> usize {
    let (mut at, mut known) = (0, 0);
    for (track, (kind, floats)) in shape.iter().enumerate() {
        let got = &got[at..at + floats];
        at += floats;
        let values = |additive| {
            let layers = layers.iter().filter(|layer| layer.additive == additive);
            layers
                .map(|layer| layer.at(track, row))
                .collect::<Option<Vec<_>>>()
        };
        let (Some(base), Some(added)) = (values(false), values(true)) else {
            continue;
        };
        let Some(want) = blend(*kind, &base, &added) else {
            continue;
        };
        known += 1;
        for (got, want) in got.iter().zip(&want) {
            let error = (f64::from(*got) - want).abs();
            // A sum as short as 0.1 is scaled tenfold, with its errors.
            assert!(
                error <= 5.0 * BOUND,
                "{got} should be {want}, off by {error:e}"
            );
        }
    }
    known
}

#[test]
fn random_layers() {
    for gpu in engines::both_manual() {
        let mut samples = Samples(21);
        let (mut asked, mut known) = (0, 0);
        for _ in 0..300 {
            let shape: Vec<(Kind, usize)> = (0..1 + samples.below(3))
                .map(|_| match samples.below(2) {
                    0 => (Kind::Quaternion, 4),
                    _ => (Kind::Vector, 1 + samples.below(6)),
                })
                .collect();
            let count = 1 + samples.below(4);
            let base = 1 + samples.below(count);
            let layers: Vec<Sample> = (0..count)
                .map(|k| Sample {
                    additive: k >= base,
                    ..Sample::new(&gpu, &mut samples, &shape)
                })
                .collect();
            let given: Vec<Layer<'_>> = layers.iter().map(Sample::layer).collect();
            let call = gpu.blend(&given);
            gpu.flush();
            let got = call.wait().unwrap();
            let width: usize = shape.iter().map(|(_, width)| width).sum();
            assert_eq!(got.len(), ROWS * width);
            for (row, got) in got.chunks(width).enumerate() {
                asked += shape.len();
                known += check_row(got, &layers, &shape, row);
            }
        }
        assert!(
            known * 100 > asked * 80,
            "the oracle knows {known} of {asked}"
        );
    }
}

#[test]
fn layers_that_do_not_fit_are_refused() {
    for gpu in engines::both() {
        let mut samples = Samples(22);
        let tracks = [
            samples.track_of(Kind::Quaternion, 4),
            samples.track_of(Kind::Vector, 4),
        ];
        let [turn, other] = tracks
            .each_ref()
            .map(|track| gpu.clip(&[track.borrow()], None).unwrap());
        let (one, two) = ([0.0], [0.0, 1.0]);
        let plain = turn.layer(&one);
        let added = Layer {
            additive: true,
            ..plain
        };
        let weighted = Layer {
            weight: Parameter::Each(&two),
            ..plain
        };
        let unknown = Layer {
            weight: Parameter::Call(f32::NAN),
            ..plain
        };
        let cases: [(&[Layer<'_>], &str); 7] = [
            (&[], "give at least 1 layer"),
            (&[plain; 64], "64 layers are more than 63"),
            (
                &[plain, other.layer(&one)],
                "layers[1] has other tracks than the first; blend clips of equal tracks",
            ),
            (
                &[plain, turn.layer(&two)],
                "layers[1] has 2 times, but the first has 1; give all as many",
            ),
            (
                &[weighted],
                "layers[0] has 2 weights, but 1 times; give one for all, or as many",
            ),
            (
                &[plain, unknown],
                "layers[1] has NaN for a weight; give a number",
            ),
            (
                &[added, plain],
                "layers[1] follows an additive one; additive layers come last",
            ),
        ];
        for (layers, problem) in cases {
            let error = gpu.blend(layers).wait().unwrap_err();
            assert_eq!(error.to_string(), format!("blend: {problem}"));
        }
        let foreign = engines::open(framebatch::EngineChoice::Cpu, engines::manual());
        let error = foreign.blend(&[plain]).wait().unwrap_err();
        assert!(error.to_string().contains("another session"), "{error}");
        let error = turn
            .sample(&[0.0, f32::NAN], Wrap::Clamp)
            .wait()
            .unwrap_err();
        assert_eq!(error.to_string(), "t[1] is NaN; give a number");
    }
}

//! An encoder in float64 from its definition, in plain loops over a model file.

use std::collections::HashMap;

use framebatch::embed::{Config, Pooling};
use safetensors::SafeTensors;

/// The tensors of a file as float64.
pub(crate) struct Oracle {
    config: Config,
    tensors: HashMap<String, Vec<f64>>,
}

type Rows = Vec<Vec<f64>>;

impl Oracle {
    /// The oracle of a file of 32-bit floats.
    pub(crate) fn new(config: &Config, file: &[u8]) -> Oracle {
        let file = SafeTensors::deserialize(file).unwrap();
        let floats = |bytes: &[u8]| {
            let words = bytes.chunks_exact(4);
            words
                .map(|word| f64::from(f32::from_le_bytes(word.try_into().unwrap())))
                .collect()
        };
        let tensors = file.tensors().into_iter();
        Oracle {
            config: config.clone(),
            tensors: tensors
                .map(|(name, view)| (name, floats(view.data())))
                .collect(),
        }
    }

    pub(crate) fn embed(&self, ids: &[u32]) -> Vec<f64> {
        let hidden = self.config.hidden as usize;
        let row = |table: &str, row: usize| {
            let name = format!("embeddings.{table}_embeddings.weight");
            self.tensors[&name][row * hidden..][..hidden].to_vec()
        };
        let words = ids.iter().enumerate().map(|(i, id)| {
            let parts = [
                row("word", *id as usize),
                row("position", self.config.first_position as usize + i),
                row("token_type", 0),
            ];
            (0..hidden).map(move |k| parts.iter().map(|part| part[k]).sum())
        });
        let mut x: Rows = words.map(|row| row.collect()).collect();
        x = self.norm("embeddings", &x);
        for layer in 0..self.config.layers {
            x = self.layer(&format!("encoder.layer.{layer}"), &x);
        }
        let mut pooled: Vec<f64> = match self.config.pooling {
            Pooling::Cls => x[0].clone(),
            Pooling::LastToken => x[x.len() - 1].clone(),
            Pooling::Max => (0..hidden)
                .map(|k| x.iter().map(|row| row[k]).fold(f64::NEG_INFINITY, f64::max))
                .collect(),
            Pooling::Mean => (0..hidden)
                .map(|k| x.iter().map(|row| row[k]).sum::<f64>() / x.len() as f64)
                .collect(),
        };
        if self.config.normalize {
            let length = pooled.iter().map(|x| x * x).sum::<f64>().sqrt();
            pooled.iter_mut().for_each(|x| *x /= length);
        }
        pooled
    }

    fn layer(&self, name: &str, x: &Rows) -> Rows {
        let of = |part: &str| format!("{name}.{part}");
        let [q, k, v] = ["query", "key", "value"]
            .map(|part| self.linear(&of(&format!("attention.self.{part}")), x));
        let seen = self.attention([&q, &k, &v]);
        let seen = sum(&self.linear(&of("attention.output.dense"), &seen), x);
        let x = self.norm(&of("attention.output"), &seen);
        let mut inner = self.linear(&of("intermediate.dense"), &x);
        for value in inner.iter_mut().flatten() {
            *value *= 0.5 * (1.0 + erf(*value / 2.0_f64.sqrt()));
        }
        let inner = sum(&self.linear(&of("output.dense"), &inner), &x);
        self.norm(&of("output"), &inner)
    }

    fn attention(&self, [q, k, v]: [&Rows; 3]) -> Rows {
        let (hidden, heads) = (
            self.config.hidden as usize,
            self.config.heads.count as usize,
        );
        let size = hidden / heads;
        let mut result = vec![vec![0.0; hidden]; q.len()];
        for (query, row) in q.iter().zip(&mut result) {
            for head in 0..heads {
                let part = head * size..(head + 1) * size;
                let scores = k.iter().map(|key| {
                    let pairs = query[part.clone()].iter().zip(&key[part.clone()]);
                    pairs.map(|(a, b)| a * b).sum::<f64>() / (size as f64).sqrt()
                });
                let scores: Vec<f64> = scores.collect();
                let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let weights: Vec<f64> = scores.iter().map(|s| (s - most).exp()).collect();
                let all: f64 = weights.iter().sum();
                for place in part.clone() {
                    let values = weights.iter().zip(v);
                    row[place] = values.map(|(w, v)| w * v[place]).sum::<f64>() / all;
                }
            }
        }
        result
    }

    fn linear(&self, name: &str, x: &Rows) -> Rows {
        let weight = &self.tensors[&format!("{name}.weight")];
        let bias = &self.tensors[&format!("{name}.bias")];
        let of_row = |row: &Vec<f64>| {
            let outputs = weight.chunks_exact(row.len()).zip(bias);
            let product =
                |factors: &[f64]| factors.iter().zip(row).map(|(a, b)| a * b).sum::<f64>();
            outputs
                .map(|(factors, bias)| product(factors) + bias)
                .collect()
        };
        x.iter().map(of_row).collect()
    }

    fn norm(&self, name: &str, x: &Rows) -> Rows {
        let weight = &self.tensors[&format!("{name}.LayerNorm.weight")];
        let bias = &self.tensors[&format!("{name}.LayerNorm.bias")];
        let of_row = |row: &Vec<f64>| {
            let count = row.len() as f64;
            let mean = row.iter().sum::<f64>() / count;
            let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
            let deviation = (variance + f64::from(self.config.epsilon)).sqrt();
            let scaled = row.iter().zip(weight).zip(bias);
            scaled
                .map(|((x, w), b)| (x - mean) / deviation * w + b)
                .collect()
        };
        x.iter().map(of_row).collect()
    }
}

fn sum(a: &Rows, b: &Rows) -> Rows {
    let rows = a.iter().zip(b);
    rows.map(|(a, b)| a.iter().zip(b).map(|(a, b)| a + b).collect())
        .collect()
}

/// 2/√π · e^(−x²) · Σ 2ⁿ x^(2n+1) / (2n+1)!!, of which all terms have one sign.
fn erf(x: f64) -> f64 {
    if x.abs() > 6.0 {
        return x.signum();
    }
    let (mut term, mut sum, mut n) = (x, x, 1.0);
    while term.abs() > 1e-18 * sum.abs() {
        term *= 2.0 * x * x / (2.0 * n + 1.0);
        sum += term;
        n += 1.0;
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * sum
}

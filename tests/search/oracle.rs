//! Searching in float64: every score, sorted.

use framebatch::{Hit, IndexConfig, Metric};

use crate::samples::Samples;

/// The vectors of an index, as its bytes say.
pub(crate) struct Saved {
    pub(crate) metric: Metric,
    pub(crate) dim: usize,
    is_int8: bool,
    pub(crate) vectors: Vec<(u32, Vec<f64>)>,
}

impl Saved {
    pub(crate) fn read(bytes: &[u8]) -> Saved {
        let words: Vec<u32> = bytes
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
            .collect();
        assert_eq!(&bytes[..4], b"fbix");
        let [version, metric, packing, dim, count] = words[1..6].try_into().unwrap();
        assert_eq!(version, 1);
        let (dim, count) = (dim as usize, count as usize);
        let elements = [4, 8, 8, 16][packing as usize];
        let each = 1 + 4 * dim.div_ceil(elements);
        let (ids, rest) = words[7..].split_at(count);
        let vectors = ids.iter().zip(rest.chunks_exact(each)).map(|(id, words)| {
            let (scale, packed) = (f64::from(f32::from_bits(words[0])), &words[1..]);
            let element = |i: usize| match packing {
                0 => f64::from(f32::from_bits(packed[i])),
                1 => half(packed[i / 2] >> (16 * (i % 2)) & 0xffff),
                2 => f64::from(f32::from_bits(packed[i / 2] >> (16 * (i % 2)) << 16)),
                _ => f64::from((packed[i / 4] >> (8 * (i % 4))) as u8 as i8) * scale,
            };
            (*id, (0..dim).map(element).collect())
        });
        Saved {
            metric: [Metric::Cosine, Metric::Dot, Metric::L2][metric as usize],
            dim,
            is_int8: packing == 3,
            vectors: vectors.collect(),
        }
    }

    /// A score, and how far a device may be off.
    fn score(&self, vector: &[f64], query: &[f64]) -> (f64, f64) {
        let pairs = vector.iter().zip(query);
        let (mut sum, mut size, mut unpacked) = (0.0, 0.0, 0.0);
        for (x, q) in pairs {
            let term = match self.metric {
                Metric::L2 => (x - q) * (x - q),
                Metric::Cosine | Metric::Dot => x * q,
            };
            sum += term;
            size += term.abs();
            // A whole number times its scale is rounded before the difference is.
            if self.is_int8 && self.metric == Metric::L2 {
                unpacked += 2.0 * (x - q).abs() * x.abs();
            }
        }
        // The sums; and beside them a query's or a difference's own rounding.
        let u = 2_f64.powi(-24);
        (
            sum,
            (self.dim as f64 + 4.0) * u * size + u * unpacked + 1e-37,
        )
    }

    /// Holds the results of a query against a sort.
    pub(crate) fn check(
        &self,
        query: &[f32],
        hits: &[Hit],
        count: usize,
        allowed: &dyn Fn(u32) -> bool,
    ) {
        let mut query: Vec<f64> = query.iter().map(|x| f64::from(*x)).collect();
        if self.metric == Metric::Cosine {
            let length = query.iter().map(|x| x * x).sum::<f64>().sqrt();
            // The sum is exact enough for 0 to be told.
            if length > 0.0 {
                query.iter_mut().for_each(|x| *x /= length);
            }
        }
        let sign = if self.metric == Metric::L2 { -1.0 } else { 1.0 };
        let mut scores: Vec<(f64, u32, f64)> = (self.vectors.iter())
            .filter(|(id, _)| allowed(*id))
            .map(|(id, vector)| {
                let (score, bound) = self.score(vector, &query);
                (sign * score, *id, bound)
            })
            .collect();
        scores.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        assert_eq!(hits.len(), count.min(scores.len()));
        let widest = scores.iter().fold(0.0_f64, |most, score| most.max(score.2));
        for (place, hit) in hits.iter().enumerate() {
            let (score, _, bound) = *scores
                .iter()
                .find(|known| known.1 == hit.id)
                .expect("it is allowed");
            let got = sign * f64::from(hit.score);
            assert!(
                (got - score).abs() <= bound,
                "{hit:?} is {score}, within {bound}"
            );
            // The hit is as good as the sort's at this place: the same, where scores differ.
            let here = scores[place].0;
            assert!(
                (score - here).abs() <= 2.0 * widest,
                "{place}: {hit:?} is {score}, not {here}"
            );
        }
        for pair in hits.windows(2) {
            let (a, b) = (sign as f32 * pair[0].score, sign as f32 * pair[1].score);
            assert!(a > b || a == b && pair[0].id < pair[1].id, "{pair:?}");
        }
    }
}

fn half(bits: u32) -> f64 {
    let (exponent, fraction) = ((bits >> 10 & 31) as i32, f64::from(bits & 1023) / 1024.0);
    let magnitude = match exponent {
        0 => fraction * 2_f64.powi(-14),
        _ => (1.0 + fraction) * 2_f64.powi(exponent - 15),
    };
    if bits >> 15 == 1 {
        -magnitude
    } else {
        magnitude
    }
}

/// Vectors of floats from -1 to 1, laid end to end.
pub(crate) fn vectors(samples: &mut Samples, count: usize, dim: usize) -> Vec<f32> {
    (0..count * dim)
        .map(|_| samples.unit() * 2.0 - 1.0)
        .collect()
}

/// What an index is told.
pub(crate) fn config(dim: usize, metric: Metric) -> IndexConfig {
    IndexConfig {
        metric,
        ..IndexConfig::new(dim as u32)
    }
}

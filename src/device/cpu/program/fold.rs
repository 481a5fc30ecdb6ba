//! Folds, in an order that depends on a row's length alone. Short rows are folded value by
//! value. In long rows each lane folds its share, and then halves of the lanes are folded onto
//! each other, as the threads of a kernel do.

use crate::program::{Fold, LANES, Width};

/// A fold on its way.
pub(super) struct Folding {
    fold: Fold,
    lanes: usize,
    sums: [f32; LANES as usize],
    keys: [u32; LANES as usize],
}

impl Folding {
    pub(super) fn new(fold: Fold, width: Width) -> Folding {
        let start = if fold == Fold::Max { 0 } else { u32::MAX };
        Folding {
            fold,
            lanes: match width {
                Width::Thread | Width::Tile(_) => 1,
                Width::Group => LANES as usize,
            },
            sums: [0.0; LANES as usize],
            keys: [start; LANES as usize],
        }
    }

    /// Adds values of the row, from value number `first` on. Invariant: value number n goes to
    /// lane n modulo the number of lanes.
    pub(super) fn add(&mut self, first: usize, values: &[f32]) {
        let (sums, keys) = (&mut self.sums[..self.lanes], &mut self.keys[..self.lanes]);
        match self.fold {
            Fold::Sum => spread(sums, values, |sum, value| *sum += value),
            Fold::Max => spread(keys, values, |folded, value| {
                *folded = (*folded).max(if value.is_nan() { u32::MAX } else { key(value) });
            }),
            Fold::Min => spread(keys, values, |folded, value| {
                *folded = (*folded).min(if value.is_nan() { 0 } else { key(value) });
            }),
            Fold::First => {
                let mut place = first as u32;
                spread(keys, values, |folded, value| {
                    if value != 0.0 {
                        *folded = (*folded).min(place);
                    }
                    place += 1;
                });
            }
            Fold::Least => spread(keys, values, |folded, value| {
                *folded = (*folded).min(value.to_bits());
            }),
        }
    }

    pub(super) fn finish(mut self) -> f32 {
        let mut half = self.lanes / 2;
        while half > 0 {
            for lane in 0..half {
                self.sums[lane] += self.sums[lane + half];
                let (a, b) = (self.keys[lane], self.keys[lane + half]);
                self.keys[lane] = if self.fold == Fold::Max {
                    a.max(b)
                } else {
                    a.min(b)
                };
            }
            half /= 2;
        }
        match self.fold {
            Fold::Sum => self.sums[0],
            Fold::Max | Fold::Min => from_key(self.keys[0]),
            Fold::First | Fold::Least => f32::from_bits(self.keys[0]),
        }
    }
}

/// Calls `take` with each value and its lane.
fn spread<T>(lanes: &mut [T], values: &[f32], mut take: impl FnMut(&mut T, f32)) {
    for values in values.chunks(lanes.len()) {
        for (lane, value) in lanes.iter_mut().zip(values) {
            take(lane, *value);
        }
    }
}

/// An integer that is ordered as the float.
fn key(x: f32) -> u32 {
    let bits = x.to_bits();
    if bits >= 0x8000_0000 {
        !bits
    } else {
        bits | 0x8000_0000
    }
}

fn from_key(key: u32) -> f32 {
    f32::from_bits(if key >= 0x8000_0000 {
        key & 0x7fff_ffff
    } else {
        !key
    })
}

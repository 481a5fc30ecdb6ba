//! Places in memory of consecutive elements. What lies there is not its business.

/// Elements of some dimensions, each at its place.
#[derive(Clone, Copy)]
pub(super) struct Places<'a> {
    pub(super) offset: u32,
    /// Dimensions that elements are counted in; the first has no end.
    pub(super) dims: &'a [u32],
    pub(super) strides: &'a [u32],
    /// Number of the first element.
    pub(super) first: usize,
}

/// Elements that lie evenly.
#[derive(Clone, Copy)]
pub(super) struct Even {
    /// Number of the first, counted from the first place.
    pub(super) first: usize,
    pub(super) count: usize,
    /// Place of the first.
    pub(super) at: u32,
    /// From one place to the next. Addresses wrap: strides may be negative.
    pub(super) step: u32,
}

impl Even {
    /// The place of each element.
    pub(super) fn places(self) -> impl Iterator<Item = usize> {
        let mut next = self.at;
        (0..self.count).map(move |_| {
            let at = next;
            next = at.wrapping_add(self.step);
            at as usize
        })
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "no shape has more than 2^30 elements"
)]
impl Places<'_> {
    /// The first place.
    pub(super) fn place(&self) -> u32 {
        let mut rest = self.first as u32;
        let mut at = self.offset;
        for (dim, stride) in self.dims.iter().zip(self.strides).rev() {
            at = at.wrapping_add((rest % dim).wrapping_mul(*stride));
            rest /= dim;
        }
        at.wrapping_add(rest) // Without dimensions, elements lie end to end.
    }

    /// The first elements, as many as lie evenly, up to `most`.
    pub(super) fn even(&self, most: usize) -> Even {
        let (Some(dim), Some(step)) = (self.dims.last(), self.strides.last()) else {
            return Even {
                first: 0,
                count: most,
                at: self.place(),
                step: 1,
            };
        };
        Even {
            first: 0,
            count: most.min((dim - self.first as u32 % dim) as usize),
            at: self.place(),
            step: *step,
        }
    }

    /// Shows `visit` so many elements, run by run.
    pub(super) fn each(mut self, elements: usize, visit: &mut dyn FnMut(Even)) {
        let mut done = 0;
        while done < elements {
            let run = self.even(elements - done);
            visit(Even { first: done, ..run });
            done += run.count;
            self.first += run.count;
        }
    }
}

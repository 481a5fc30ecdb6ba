//! Places in memory of consecutive elements. What the elements are is not known here.

/// Elements of some dimensions, each at its place.
#[derive(Clone, Copy)]
pub(super) struct Places<'a> {
    pub(super) offset: u32,
    /// Dimensions by which elements are counted; the first one has no end.
    pub(super) dims: &'a [u32],
    pub(super) strides: &'a [u32],
    /// Number of the first element.
    pub(super) first: usize,
}

/// Elements at even distances.
#[derive(Clone, Copy)]
pub(super) struct Even {
    /// Number of the first of these elements, counted from the first place.
    pub(super) first: usize,
    pub(super) count: usize,
    /// Place of the first of these elements.
    pub(super) at: u32,
    /// Distance from one place to the next. Addresses wrap: strides may be negative.
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

    /// The first elements that lie at even distances, `most` of them at most.
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

    /// Calls `visit` with the first `elements`, in runs of even distances.
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

//! Times launches while a listener asks for it: uploads by the face's clock, kernels by the
//! device's timestamps.
//!
//! The compute pass writes timestamps of its begin and its end. They are copied behind the
//! results and read back with them, so that measuring needs no map of its own.

use super::buffer_pool::{BufferPool, Size};
use crate::device::Clock;

/// Bytes of the two timestamps of a pass.
pub(super) const TIMESTAMP_BYTES: u64 = 16;

/// The timer of one device.
#[derive(Debug)]
pub(super) struct LaunchTimer {
    pool: BufferPool,
    clock: Option<Clock>,
    /// Whether the device can write timestamps.
    has_timestamps: bool,
    /// Created when first needed, and kept.
    queries: Option<Queries>,
}

#[derive(Debug)]
struct Queries {
    set: wgpu::QuerySet,
    resolved: wgpu::Buffer,
    /// Nanoseconds of a tick.
    period: f32,
}

/// Where timestamps lie in a mapped range.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timestamps {
    /// Bytes in front of the timestamps.
    pub(super) at: u64,
    /// Nanoseconds of a tick.
    pub(super) period: f32,
}

impl LaunchTimer {
    pub(super) fn new(pool: BufferPool, features: wgpu::Features) -> Self {
        LaunchTimer {
            pool,
            clock: None,
            has_timestamps: features.contains(wgpu::Features::TIMESTAMP_QUERY),
            queries: None,
        }
    }

    pub(super) fn listen(&mut self, clock: Option<Clock>) {
        self.clock = clock;
    }

    /// Creates what timestamps need, if a listener asks for them.
    pub(super) fn prepare(&mut self, device: &wgpu::Device, queue: &wgpu::Queue) {
        if self.clock.is_none() || self.queries.is_some() || !self.has_timestamps {
            return;
        }
        let uses = wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC;
        self.queries = Some(Queries {
            set: device.create_query_set(&wgpu::QuerySetDescriptor {
                label: None,
                ty: wgpu::QueryType::Timestamp,
                count: 2,
            }),
            resolved: self.pool.make(device, Size::exact(TIMESTAMP_BYTES), uses),
            period: queue.get_timestamp_period(),
        });
    }

    /// Bytes that are read back behind the results.
    pub(super) fn bytes(&self) -> u64 {
        self.asked().map_or(0, |_| TIMESTAMP_BYTES)
    }

    /// The timestamps that a pass is to write.
    pub(super) fn writes(&self) -> Option<wgpu::ComputePassTimestampWrites<'_>> {
        self.asked()
            .map(|queries| wgpu::ComputePassTimestampWrites {
                query_set: &queries.set,
                beginning_of_pass_write_index: Some(0),
                end_of_pass_write_index: Some(1),
            })
    }

    /// Copies the timestamps of the pass behind the results, which end at `at`.
    pub(super) fn collect(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        staged: &wgpu::Buffer,
        at: u64,
    ) -> Option<Timestamps> {
        let Queries {
            set,
            resolved,
            period,
        } = self.asked()?;
        encoder.resolve_query_set(set, 0..2, resolved, 0);
        encoder.copy_buffer_to_buffer(resolved, 0, staged, at, TIMESTAMP_BYTES);
        let period = *period;
        Some(Timestamps { at, period })
    }

    /// Runs `write`, and adds the nanoseconds that it took to `ns`.
    pub(super) fn time<T>(&self, ns: &mut u64, write: impl FnOnce() -> T) -> T {
        let Some(clock) = self.clock else {
            return write();
        };
        let start = clock();
        let written = write();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "time goes forward, and no upload takes centuries"
        )]
        let took = ((clock() - start) * 1e6) as u64;
        *ns += took;
        written
    }

    pub(super) fn destroy(&mut self) {
        if let Some(queries) = self.queries.take() {
            self.pool.destroy(&queries.resolved);
        }
    }

    fn asked(&self) -> Option<&Queries> {
        self.queries.as_ref().filter(|_| self.clock.is_some())
    }
}

impl Timestamps {
    /// The two timestamps in nanoseconds, from their four words.
    pub(super) fn in_ns(self, words: [u32; 4]) -> [u64; 2] {
        [[words[0], words[1]], [words[2], words[3]]].map(|[low, high]| {
            let ticks = u64::from(low) | u64::from(high) << 32;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                clippy::float_cmp,
                reason = "timestamps are not negative; browsers count nanoseconds, which stay exact"
            )]
            if self.period == 1.0 {
                ticks
            } else {
                (ticks as f64 * f64::from(self.period)) as u64
            }
        })
    }
}

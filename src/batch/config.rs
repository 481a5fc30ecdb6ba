//! The settings of a queue: policies, limits and the named presets.

use crate::error::Error;

/// A moment in milliseconds on a clock of the caller's choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Millis(pub f64);

/// When an open batch is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Like [`Policy::Frame`] while a page animates, otherwise like [`Policy::Eager`]. Whether
    /// a page animates, the caller knows: [`Queue::due_in_frames`](super::Queue::due_in_frames).
    #[default]
    Auto,
    /// Once a frame; the caller has the frame clock and flushes.
    Frame,
    /// At the end of the current task while the device is idle, otherwise as
    /// soon as the batch in flight returns.
    Eager,
    /// When the caller says so.
    Manual,
}

/// What happens to a call that finds the queue full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// The call is taken; producers are told through the desired size.
    #[default]
    Wait,
    /// The call is refused.
    Reject,
    /// The call takes the place of the oldest queued call of its key; without such a call
    /// it is refused.
    Latest,
}

/// How much may wait to be sent; what is in flight does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Calls.
    pub calls: usize,
    /// Bytes of operands and results.
    pub bytes: u64,
}

/// Limits and policy of a session's batches.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchConfig {
    /// When an open batch is sent.
    pub policy: Policy,
    /// Items held before a batch is sealed and sent; `None`: bytes alone decide.
    pub max_batch_size: Option<u64>,
    /// What the calls of a batch may cost together; a call that costs more goes alone. A
    /// text to be embedded costs as much as it has tokens, other calls nothing.
    pub max_batch_cost: u64,
    /// Bytes of operands and results in one batch; a session lowers the limit to what its
    /// device and its memory budget allow.
    pub max_batch_bytes: u64,
    /// Bytes of memory that a session may use, 80 % of it for live data. `None`:
    /// 2 GiB; in the browser 512 MiB, and 256 MiB on a device that offers no
    /// more than WebGPU guarantees.
    pub memory_budget: Option<u64>,
    /// Longest wait of a batch's oldest call, in milliseconds, whether the device is busy or
    /// not; `max_in_flight` still holds. `None`: tuned under [`Policy::Auto`] while no page
    /// animates and the device is busy, from 16 down to 1; otherwise any. Nothing goes by time
    /// under [`Policy::Manual`].
    pub max_wait: Option<f64>,
    /// Milliseconds from a call to its answer that batches are to keep to: `max_wait` and
    /// the bytes of a batch, as far as they are `None` and `max_batch_size` is, are tuned so
    /// that the largest batches do by what was measured. `None`: no target. A target that the
    /// device cannot meet, or calls beyond what it can do at all, are answered later.
    pub target_latency: Option<f64>,
    /// Items for which an idle device waits, at most `max_wait`, under [`Policy::Auto`] and
    /// [`Policy::Eager`]. Without `max_wait` it waits for 16 ms under `Auto`, and not at all
    /// under `Eager`.
    pub min_batch_size: u64,
    /// How much may wait; no fewer calls than `max_batch_size`.
    pub queue_capacity: Capacity,
    /// What happens to calls beyond the capacity.
    pub overflow: Overflow,
    /// Batches in flight at once, at least 1.
    pub max_in_flight: usize,
    /// Chunks of large batches in flight at once; by default as many as memory lets. With 1
    /// nothing overlaps, to see what overlap gives.
    pub max_pieces_in_flight: Option<usize>,
}

/// Named settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preset {
    /// One flush a frame while a page animates, otherwise one as soon as the device is idle.
    #[default]
    Auto,
    /// One flush a frame.
    Frame,
    /// A flush as soon as the device is idle.
    Eager,
    /// Small batches, refusal when full.
    Latency,
    /// Between latency and throughput.
    Balanced,
    /// Large batches.
    Throughput,
    /// Token budgets for embedding models.
    Embeddings,
}

const MIB: u64 = 1 << 20;

impl Preset {
    /// The preset's settings; a device lowers `max_batch_bytes` to its limits.
    pub fn config(self) -> BatchConfig {
        let base = BatchConfig {
            policy: Policy::Auto,
            max_batch_size: None,
            max_batch_cost: 16_384,
            max_batch_bytes: 64 * MIB,
            memory_budget: None,
            max_wait: Some(5.0),
            target_latency: None,
            min_batch_size: 1,
            queue_capacity: Capacity {
                calls: 65_536,
                bytes: 256 * MIB,
            },
            overflow: Overflow::Wait,
            max_in_flight: 3,
            max_pieces_in_flight: None,
        };
        let queue = |calls| Capacity {
            calls,
            ..base.queue_capacity
        };
        match self {
            Preset::Auto => BatchConfig {
                max_wait: None,
                ..base
            },
            Preset::Frame => BatchConfig {
                policy: Policy::Frame,
                max_wait: None,
                ..base
            },
            Preset::Eager => BatchConfig {
                policy: Policy::Eager,
                ..base
            },
            Preset::Latency => BatchConfig {
                max_batch_size: Some(256),
                max_wait: Some(1.0),
                queue_capacity: queue(256),
                overflow: Overflow::Reject,
                ..base
            },
            Preset::Balanced => BatchConfig {
                max_batch_size: Some(1024),
                queue_capacity: queue(2048),
                ..base
            },
            Preset::Throughput => BatchConfig {
                max_batch_size: Some(2048),
                max_wait: Some(10.0),
                min_batch_size: 8,
                queue_capacity: queue(4096),
                ..base
            },
            Preset::Embeddings => BatchConfig {
                max_wait: Some(10.0),
                min_batch_size: 8,
                queue_capacity: queue(512),
                ..base
            },
        }
    }
}

impl BatchConfig {
    /// Checks that the settings can work.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] naming the setting.
    pub fn validate(&self) -> Result<(), Error> {
        let positive = [
            ("max batch size", self.max_batch_size.unwrap_or(1)),
            ("min batch size", self.min_batch_size),
            ("max in flight", self.max_in_flight as u64),
            (
                "max pieces in flight",
                self.max_pieces_in_flight.unwrap_or(1) as u64,
            ),
            ("max batch cost", self.max_batch_cost),
            ("queue capacity in calls", self.queue_capacity.calls as u64),
            ("queue capacity in bytes", self.queue_capacity.bytes),
        ];
        if let Some((name, _)) = positive.iter().find(|(_, value)| *value == 0) {
            return Err(Error::InvalidInput(
                [name, " is 0; give at least 1"].concat(),
            ));
        }
        if self.memory_budget.is_some_and(|budget| budget < MIB) {
            return Err(Error::InvalidInput(
                "the memory budget is below 1 MiB; give at least 1048576 bytes".into(),
            ));
        }
        if self
            .max_wait
            .is_some_and(|wait| !(wait >= 0.0 && wait.is_finite()))
        {
            return Err(Error::InvalidInput(
                "max wait is negative or not finite; give 0 ms or more".into(),
            ));
        }
        self.validate_target()?;
        if self
            .max_batch_size
            .is_some_and(|most| most < self.min_batch_size)
        {
            return Err(Error::InvalidInput(format!(
                "max batch size {} is below min batch size {}",
                self.max_batch_size.unwrap_or_default(),
                self.min_batch_size
            )));
        }
        let most = self.max_batch_size.unwrap_or_default();
        let calls = self.queue_capacity.calls;
        if (calls as u64) < most {
            return Err(Error::InvalidInput(format!(
                "a queue capacity of {calls} calls is below max batch size {most}; \
                 give at least {most} calls, or a smaller batch"
            )));
        }
        Ok(())
    }

    fn validate_target(&self) -> Result<(), Error> {
        let Some(target) = self.target_latency else {
            return Ok(());
        };
        let problem = if !(target > 0.0 && target.is_finite()) {
            "is not above 0 and finite; give milliseconds above 0"
        } else if self.max_wait.is_some() && self.max_batch_size.is_some() {
            "tunes max wait and max batch size, and both are given; leave one of them out"
        } else {
            return Ok(());
        };
        Err(Error::InvalidInput(["target latency ", problem].concat()))
    }
}

//! Whether there is memory for tensors, natively: that is known when one is made.

use super::Gpu;
use super::scopes::{Scopes, judge};
use crate::error::Error;
use crate::plan::Slot;

/// What a launch that reads tensors fails of if it is invalid: tensors are sound.
pub(super) const INVALID: fn(String) -> Error = Error::Fatal;

impl Gpu {
    /// Makes and fills a tensor by `make`. Where there is no memory for it, there is no
    /// such tensor.
    pub(super) fn make(
        &mut self,
        tensor: u32,
        make: impl FnOnce(&mut Gpu) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let scopes = Scopes::open(&self.device);
        let made = make(self);
        // Natively what scopes caught is known when they close.
        let caught = pollster::block_on(async {
            match scopes.close(Error::Fatal).await {
                Err(error @ Error::Fatal(_)) => Err(judge(&self.poller, error).await),
                caught => caught,
            }
        });
        made?;
        match caught {
            // The next device gets its data.
            Ok(()) | Err(Error::DeviceLost(_)) => Ok(()),
            Err(error) => {
                self.memory.discard(tensor);
                self.pipelines.forget_bind_groups_of(Slot::resident(tensor));
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::device::gpu::gate::with_device;

    #[test]
    fn a_tensor_that_cannot_be_made_is_an_error_and_leaves_nothing() {
        with_device(make_too_much);
    }

    fn make_too_much(gpu: &mut Gpu) {
        gpu.fill(0, &[1; 4096], None).expect("room");
        let before = gpu.counters();
        // The device refuses what is beyond its limits, as it does without memory.
        gpu.limits.max_buffer_size = u64::MAX;
        gpu.limits.max_storage_buffer_binding_size = u64::MAX;
        let most = gpu.limits().max_side_bytes;
        assert_eq!(
            most,
            u64::from(u32::MAX - 15),
            "bytes are counted in 32 bits"
        );
        let error = gpu.keep(3, most / 4 + 4).expect_err("more than a buffer");
        assert!(matches!(error, Error::TooLarge { .. }), "{error}");
        let huge = |gpu: &mut Gpu, tensor| {
            gpu.make(tensor, |gpu| {
                gpu.memory.keep(&gpu.device, tensor, 1 << 47);
                Ok(())
            })
        };
        for tensor in [1, 0] {
            let error = huge(gpu, tensor).expect_err("there is no such memory");
            assert!(matches!(error, Error::Fatal(_)), "{error}");
            assert!(gpu.memory.tensor(tensor).is_none());
        }
        let after = gpu.counters();
        assert_eq!(after.pool_buffers, before.pool_buffers - 1);
        assert_eq!(after.pool_bytes, before.pool_bytes - 4 * 4096);
        gpu.fill(1, &[1; 4], None).expect("room");
        // Of a lost device that says nothing: the next one gets the data.
        gpu.device.destroy();
        assert_eq!(huge(gpu, 2), Ok(()));
    }
}

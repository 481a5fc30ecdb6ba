//! The allocation check of tensors, natively: whether there is memory for a tensor is known
//! when its buffer is made.

use super::Gpu;
use super::error_scopes::{ErrorScopes, judge};
use crate::error::Error;
use crate::plan::Slot;

/// The error of a launch that reads tensors and is invalid. Tensors themselves are valid here,
/// or do not exist.
pub(super) const INVALID: fn(String) -> Error = Error::Fatal;

/// Whether a launch tells which tensors there was no memory for.
pub(super) const IS_LATE: bool = false;

impl Gpu {
    /// Makes and fills a tensor by `make`. After an error the tensor does not exist.
    pub(super) fn make(
        &mut self,
        tensor: u32,
        make: impl FnOnce(&mut Gpu) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let scopes = ErrorScopes::open(&self.device);
        let made = make(self);
        // Natively the future of closed scopes is ready at once.
        let caught = pollster::block_on(async {
            match scopes.close(Error::Fatal).await {
                Err(error @ Error::Fatal(_)) => Err(judge(&self.poller, error).await),
                caught => caught,
            }
        });
        made?;
        match caught {
            // After a loss the next device is filled from the tensor's source.
            Ok(()) | Err(Error::DeviceLost(_)) => Ok(()),
            Err(error) => {
                self.buffers.discard(tensor);
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
    use crate::device::gpu::device_for_tests::with_device;

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
                gpu.buffers.allocate(&gpu.device, tensor, 1 << 47);
                Ok(())
            })
        };
        for tensor in [1, 0] {
            let error = huge(gpu, tensor).expect_err("there is no such memory");
            assert!(matches!(error, Error::Fatal(_)), "{error}");
            assert!(gpu.buffers.tensor(tensor).is_none());
        }
        let after = gpu.counters();
        assert_eq!(after.pool_buffers, before.pool_buffers - 1);
        assert_eq!(after.pool_bytes, before.pool_bytes - 4 * 4096);
        gpu.fill(1, &[1; 4], None).expect("room");
        // On a lost device a failed allocation is no error: the next device gets the data.
        gpu.device.destroy();
        assert_eq!(huge(gpu, 2), Ok(()));
    }
}

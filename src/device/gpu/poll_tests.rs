//! Waits whose polls fail, stall and panic, by polls that the test makes up; and both ways
//! of polling a real device.

use std::cell::Cell;
use std::pin::pin;
use std::task::Waker;

use futures_channel::oneshot::channel;

use super::*;
use crate::Code;
use crate::device::gpu::device_for_tests::with_device;
use crate::error::Error;

/// What a poll does.
#[derive(Clone, Copy)]
enum Script {
    Tells,
    TellsAndLoses,
    Forgets,
    Loses,
    Panics,
    Works,
}

/// What comes of a wait whose polls find work three times and then do this, and whether the
/// device is lost then. `None` where a thousand more turns bring nothing.
fn wait(script: Script) -> (Option<Result<u32, Canceled>>, Option<Code>) {
    let errors = DeviceErrors::default();
    let (sender, told) = channel();
    let (sender, polls) = (Cell::new(Some(sender)), Cell::new(0));
    let tell = || {
        let sender = sender.take();
        sender.map(|sender| sender.send(7))
    };
    let poll = |_| {
        polls.set(polls.get() + 1);
        if polls.get() <= 3 {
            return Polled::Working;
        }
        match script {
            Script::Tells => drop(tell()),
            Script::TellsAndLoses => {
                tell();
                return Polled::Lost;
            }
            Script::Forgets => drop(sender.take()),
            Script::Loses => return Polled::Lost,
            Script::Panics => return poll_once::caught(|| panic!("the GPU driver fell over")),
            Script::Works => {}
        }
        Polled::Working
    };
    let mut waiting = pin!(finish(poll, None, told, &errors));
    let mut context = Context::from_waker(Waker::noop());
    let mut turns = (0..1000).map(|_| waiting.as_mut().poll(&mut context));
    let outcome = turns.find_map(|turn| match turn {
        Poll::Ready(outcome) => Some(outcome),
        Poll::Pending => None,
    });
    (outcome, errors.check().err().map(|error| error.code()))
}

#[test]
fn every_wait_ends_in_work_done_or_a_lost_device_or_goes_on() {
    let lost = Some(Code::DeviceLost);
    assert_eq!(wait(Script::Tells), (Some(Ok(7)), None));
    assert_eq!(wait(Script::TellsAndLoses), (Some(Ok(7)), None));
    assert_eq!(wait(Script::Forgets), (Some(Err(Canceled)), None));
    assert_eq!(wait(Script::Loses), (Some(Err(Canceled)), lost));
    assert_eq!(wait(Script::Panics), (Some(Err(Canceled)), lost));
    // A GPU that answers nothing returns to whoever polls the future with every turn.
    assert_eq!(wait(Script::Works), (None, None));
}

/// Submits a copy to a buffer and maps it; `hear` is called when it is mapped.
fn submit(gpu: &Gpu, hear: impl FnOnce() + Send + 'static) -> wgpu::SubmissionIndex {
    let buffer = |usage| {
        gpu.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: 64,
            usage,
            mapped_at_creation: false,
        })
    };
    let source = buffer(wgpu::BufferUsages::COPY_SRC);
    let target = buffer(wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ);
    let mut encoder = gpu.encoder();
    encoder.copy_buffer_to_buffer(&source, 0, &target, 0, 64);
    let submission = gpu.queue.submit([encoder.finish()]);
    let kept = target.clone(); // A buffer that is dropped takes its map back.
    target.map_async(wgpu::MapMode::Read, .., move |mapped| {
        mapped.expect("a small buffer");
        drop(kept);
        hear();
    });
    submission
}

/// A way of polling a device.
type PollOnce = fn(&Poller, &Patience) -> Polled;

#[test]
fn both_ways_of_polling_run_the_callbacks_of_a_device() {
    with_device(|gpu| {
        let both: [PollOnce; 2] = [poll_once::poll_once, poll_once_abort::poll_once];
        for poll_once in both {
            let (sender, told) = channel();
            let submission = submit(gpu, || sender.send(7).expect("it is waited for"));
            let poll = |patience| poll_once(&gpu.poller, &patience);
            let outcome = finish(poll, Some(submission), told, &gpu.errors);
            assert_eq!(pollster::block_on(outcome), Ok(7));
        }
        pollster::block_on(gpu.idle());
    });
}

#[test]
fn a_poll_that_panics_is_a_lost_device() {
    with_device(|gpu| {
        let (sender, told) = channel::<u32>();
        let submission = submit(gpu, || panic!("planned, in a callback of the program"));
        let outcome = pollster::block_on(gpu.poller.finish(Some(submission), told));
        assert_eq!(outcome, Err(Canceled));
        drop(sender);
        let lost = gpu.errors.check();
        assert!(matches!(lost, Err(Error::DeviceLost(_))), "{lost:?}");
    });
}

#[test]
fn a_device_that_is_gone_is_idle() {
    with_device(|gpu| {
        gpu.device.destroy();
        pollster::block_on(gpu.idle());
    });
}

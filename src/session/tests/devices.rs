//! The devices of a session, without a session: numbers stand for them.

use super::*;
use crate::device::{Counters, DeviceInfo, DeviceLimits, Flight};
use crate::error::Error;
use crate::plan::{ChunkSizes, Plan};
use crate::tensor::{Arena, Packing};

/// A device that is told from others by its number, and computes nothing.
#[derive(Debug)]
struct Numbered {
    number: u32,
    engine: Engine,
    is_destroyed: bool,
}

fn gpu(number: u32) -> Numbered {
    Numbered {
        number,
        engine: Engine::Gpu,
        is_destroyed: false,
    }
}

fn cpu(number: u32) -> Numbered {
    Numbered {
        engine: Engine::Cpu,
        ..gpu(number)
    }
}

impl Device for Numbered {
    fn limits(&self) -> DeviceLimits {
        DeviceLimits {
            max_side_bytes: 0,
            chunks: ChunkSizes::WHOLE,
            max_threads: 0,
        }
    }

    fn info(&self) -> DeviceInfo {
        DeviceInfo {
            engine: self.engine,
            reason: None,
            adapter: String::new(),
            driver: String::new(),
            software: false,
            features: Vec::new(),
            limits: Vec::new(),
        }
    }

    fn counters(&self) -> Counters {
        Counters::default()
    }

    fn launch(&mut self, _: &Plan, _: &mut Arena) -> Result<Flight, Error> {
        unreachable!("nothing is launched")
    }

    fn fill(&mut self, _: u32, _: &[u32], _: Option<Packing>) -> Result<(), Error> {
        Ok(())
    }

    fn allocate(&mut self, _: u32, _: u32) -> Result<(), Error> {
        Ok(())
    }

    fn tensor_bytes(&self, _: u32) -> u64 {
        0
    }

    fn patch(&mut self, _: u32, _: u32, _: &[u32]) {}

    fn release(&mut self, _: u32) {}

    fn destroy(&mut self) {
        self.is_destroyed = true;
    }
}

/// The numbers of the primary device and of the CPU beside it.
fn numbers(devices: &Devices<Numbered>) -> (u32, Option<u32>) {
    let companion = devices.companion().map(|cpu| cpu.number);
    (devices.primary().number, companion)
}

#[test]
fn a_cpu_takes_over_from_a_gpu_and_makes_room_for_the_next() {
    let mut devices = Devices::new(gpu(1));
    assert_eq!(numbers(&devices), (1, None));
    devices.add_companion(cpu(2));
    assert_eq!(numbers(&devices), (1, Some(2)));
    assert_eq!(devices.replace_primary(gpu(3)).number, 1);
    assert_eq!(numbers(&devices), (3, Some(2)), "it stays beside any GPU");

    assert_eq!(devices.replace_primary(cpu(4)).number, 3);
    assert_eq!(numbers(&devices), (4, None), "a CPU has none beside it");
    assert_eq!(devices.engine(), Engine::Cpu);

    devices.add_successor(gpu(5));
    assert!(devices.has_successor());
    assert_eq!(numbers(&devices), (4, None), "it waits");
    devices.promote_successor();
    assert_eq!(numbers(&devices), (5, Some(4)));
    assert!(!devices.has_successor());
    assert_eq!(devices.engine(), Engine::Gpu);
}

#[test]
fn only_a_successor_is_promoted() {
    let mut devices = Devices::new(gpu(1));
    devices.add_companion(cpu(2));
    devices.promote_successor();
    assert_eq!(numbers(&devices), (1, Some(2)));
}

#[test]
fn all_devices_are_freed() {
    let mut devices = Devices::new(gpu(1));
    devices.add_companion(cpu(2));
    devices.destroy();
    assert!(devices.primary().is_destroyed);
    assert!(devices.companion().is_some_and(|cpu| cpu.is_destroyed));

    let mut devices = Devices::new(cpu(3));
    devices.add_successor(gpu(4));
    let taken = devices.take(cpu(5));
    let taken: Vec<u32> = taken.iter().map(|device| device.number).collect();
    assert_eq!(taken, [4, 3]);
    assert_eq!(numbers(&devices), (5, None));
}

//! The adapters of a machine, and a device on one of them. Natively only: a
//! browser has one adapter and names no others.

use super::open::names_software;
use super::{Gpu, GpuOptions, gpu_driver_lock};
use crate::error::Error;

/// A GPU, or a program that stands in for one, as one graphics API offers it.
///
/// [`adapters`](crate::adapters) lists them; a session is opened on one by
/// [`Config::adapter`](crate::Config::adapter).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Adapter {
    /// The adapter's place in the list.
    pub index: usize,
    /// The adapter's name, as the GPU driver gives it.
    pub name: String,
    /// The GPU driver's name and version.
    pub driver: String,
    /// The graphics API: `vulkan`, `metal` or `dx12`. A GPU that several of them
    /// offer is in the list as often.
    pub backend: &'static str,
    /// The kind of the adapter.
    pub kind: AdapterKind,
    /// Where the adapter is plugged in, such as `0000:01:00.0`; empty where that is unknown.
    pub bus: String,
}

/// A kind of adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AdapterKind {
    /// A GPU with memory of its own.
    Discrete,
    /// A GPU that shares the CPU's memory.
    Integrated,
    /// A GPU, or a part of one, that a host lends.
    Virtual,
    /// The CPU, computing as a GPU would.
    Software,
    /// The GPU driver does not say.
    Other,
}

/// The adapters of this machine; [`crate::adapters`] says more. This enters the GPU drivers on
/// the thread that polls.
pub fn adapters() -> Vec<Adapter> {
    adapters_of(&gpu_driver_lock::enumerate())
}

impl Gpu {
    /// Opens a device on this adapter; the options' preference says nothing.
    ///
    /// # Errors
    ///
    /// [`Error::NoAdapter`] where it is gone; otherwise those of [`Gpu::open`].
    pub async fn open_on(adapter: &Adapter, options: &GpuOptions) -> Result<Gpu, Error> {
        let all = gpu_driver_lock::enumerate();
        let found = place(adapter, &adapters_of(&all));
        match found.and_then(|at| all.into_iter().nth(at)) {
            Some(found) => Gpu::on(found, options).await,
            None => Err(Error::NoAdapter(
                [
                    &adapter.name,
                    " is not there any more; list the adapters again",
                ]
                .concat(),
            )),
        }
    }
}

/// Where an adapter of an older list is in this one. What stands before it may
/// have gone, so its number is looked at last, among equals.
fn place(adapter: &Adapter, all: &[Adapter]) -> Option<usize> {
    let is_like = |other: &&Adapter| {
        let index = adapter.index;
        Adapter {
            index,
            ..(*other).clone()
        } == *adapter
    };
    let mut alike = all.iter().filter(is_like);
    let known = alike.clone().find(|other| other.index == adapter.index);
    known.or_else(|| alike.next()).map(|other| other.index)
}

fn adapters_of(all: &[wgpu::Adapter]) -> Vec<Adapter> {
    let described = all.iter().enumerate();
    described
        .map(|(index, known)| describe(index, known))
        .collect()
}

fn describe(index: usize, adapter: &wgpu::Adapter) -> Adapter {
    let info = adapter.get_info();
    let kind = match info.device_type {
        _ if names_software(&info.name) => AdapterKind::Software,
        wgpu::DeviceType::DiscreteGpu => AdapterKind::Discrete,
        wgpu::DeviceType::IntegratedGpu => AdapterKind::Integrated,
        wgpu::DeviceType::VirtualGpu => AdapterKind::Virtual,
        wgpu::DeviceType::Cpu => AdapterKind::Software,
        wgpu::DeviceType::Other => AdapterKind::Other,
    };
    Adapter {
        index,
        name: info.name,
        driver: [info.driver, info.driver_info].join(" ").trim().into(),
        backend: info.backend.to_str(),
        kind,
        bus: info.device_pci_bus_id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(names: &[(&str, &str)]) -> Vec<Adapter> {
        let names = names.iter().enumerate();
        names
            .map(|(index, (name, bus))| Adapter {
                index,
                name: (*name).into(),
                driver: String::new(),
                backend: "vulkan",
                kind: AdapterKind::Discrete,
                bus: (*bus).into(),
            })
            .collect()
    }

    #[test]
    fn an_adapter_is_found_by_what_it_is() {
        let before = listed(&[("a", "1"), ("a", "2"), ("b", ""), ("b", "")]);
        let cases = [
            // The same list; without the first; without one of two equals; with a new adapter in front.
            (before.clone(), [Some(0), Some(1), Some(2), Some(3)]),
            (
                listed(&[("a", "2"), ("b", ""), ("b", "")]),
                [None, Some(0), Some(2), Some(1)],
            ),
            (
                listed(&[("a", "1"), ("a", "2"), ("b", "")]),
                [Some(0), Some(1), Some(2), Some(2)],
            ),
            (
                listed(&[("c", ""), ("a", "1"), ("a", "2")]),
                [Some(1), Some(2), None, None],
            ),
        ];
        for (now, expected) in cases {
            let found = before.iter().map(|adapter| place(adapter, &now));
            assert_eq!(found.collect::<Vec<_>>(), expected, "{now:?}");
        }
    }
}

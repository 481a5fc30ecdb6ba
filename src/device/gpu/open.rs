//! Asks for an adapter and a device.

use super::pool::SMALLEST;
use super::{Faults, Gpu, Memory, Meter, Pipelines, Pool, Reads, Uploads, instance, poll};
use crate::device::{Counters, DeviceInfo, Engine};
use crate::error::Error;
use crate::kernel::Target;

#[cfg(not(target_arch = "wasm32"))]
#[path = "name_native.rs"]
mod name;
#[cfg(target_arch = "wasm32")]
#[path = "name_web.rs"]
mod name;

/// What the platform calls an adapter.
struct AdapterName {
    adapter: String,
    driver: String,
    software: bool,
    /// Whether four threads beside each other run in step and can exchange registers.
    quads: bool,
}

/// Which adapter to prefer where there are several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PowerPreference {
    /// The platform decides.
    #[default]
    None,
    /// The one that uses less energy.
    LowPower,
    /// The faster one.
    HighPerformance,
}

/// What to ask of the platform.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GpuOptions {
    /// Which adapter to prefer.
    pub power: PowerPreference,
    /// WebGPU names of features that must be there.
    pub required_features: Vec<String>,
    /// WebGPU names of limits, and what they must be at least.
    pub required_limits: Vec<(String, u64)>,
    /// WebGPU names of limits, and what is used of them at most: work beyond that
    /// goes in pieces, as it would on a device that offers no more.
    pub max_limits: Vec<(String, u64)>,
}

/// Features that are used wherever they are offered.
const WANTED: [(&str, wgpu::Features); 2] = [
    ("timestamp-query", wgpu::Features::TIMESTAMP_QUERY),
    ("shader-f16", wgpu::Features::SHADER_F16),
];

impl Gpu {
    /// Opens a device with the adapter's own limits.
    ///
    /// # Errors
    ///
    /// [`Error::NoAdapter`], or [`Error::InvalidInput`] for a feature or limit
    /// that is unknown or not offered.
    pub async fn open(options: &GpuOptions) -> Result<Gpu, Error> {
        let adapter = instance::instance()
            .request_adapter(&wgpu::RequestAdapterOptions {
                power_preference: match options.power {
                    PowerPreference::None => wgpu::PowerPreference::None,
                    PowerPreference::LowPower => wgpu::PowerPreference::LowPower,
                    PowerPreference::HighPerformance => wgpu::PowerPreference::HighPerformance,
                },
                ..Default::default()
            })
            .await
            .map_err(|error| none("no GPU adapter was found", error, "'cpu' or 'auto'"))?;
        Gpu::on(adapter, options).await
    }

    /// Opens a device on an adapter that was chosen.
    pub(super) async fn on(adapter: wgpu::Adapter, options: &GpuOptions) -> Result<Gpu, Error> {
        let offered = adapter.features();
        let mut limits = adapter.limits();
        check_features(&options.required_features, offered)?;
        check_limits(&options.required_limits, &limits)?;
        lower_limits(&options.max_limits, &mut limits)?;
        let wanted = WANTED
            .iter()
            .fold(wgpu::Features::empty(), |all, (_, feature)| all | *feature);
        let (device, queue) = adapter
            .request_device(&wgpu::DeviceDescriptor {
                label: Some("framebatch"),
                required_features: wanted & offered,
                required_limits: limits.clone(),
                ..Default::default()
            })
            .await
            .map_err(|error| none("the GPU adapter gave no device", error, "'cpu'"))?;
        let name = name::adapter(&device, &adapter);
        let has_quads = name.quads;
        let info = info(name, offered, &limits);
        let target = match info.software {
            true if has_quads => Target::Quads,
            true => Target::Processor,
            false => Target::Gpu,
        };
        let pool = Pool::default();
        Ok(Gpu {
            faults: Faults::watch(&device),
            pipelines: Pipelines::new(&device, target),
            info,
            device,
            queue,
            limits,
            memory: Memory::new(pool.clone()),
            reads: Reads::new(pool.clone()),
            uploads: Uploads::new(pool.clone()),
            meter: Meter::new(pool.clone()),
            pool,
            counters: Counters::default(),
        })
    }

    /// Resolves when the device is lost, destruction included.
    pub fn lost(&self) -> impl Future<Output = ()> + 'static {
        self.faults.lost()
    }

    /// The device itself, to share with other users of it.
    pub fn wgpu_device(&self) -> &wgpu::Device {
        &self.device
    }

    /// The device's queue.
    pub fn wgpu_queue(&self) -> &wgpu::Queue {
        &self.queue
    }
}

/// There is no GPU to open; these engines do without.
fn none(what: &str, error: impl std::error::Error, engines: &str) -> Error {
    let why = poll::reason(error);
    Error::NoAdapter(
        [
            what,
            " (",
            &why,
            "); open with engine ",
            engines,
            " to run without one",
        ]
        .concat(),
    )
}

fn check_features(required: &[String], offered: wgpu::Features) -> Result<(), Error> {
    for name in required {
        let Some((_, feature)) = WANTED.iter().find(|(known, _)| known == name) else {
            let known = WANTED.map(|(name, _)| name).join(", ");
            return Err(Error::InvalidInput(format!(
                "unknown feature '{name}'; known are {known}"
            )));
        };
        if !offered.contains(*feature) {
            return Err(Error::InvalidInput(format!(
                "this adapter does not offer the feature '{name}'"
            )));
        }
    }
    Ok(())
}

fn check_limits(required: &[(String, u64)], limits: &wgpu::Limits) -> Result<(), Error> {
    let known = named_limits(limits);
    for (name, least) in required {
        let Some((_, offered)) = known.iter().find(|(known, _)| known == name) else {
            let known: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            return Err(Error::InvalidInput(format!(
                "unknown limit '{name}'; known are {}",
                known.join(", ")
            )));
        };
        if offered < least {
            return Err(Error::InvalidInput(format!(
                "{name} of {least} is required, but this adapter offers {offered}"
            )));
        }
    }
    Ok(())
}

/// Lowers those limits that the planner keeps to. A browser's device offers what
/// WebGPU guarantees all the same.
fn lower_limits(most: &[(String, u64)], limits: &mut wgpu::Limits) -> Result<(), Error> {
    for (name, most) in most {
        match name.as_str() {
            "maxBufferSize" => limits.max_buffer_size = limits.max_buffer_size.min(*most),
            "maxStorageBufferBindingSize" => {
                let size = &mut limits.max_storage_buffer_binding_size;
                *size = (*size).min(*most);
            }
            "maxComputeWorkgroupsPerDimension" => {
                let groups = &mut limits.max_compute_workgroups_per_dimension;
                *groups = u32::try_from(*most).map_or(*groups, |most| most.min(*groups));
            }
            _ => {
                return Err(Error::InvalidInput(
                    [
                        "the limit '",
                        name,
                        "' cannot be lowered; maxBufferSize, maxStorageBufferBindingSize and \
                         maxComputeWorkgroupsPerDimension can",
                    ]
                    .concat(),
                ));
            }
        }
    }
    // Smaller ones hold not even the tables of a call.
    let least = limits
        .max_buffer_size
        .min(limits.max_storage_buffer_binding_size);
    if least < SMALLEST || limits.max_compute_workgroups_per_dimension == 0 {
        return Err(Error::InvalidInput(
            "a lowered limit is too small; give 65536 bytes and 1 workgroup, or more".into(),
        ));
    }
    Ok(())
}

/// The limits that decide what a batch can hold, by their WebGPU names.
fn named_limits(limits: &wgpu::Limits) -> Vec<(&'static str, u64)> {
    vec![
        ("maxBufferSize", limits.max_buffer_size),
        (
            "maxStorageBufferBindingSize",
            limits.max_storage_buffer_binding_size,
        ),
        (
            "maxComputeWorkgroupsPerDimension",
            limits.max_compute_workgroups_per_dimension.into(),
        ),
        (
            "maxComputeInvocationsPerWorkgroup",
            limits.max_compute_invocations_per_workgroup.into(),
        ),
        (
            "maxComputeWorkgroupStorageSize",
            limits.max_compute_workgroup_storage_size.into(),
        ),
        (
            "maxStorageBuffersPerShaderStage",
            limits.max_storage_buffers_per_shader_stage.into(),
        ),
    ]
}

fn info(name: AdapterName, offered: wgpu::Features, limits: &wgpu::Limits) -> DeviceInfo {
    DeviceInfo {
        engine: Engine::Gpu,
        software: name.software || names_software(&name.adapter),
        adapter: name.adapter,
        driver: name.driver,
        features: WANTED
            .iter()
            .filter(|(_, f)| offered.contains(*f))
            .map(|(name, _)| (*name).into())
            .collect(),
        limits: named_limits(limits),
    }
}

/// Not every platform marks software adapters; their names do.
pub(super) fn names_software(adapter: &str) -> bool {
    let names = ["swiftshader", "llvmpipe", "lavapipe", "software"];
    let holds = |name: &str| {
        adapter
            .as_bytes()
            .windows(name.len())
            .any(|part| part.eq_ignore_ascii_case(name.as_bytes()))
    };
    names.into_iter().any(holds)
}

//! Asks for an adapter and a device.

use wgpu::Features;

use super::buffer_pool::SMALLEST;
use super::{
    BufferPool, Buffers, DeviceErrors, Gpu, LaunchTimer, Pipelines, Poller, ReadBack, Uploads,
};
use super::{gpu_driver_lock, poll};
use crate::device::{Counters, DeviceInfo, Engine};
use crate::error::Error;

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
}

/// The adapter to prefer where there are several.
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
    /// The adapter to prefer.
    pub power: PowerPreference,
    /// WebGPU names of features that must be there, for other users of the device:
    /// those that [`wgpu`] knows in browsers, such as `float32-filterable`.
    pub required_features: Vec<String>,
    /// WebGPU names of limits, and what they must be at least: those that
    /// `DeviceInfo::limits` has. The device has all that the adapter offers.
    pub required_limits: Vec<(String, u64)>,
    /// WebGPU names of limits, and what is used of them at most: work beyond that
    /// goes in chunks, as it would on a device that offers no more.
    pub max_limits: Vec<(String, u64)>,
}

/// Features that are used wherever they are offered.
const WANTED: Features = Features::TIMESTAMP_QUERY.union(Features::SHADER_F16);

/// The features that wgpu knows in browsers, by their WebGPU names.
const FEATURES: [(&str, Features); 16] = [
    ("depth-clip-control", Features::DEPTH_CLIP_CONTROL),
    ("depth32float-stencil8", Features::DEPTH32FLOAT_STENCIL8),
    ("texture-compression-bc", Features::TEXTURE_COMPRESSION_BC),
    (
        "texture-compression-bc-sliced-3d",
        Features::TEXTURE_COMPRESSION_BC_SLICED_3D,
    ),
    (
        "texture-compression-etc2",
        Features::TEXTURE_COMPRESSION_ETC2,
    ),
    (
        "texture-compression-astc",
        Features::TEXTURE_COMPRESSION_ASTC,
    ),
    (
        "texture-compression-astc-sliced-3d",
        Features::TEXTURE_COMPRESSION_ASTC_SLICED_3D,
    ),
    ("timestamp-query", Features::TIMESTAMP_QUERY),
    ("indirect-first-instance", Features::INDIRECT_FIRST_INSTANCE),
    ("shader-f16", Features::SHADER_F16),
    (
        "rg11b10ufloat-renderable",
        Features::RG11B10UFLOAT_RENDERABLE,
    ),
    ("bgra8unorm-storage", Features::BGRA8UNORM_STORAGE),
    ("float32-filterable", Features::FLOAT32_FILTERABLE),
    ("float32-blendable", Features::FLOAT32_BLENDABLE),
    ("dual-source-blending", Features::DUAL_SOURCE_BLENDING),
    ("clip-distances", Features::CLIP_DISTANCES),
];

impl Gpu {
    /// Opens a device with the adapter's own limits.
    ///
    /// # Errors
    ///
    /// [`Error::NoAdapter`], or [`Error::InvalidInput`] for a feature or limit
    /// that is unknown or not offered.
    pub async fn open(options: &GpuOptions) -> Result<Gpu, Error> {
        let wanted = wgpu::RequestAdapterOptions {
            power_preference: match options.power {
                PowerPreference::None => wgpu::PowerPreference::None,
                PowerPreference::LowPower => wgpu::PowerPreference::LowPower,
                PowerPreference::HighPerformance => wgpu::PowerPreference::HighPerformance,
            },
            ..Default::default()
        };
        let adapter = gpu_driver_lock::request_adapter(&wanted)
            .await
            .map_err(|error| none("no GPU adapter was found", error, "'cpu' or 'auto'"))?;
        Gpu::on(adapter, options).await
    }

    /// Opens a device on an adapter that was chosen.
    pub(super) async fn on(adapter: wgpu::Adapter, options: &GpuOptions) -> Result<Gpu, Error> {
        let offered = adapter.features();
        let mut limits = adapter.limits();
        let required = required_features(&options.required_features, offered)?;
        check_limits(&options.required_limits, &limits)?;
        lower_limits(&options.max_limits, &mut limits)?;
        let features = WANTED & offered | required;
        let desc = wgpu::DeviceDescriptor {
            label: Some("framebatch"),
            required_features: features,
            required_limits: limits.clone(),
            ..Default::default()
        };
        let (device, queue) = gpu_driver_lock::request_device(&adapter, &desc)
            .await
            .map_err(|error| none("the GPU adapter gave no device", error, "'cpu'"))?;
        let name = name::adapter(&device, &adapter);
        let info = info(name, features, &limits);
        let pool = BufferPool::default();
        let errors = DeviceErrors::watch(&device);
        Ok(Gpu {
            poller: Poller::new(&device, &queue, &errors),
            pipelines: Pipelines::new(&device, &errors),
            errors,
            info,
            device,
            queue,
            limits,
            buffers: Buffers::new(pool.clone()),
            read_back: ReadBack::new(pool.clone()),
            uploads: Uploads::new(pool.clone()),
            timer: LaunchTimer::new(pool.clone(), features),
            pool,
            counters: Counters::default(),
        })
    }

    /// Resolves when the device is lost, destruction included.
    pub fn lost(&self) -> impl Future<Output = ()> + 'static {
        self.errors.lost()
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

/// The error where there is no GPU to open; `engines` do without one.
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

fn required_features(names: &[String], offered: Features) -> Result<Features, Error> {
    let mut required = Features::empty();
    for name in names {
        let Some((_, feature)) = FEATURES.iter().find(|(known, _)| known == name) else {
            let known: Vec<&str> = FEATURES.iter().map(|(name, _)| *name).collect();
            return Err(unknown("feature", name, &known));
        };
        if !offered.contains(*feature) {
            return Err(Error::InvalidInput(format!(
                "this adapter does not offer the feature '{name}'"
            )));
        }
        required |= *feature;
    }
    Ok(required)
}

fn unknown(what: &str, name: &str, known: &[&str]) -> Error {
    let known = known.join(", ");
    Error::InvalidInput(format!("unknown {what} '{name}'; known are {known}"))
}

fn check_limits(required: &[(String, u64)], limits: &wgpu::Limits) -> Result<(), Error> {
    let known = named_limits(limits);
    for (name, least) in required {
        let Some((_, offered)) = known.iter().find(|(known, _)| known == name) else {
            let known: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            return Err(unknown("limit", name, &known));
        };
        if offered < least {
            return Err(Error::InvalidInput(format!(
                "{name} of {least} is required, but this adapter offers {offered}"
            )));
        }
    }
    Ok(())
}

/// Lowers the limits that the planner keeps to. A browser's device offers all that WebGPU
/// guarantees, whatever these limits say.
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
    // Smaller limits would not hold even the tables of one call.
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

fn info(name: AdapterName, has: Features, limits: &wgpu::Limits) -> DeviceInfo {
    DeviceInfo {
        engine: Engine::Gpu,
        reason: None,
        software: name.software || names_software(&name.adapter),
        adapter: name.adapter,
        driver: name.driver,
        features: FEATURES
            .iter()
            .filter(|(_, feature)| has.contains(*feature))
            .map(|(name, _)| (*name).into())
            .collect(),
        limits: named_limits(limits),
    }
}

/// Whether a name is that of a software adapter: not every platform marks these otherwise.
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

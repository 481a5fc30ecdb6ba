//! Why a session computes on the CPU, as a name that programs and people read.

/// Why the device of a session is the CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CpuReason {
    /// The session was opened with the engine `cpu`.
    #[default]
    Asked,
    /// The page's address is no secure context, and browsers give WebGPU to no other.
    InsecureContext,
    /// There is no WebGPU, or no native graphics API.
    Unsupported,
    /// No adapter answered the request, or the adapter gave no device.
    NoAdapter,
    /// The only adapter is a software one: the CPU computes the same sooner by itself.
    SoftwareAdapter,
    /// The GPU was lost, and none could be kept since.
    DeviceLost,
}

impl CpuReason {
    /// The reason as JavaScript sees it; where it is a kind of error too, by the same name.
    pub const fn as_str(self) -> &'static str {
        match self {
            CpuReason::Asked => "asked",
            CpuReason::InsecureContext => "insecure-context",
            CpuReason::Unsupported => "unsupported",
            CpuReason::NoAdapter => "no-adapter",
            CpuReason::SoftwareAdapter => "software-adapter",
            CpuReason::DeviceLost => "device-lost",
        }
    }
}

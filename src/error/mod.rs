//! What can go wrong, as one enum with stable codes.
//!
//! Every message names what was given and what would be accepted. Nothing here
//! knows JavaScript: `web.rs` is the one place that translates.

#[cfg(target_arch = "wasm32")]
mod web;

/// The stable name of a kind of error, the same in Rust and in JavaScript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// The platform has no WebGPU or no native graphics API.
    Unsupported,
    /// WebGPU exists, but the page is not a secure context.
    InsecureContext,
    /// No adapter answered the request.
    NoAdapter,
    /// The device was lost while the call was in flight, or a tensor that the call reads is lost.
    DeviceLost,
    /// The device had no memory left, or the memory budget no room.
    OutOfMemory,
    /// The call does not fit the device's limits.
    LimitExceeded,
    /// An argument is wrong.
    InvalidInput,
    /// A shader did not compile.
    Shader,
    /// The queue is full and its policy is to reject.
    QueueFull,
    /// A newer call with the same key took this one's place.
    Superseded,
    /// The deadline passed.
    Timeout,
    /// The caller gave up.
    Aborted,
    /// The session was disposed.
    Disposed,
    /// The library itself failed.
    Fatal,
}

impl Code {
    /// Every code, in the order of their numbers on the wire (the first is 1).
    pub const ALL: [Code; 14] = [
        Code::Unsupported,
        Code::InsecureContext,
        Code::NoAdapter,
        Code::DeviceLost,
        Code::OutOfMemory,
        Code::LimitExceeded,
        Code::InvalidInput,
        Code::Shader,
        Code::QueueFull,
        Code::Superseded,
        Code::Timeout,
        Code::Aborted,
        Code::Disposed,
        Code::Fatal,
    ];

    /// The code as JavaScript sees it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Code::Unsupported => "unsupported",
            Code::InsecureContext => "insecure-context",
            Code::NoAdapter => "no-adapter",
            Code::DeviceLost => "device-lost",
            Code::OutOfMemory => "out-of-memory",
            Code::LimitExceeded => "limit-exceeded",
            Code::InvalidInput => "invalid-input",
            Code::Shader => "shader",
            Code::QueueFull => "queue-full",
            Code::Superseded => "superseded",
            Code::Timeout => "timeout",
            Code::Aborted => "aborted",
            Code::Disposed => "disposed",
            Code::Fatal => "fatal",
        }
    }

    /// The code's number in a settle table; 0 is kept for success.
    pub const fn number(self) -> u32 {
        self as u32 + 1
    }
}

/// Why a call, or the opening of a session, failed.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// An argument is wrong; the sentence names it, what was expected and what was given.
    #[error("{0}")]
    InvalidInput(String),

    /// The platform has no GPU API at all, or something that was asked for is not known here; the
    /// sentence says what, and what to do.
    #[error("{0}")]
    Unsupported(String),

    /// A model is of a kind that is not known; the sentence names the file and the field that say
    /// so, and what is known.
    #[error("{0}")]
    UnknownModel(String),

    /// There is no GPU adapter, or not the one that was asked for; the sentence says
    /// which, and what to do.
    #[error("{0}")]
    NoAdapter(String),

    /// A call is larger than the device allows.
    #[error(
        "{what} needs {need} bytes in one buffer, but this device allows {limit}; split the input"
    )]
    TooLarge {
        /// What asked for the memory.
        what: &'static str,
        /// Bytes asked for.
        need: u64,
        /// Bytes allowed.
        limit: u64,
    },

    /// A dispatch is larger than the device starts at once.
    #[error("{kernel} needs {need} workgroups, but this device starts {limit}; split the input")]
    TooManyGroups {
        /// What is dispatched.
        kernel: &'static str,
        /// Workgroups asked for.
        need: u64,
        /// Workgroups allowed.
        limit: u64,
    },

    /// A call that cannot be cut by rows takes more threads than are counted.
    #[error("a call that is not cut by rows takes fewer than 2^32 threads; split the input")]
    TooMany,

    /// The queue holds as much as it may and its policy is to reject.
    #[error(
        "the queue is full ({calls} calls, {bytes} bytes waiting); await `ready`, raise the queue capacity, or open with overflow 'wait'"
    )]
    QueueFull {
        /// Calls that wait.
        calls: usize,
        /// Bytes that wait.
        bytes: u64,
    },

    /// A newer call of the same key took the place of this one.
    #[error("a newer call with the same key took this call's place in a full queue")]
    Superseded,

    /// The call's deadline passed before its answer came.
    #[error(
        "the call was not answered before its deadline; give it more time, or ask for less at once"
    )]
    Timeout,

    /// The device went away.
    #[error("the GPU device was lost: {0}")]
    DeviceLost(String),

    /// A call reads a tensor whose words are lost, because a call that wrote it failed after it was
    /// submitted, or because the tensor's device is gone; the sentence says which.
    #[error("a tensor of the call is lost: {0}")]
    TensorLost(String),

    /// Vectors of an index are on the device alone; the sentence says how they come to the host.
    #[error("{0}")]
    OnDevice(String),

    /// The loops of an element made as many passes as a kernel of the program's own may, by its name.
    #[error(
        "{0}: the loops of an element made as many passes as they may together; end them, or raise the definition's number of passes"
    )]
    Endless(String),

    /// A kernel of the program's own, by its name, cannot be computed by the CPU.
    #[error(
        "{0}: calls run on the CPU, for which this kernel has no function; give its definition `cpu`"
    )]
    NoCpuFunction(String),

    /// There is no memory left, the device's or for operands, or the session's memory
    /// budget ([`BatchConfig::memory_budget`](crate::BatchConfig::memory_budget)) has no
    /// room; the sentence says which.
    #[error("out of memory: {0}")]
    OutOfMemory(String),

    /// A kernel did not compile on this device.
    #[error("a kernel did not compile: {0}")]
    Shader(String),

    /// The session is gone.
    #[error("the session was disposed before the call settled; await pending calls first")]
    Disposed,

    /// The library is at fault.
    #[error("framebatch failed: {0}")]
    Fatal(String),
}

impl Error {
    /// A call reads a tensor that was never filled.
    #[cfg(feature = "engine")]
    pub(crate) fn tensor_missing() -> Error {
        Error::InvalidInput("a tensor has no data on this device; fill it first".into())
    }

    /// The stable code of this error.
    pub const fn code(&self) -> Code {
        match self {
            Error::InvalidInput(_) => Code::InvalidInput,
            Error::Unsupported(_)
            | Error::UnknownModel(_)
            | Error::OnDevice(_)
            | Error::NoCpuFunction(_) => Code::Unsupported,
            Error::NoAdapter(_) => Code::NoAdapter,
            Error::TooLarge { .. }
            | Error::TooManyGroups { .. }
            | Error::TooMany
            | Error::Endless(_) => Code::LimitExceeded,
            Error::QueueFull { .. } => Code::QueueFull,
            Error::Superseded => Code::Superseded,
            Error::Timeout => Code::Timeout,
            Error::DeviceLost(_) | Error::TensorLost(_) => Code::DeviceLost,
            Error::OutOfMemory(_) => Code::OutOfMemory,
            Error::Shader(_) => Code::Shader,
            Error::Disposed => Code::Disposed,
            Error::Fatal(_) => Code::Fatal,
        }
    }
}

/// The message: it says more than the fields, and costs the package less.
impl std::fmt::Debug for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_the_order_on_the_wire() {
        for (i, code) in Code::ALL.iter().enumerate() {
            assert_eq!(*code as usize, i, "{}", code.as_str());
        }
    }
}

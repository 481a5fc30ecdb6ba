//! What listeners hear of a session's device.

use crate::driver::News;

/// What became of a session's device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceEvent {
    /// The GPU was lost. Calls that it did not answer wait for what takes its place.
    Lost,
    /// A GPU is in use again.
    Restored,
    /// The CPU took over: of a GPU that was lost, or of one batch that the GPU had no memory
    /// for.
    Fallback,
}

impl From<News> for DeviceEvent {
    fn from(news: News) -> Self {
        match news {
            News::Restored | News::Regained => DeviceEvent::Restored,
            News::FellBack | News::Relieved => DeviceEvent::Fallback,
        }
    }
}

//! What devices and host did during a run: the kernels' share of each device's time, how much
//! was read back, and how many cores the program kept busy.

use std::fs;
use std::sync::{Arc, Mutex};

use framebatch::{Facts, Gpu};

use crate::clock::time;
use crate::report::Row;

/// What the system says of the whole program, and of the thread that asks.
const PROGRAM: &str = "/proc/self/stat";
const THREAD: &str = "/proc/thread-self/stat";

/// Clock ticks of these in a second: Linux fixes them at 100 for programs.
const TICKS_A_SECOND: f64 = 100.0;

/// Means over the sessions of one run.
pub(crate) struct Profile {
    /// The kernels' share of the run's time. `None` where devices have no timestamps.
    pub(crate) utilization: Option<f64>,
    /// Read-back, in GB a second of all sessions together.
    read_gb: f64,
    /// Cores that ran the program's code, and those that ran the system's for it.
    cores: Option<[f64; 2]>,
    /// The share of the run's time in which the thread that runs it computed, and did not wait.
    thread_busy: Option<f64>,
}

impl Profile {
    /// Profiles one run. Listening makes batches a little slower, so that no run is both timed
    /// and profiled.
    pub(crate) fn of(sessions: &[Gpu], run: impl FnOnce()) -> Profile {
        let heard: Arc<Mutex<Vec<Facts>>> = Arc::default();
        let watches = sessions.iter().map(|gpu| {
            let heard = Arc::clone(&heard);
            gpu.on_batch(move |facts| heard.lock().expect("no listener panics").push(*facts))
        });
        let watches: Vec<_> = watches.collect();
        let before = [PROGRAM, THREAD].map(cpu_seconds);
        let ms = time(run);
        let after = [PROGRAM, THREAD].map(cpu_seconds);
        drop(watches);
        let heard = heard.lock().expect("no listener panics");
        let kernels = heard.iter().map(|facts| facts.gpu_ms).sum::<Option<f64>>();
        let bytes: u64 = heard.iter().map(|facts| facts.bytes_down).sum();
        let cores = |of: usize| {
            let [[user, system], [later_user, later_system]] = [before[of]?, after[of]?];
            let cores = |seconds: f64| seconds * 1e3 / ms;
            Some([cores(later_user - user), cores(later_system - system)])
        };
        Profile {
            utilization: kernels.map(|kernels| kernels / (ms * sessions.len() as f64)),
            read_gb: bytes as f64 / ms / 1e6,
            cores: cores(0),
            thread_busy: cores(1).map(|[user, system]| user + system),
        }
    }

    /// The row, with what this knows.
    pub(crate) fn added_to(&self, row: Row) -> Row {
        let mut row = row.with("read-gb-a-second", self.read_gb);
        if let Some(share) = self.utilization {
            row = row.with("utilization", share);
        }
        if let Some([user, system]) = self.cores {
            row = row.with("cores-user", user).with("cores-system", system);
        }
        if let Some(share) = self.thread_busy {
            row = row.with("thread-busy", share);
        }
        row
    }
}

/// Seconds of all cores so far, in the program's code and in the system's for it, where the
/// system tells.
fn cpu_seconds(file: &str) -> Option<[f64; 2]> {
    let text = fs::read_to_string(file).ok()?;
    // The second field, the program's name in brackets, may hold spaces.
    let mut behind_name = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut next = || Some(behind_name.next()?.parse::<f64>().ok()? / TICKS_A_SECOND);
    Some([next()?, next()?])
}

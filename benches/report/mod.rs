//! What a run of a native bench leaves behind: a record like that of the bench page.
//!
//! Workloads and rows have the fields that `www/bench/record.ts` describes, so that
//! `make records` compares native rows and those of pages alike. Nothing is measured here,
//! and no table is printed.

#![allow(dead_code, reason = "each bench uses a part")]

use std::fs;
use std::thread::available_parallelism;

use framebatch::DeviceInfo;
use serde_json::{Value, json};

use crate::clock::{Times, now};

/// The system that every other one is compared with: a batch for exactly this workload,
/// written by hand.
pub(crate) const BY_HAND: &str = "one-batch";

/// One way to do some work, and what it took.
pub(crate) struct Row {
    pub(crate) workload: String,
    pub(crate) system: String,
    pub(crate) times: Times,
    /// Counts beside the times, by name.
    pub(crate) parts: Vec<(&'static str, f64)>,
}

impl Row {
    pub(crate) fn new(workload: &str, system: &str, times: Times) -> Row {
        Row {
            workload: workload.to_owned(),
            system: system.to_owned(),
            times,
            parts: Vec::new(),
        }
    }

    pub(crate) fn with(mut self, name: &'static str, part: f64) -> Row {
        self.parts.push((name, part));
        self
    }
}

/// Rows of workloads that are told in the same words.
pub(crate) struct Table {
    /// What is timed.
    pub(crate) about: &'static str,
    /// The unit of the times; milliseconds where it is `None`. Of a rate, more is better.
    pub(crate) unit: Option<Unit>,
    pub(crate) rows: Vec<Row>,
}

/// Another unit than milliseconds.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    Time(&'static str),
    Rate(&'static str),
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Unit::Time(name) | Unit::Rate(name) => name,
        }
    }
}

/// When the run began, and what it leaves.
pub(crate) struct Report {
    date: String,
    load: Option<f64>,
    tables: Vec<Table>,
    /// Too few runs for a record to be compared with.
    pub(crate) quick: bool,
}

impl Report {
    /// The record of a run that begins now.
    pub(crate) fn begin() -> Report {
        Report {
            date: now(),
            load: load(),
            tables: Vec::new(),
            quick: false,
        }
    }

    /// Adds what was measured: of a workload and system that are there, another round.
    pub(crate) fn add(&mut self, table: Table) {
        self.tables.push(table);
    }

    /// Writes it to the folder, dated and with the adapter's name; `what` ends the file's.
    pub(crate) fn write(&self, folder: &str, info: &DeviceInfo, what: &str) {
        let day = &self.date[..10];
        let path = format!("{folder}/{day}-{}-{what}.json", slug(&info.adapter));
        let text = serde_json::to_string_pretty(&self.record(info)).expect("plain values");
        fs::write(&path, text + "\n").unwrap_or_else(|error| panic!("{path}: {error}"));
        println!("record: {path}");
    }

    fn record(&self, info: &DeviceInfo) -> Value {
        let rows = self.tables.iter().flat_map(|table| &table.rows);
        let mut rounds: Vec<Vec<&Row>> = Vec::new();
        for row in rows {
            let same = |of: &&mut Vec<&Row>| {
                (&of[0].workload, &of[0].system) == (&row.workload, &row.system)
            };
            match rounds.iter_mut().find(same) {
                Some(of) => of.push(row),
                None => rounds.push(vec![row]),
            }
        }
        json!({
            "date": self.date,
            "adapter": info.adapter,
            "driver": info.driver,
            "software": info.software,
            "cores": available_parallelism().map_or(1, usize::from),
            "load": self.load,
            "quick": self.quick,
            "workloads": self.workloads(),
            "rows": rounds.iter().map(|of| middle(of)).collect::<Vec<Value>>(),
        })
    }

    fn workloads(&self) -> Vec<Value> {
        let mut abouts: Vec<Value> = Vec::new();
        for table in &self.tables {
            for row in &table.rows {
                if abouts.iter().any(|about| about["name"] == row.workload) {
                    continue;
                }
                let mut about = json!({ "name": row.workload, "about": table.about });
                if let Some(unit) = table.unit {
                    about["unit"] = unit.name().into();
                }
                if let Some(Unit::Rate(_)) = table.unit {
                    about["better"] = "higher".into();
                }
                abouts.push(about);
            }
        }
        abouts
    }
}

/// The round whose median is the middle one of all rounds, and all medians.
fn middle(rounds: &[&Row]) -> Value {
    let medians: Vec<f64> = rounds.iter().map(|row| row.times.median()).collect();
    let median = Times::new(medians.clone()).median();
    let is_middle = |of: &f64| of.total_cmp(&median).is_eq();
    let at = medians.iter().position(is_middle).expect("one of them");
    let Row {
        workload,
        system,
        times,
        parts,
    } = rounds[at];
    let mut row = json!({
        "workload": workload,
        "system": system,
        "runs": times.runs(),
        "median": median,
        "p95": times.below(95),
        "min": times.below(0),
        "quartiles": [times.below(25), times.below(75)],
    });
    if rounds.len() > 1 {
        row["rounds"] = medians.into();
    }
    for (name, part) in parts {
        row["parts"][name] = (*part).into();
    }
    row
}

/// How many programs ran or waited in the last minute, where the system tells.
fn load() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}

/// Letters and digits of a name, the rest as single dashes.
fn slug(name: &str) -> String {
    let words = name.split(|letter: char| !letter.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("-").to_lowercase()
}

//! The kept inputs of each target, and what the faces say of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::targets::Target;

/// Bytes of an input that is worth a file, and files of a target.
const SHORT: usize = 2048;
const MOST: usize = 120;

pub(crate) struct Corpus {
    folder: PathBuf,
    pub(crate) inputs: BTreeMap<String, Vec<u8>>,
}

/// An input for the other face, which is to say the same.
pub(crate) struct Sample {
    pub(crate) verdict: &'static str,
    pub(crate) input: Vec<u8>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpora")
}

fn found() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/fuzz");
    fs::create_dir_all(&folder).unwrap();
    folder
}

impl Corpus {
    pub(crate) fn read(target: &Target) -> Corpus {
        let folder = root().join(target.name);
        let files = fs::read_dir(&folder).unwrap().map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_string();
            (name, fs::read(path).unwrap())
        });
        let inputs = files.collect();
        Corpus { folder, inputs }
    }

    /// Keeps an input, unless it is long or there are enough.
    pub(crate) fn add(&mut self, input: &[u8]) {
        if input.len() <= SHORT && self.inputs.len() < MOST {
            let name = name_of(input);
            fs::write(self.folder.join(&name), input).unwrap();
            self.inputs.insert(name, input.to_vec());
        }
    }
}

/// By its bytes, so that equal inputs are one.
fn name_of(input: &[u8]) -> String {
    let hash = input.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// Keeps what went wrong; where.
pub(crate) fn keep_finding(target: &Target, input: &[u8]) -> String {
    let path = found().join(format!("finding-{}-{}", target.name, name_of(input)));
    fs::write(&path, input).unwrap();
    path.to_string_lossy().into_owned()
}

/// For the other face: a line of JSON for each, with the bytes in hexadecimal digits.
pub(crate) fn write_samples(target: &Target, samples: &[Sample]) {
    let lines = samples.iter().map(|Sample { verdict, input }| {
        let bytes: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}\n", json!({ "verdict": verdict, "bytes": bytes }))
    });
    let path = found().join(format!("samples-{}.jsonl", target.name));
    fs::write(path, lines.collect::<String>()).unwrap();
}

/// What the native face says of each kept input.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Verdicts(BTreeMap<String, BTreeMap<String, String>>);

impl Verdicts {
    fn path() -> PathBuf {
        root().join("verdicts.json")
    }

    pub(crate) fn read() -> Verdicts {
        let text = fs::read_to_string(Self::path()).unwrap();
        let table: Value = serde_json::from_str(&text).unwrap();
        let rows = |(name, rows): (&String, &Value)| {
            let rows = rows.as_object().unwrap().iter();
            let text =
                |(name, row): (&String, &Value)| (name.clone(), row.as_str().unwrap().to_string());
            (name.clone(), rows.map(text).collect())
        };
        Verdicts(table.as_object().unwrap().iter().map(rows).collect())
    }

    pub(crate) fn set(&mut self, target: &Target, name: &str, verdict: &str) {
        let rows = self.0.entry(target.name.into()).or_default();
        rows.insert(name.into(), verdict.into());
    }

    pub(crate) fn write(&self) {
        let text = serde_json::to_string_pretty(&json!(self.0)).unwrap();
        fs::write(Self::path(), text + "\n").unwrap();
    }
}

//! What is fuzzed: each way in for what strangers wrote, through the public face.

use std::fs;
use std::path::{Path, PathBuf};

use framebatch::{
    Code, Config, Embedder, EmbedderOptions, EngineChoice, Error, Field, Filter, Gpu, Preset,
    State, Storage,
};

use crate::mutation::Form;

/// What an input is given to: a session on the CPU, and a model's folder.
pub(crate) struct Bench {
    gpu: Gpu,
    folder: Vec<(String, Vec<u8>)>,
}

pub(crate) struct Target {
    /// The name of the target, and of its corpus.
    pub(crate) name: &'static str,
    pub(crate) form: Form,
    /// What the face says of an input, in a word and in a sentence.
    pub(crate) judge: fn(&Bench, &[u8]) -> (&'static str, String),
}

pub(crate) const TARGETS: [Target; 6] = [
    Target {
        name: "configurations",
        form: Form::NamedJson,
        judge: configuration,
    },
    Target {
        name: "formulas",
        form: Form::Text,
        judge: formula,
    },
    Target {
        name: "indexes",
        form: Form::Words,
        judge: index,
    },
    Target {
        name: "safetensors",
        form: Form::HeaderedJson,
        judge: safetensors,
    },
    Target {
        name: "tokenizers",
        form: Form::Json,
        judge: tokenizer,
    },
    Target {
        name: "vocabularies",
        form: Form::Text,
        judge: vocabulary,
    },
];

const WEIGHTS: &str = "model.safetensors";
const WORDS: &str = "vocab.txt";
const WHOLE: &str = "tokenizer.json";

impl Bench {
    pub(crate) fn new() -> Bench {
        let config = Config {
            engine: EngineChoice::Cpu,
            batch: Preset::Eager.config(),
            ..Config::default()
        };
        let gpu = pollster::block_on(Gpu::open(config)).unwrap();
        let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tiny-model");
        let mut folder = Vec::new();
        let mut folders = vec![PathBuf::new()];
        while let Some(at) = folders.pop() {
            for entry in fs::read_dir(home.join(&at)).unwrap() {
                let entry = entry.unwrap();
                let name = at.join(entry.file_name());
                match entry.file_type().unwrap().is_dir() {
                    true => folders.push(name),
                    false => {
                        let content = fs::read(entry.path()).unwrap();
                        folder.push((name.to_str().unwrap().into(), content));
                    }
                }
            }
        }
        Bench { gpu, folder }
    }

    /// The folder with one file in place of others.
    fn load(&self, name: &str, content: &[u8], without: &[&str]) -> Result<Embedder, Error> {
        let kept = self
            .folder
            .iter()
            .filter(|(known, _)| known != name && !without.contains(&&known[..]));
        let mut files: Vec<(&str, &[u8])> = kept
            .map(|(name, content)| (&name[..], &content[..]))
            .collect();
        files.push((name, content));
        let options = EmbedderOptions {
            dtype: Storage::F32,
            ..EmbedderOptions::default()
        };
        Embedder::open(&self.gpu, &files[..], options)
    }
}

/// An error is the caller's matter, or what a device has no room for.
fn refused(error: &Error) -> (&'static str, String) {
    let said = error.to_string();
    let known = matches!(
        error.code(),
        Code::InvalidInput | Code::LimitExceeded | Code::Unsupported
    );
    assert!(known, "{:?}: {said}", error.code());
    // What the tokenizer and the forward pass refuse the browser's face hears of from
    // its WebAssembly.
    let is_theirs = [
        "has no token '",
        "times hidden_size must be",
        "an added token is empty",
        "is added twice",
    ];
    match is_theirs.iter().any(|words| said.contains(words)) {
        true => ("refused by the core", said),
        false => ("refused", said),
    }
}

/// What became of a folder whose weights may be of other sizes.
fn opened(opened: Result<Embedder, Error>) -> (&'static str, String) {
    let embedder = match opened {
        Ok(embedder) => embedder,
        Err(error) => {
            let said = error.to_string();
            let is_of_sizes = ["is missing", "has shape", "has elements"];
            let is_of_sizes = is_of_sizes.iter().any(|words| said.contains(words));
            return match said.starts_with("model.safetensors: tensor ") && is_of_sizes {
                true => ("of other sizes", said),
                false => refused(&error),
            };
        }
    };
    match embedder.ids("the ☃ cat [MASK] sat") {
        Ok(ids) => {
            let most = embedder.config().max_tokens as usize;
            // Of a template without the text there are none.
            assert!(ids.len() <= most.max(2), "{ids:?} of {most}");
            ("taken", format!("taken with {} ids", ids.len()))
        }
        Err(error) if error.to_string().contains("is the model's padding") => {
            ("taken", error.to_string())
        }
        Err(error) => ("unsplit", error.to_string()),
    }
}

/// The first line names a file of the folder.
fn configuration(bench: &Bench, input: &[u8]) -> (&'static str, String) {
    let end = input.iter().position(|byte| *byte == b'\n');
    let end = end.unwrap_or(input.len());
    let name = String::from_utf8_lossy(&input[..end]);
    let content = input.get(end + 1..).unwrap_or_default();
    // Without a limit of its own the folder's is read; tables of characters take their time.
    let without = match &name[..] {
        "tokenizer_config.json" => "sentence_bert_config.json",
        _ => WORDS,
    };
    opened(bench.load(&name, content, &[without]))
}

fn tokenizer(bench: &Bench, input: &[u8]) -> (&'static str, String) {
    opened(bench.load(WHOLE, input, &[WORDS]))
}

fn vocabulary(bench: &Bench, input: &[u8]) -> (&'static str, String) {
    opened(bench.load(WORDS, input, &[]))
}

fn safetensors(bench: &Bench, input: &[u8]) -> (&'static str, String) {
    opened(bench.load(WEIGHTS, input, &[WORDS]))
}

fn index(bench: &Bench, input: &[u8]) -> (&'static str, String) {
    let index = match bench.gpu.load_index(input) {
        Ok(index) => index,
        Err(error) => return refused(&error),
    };
    assert_eq!(
        index.save().unwrap(),
        input,
        "what is taken is what was saved"
    );
    let dim = u32::from_le_bytes(*input[16..].first_chunk().unwrap());
    let query = vec![0.5; dim as usize];
    let count = index.len().min(3);
    if count == 0 {
        return ("taken", "taken, and empty".into());
    }
    let found = index.search(&query, count, Filter::All).wait().unwrap();
    assert_eq!(found[0].len(), count);
    let filter = Filter::Ids(&[0, u32::MAX]);
    let listed = index.search(&query, count, filter).wait().unwrap();
    assert!(
        listed[0].len() <= count && listed[0].iter().all(|hit| [0, u32::MAX].contains(&hit.id))
    );
    ("taken", format!("taken, {count} found"))
}

fn formula(bench: &Bench, input: &[u8]) -> (&'static str, String) {
    let Ok(text) = std::str::from_utf8(input) else {
        return ("refused", "not UTF-8".into()); // No string of any language.
    };
    let field: Field = match text.parse() {
        Ok(field) => field,
        Err(error) => {
            let (verdict, said) = refused(&error);
            // What stands in quotes, and behind "at", is the formula's own.
            let said = said.split(" at ").next().unwrap_or_default();
            let own: Vec<&str> = said.split('\'').step_by(2).collect();
            return (verdict, own.join("''"));
        }
    };
    let states = [State::default(); 2];
    let call = bench.gpu.compute_field_gradients(&states, &field);
    match call.wait() {
        Ok(floats) => {
            assert_eq!(floats.len(), 64);
            ("taken", "taken".into())
        }
        Err(error) => refused(&error),
    }
}

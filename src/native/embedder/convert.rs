//! Writes a model's folder anew with fewer bytes, and holds it to what the model was.
//!
//! How matrices are written is the matter of `blocks`; what loading makes of such a folder, that of
//! `weights` and of `references`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::blocks::{Matrices, WEIGHTS};
use super::files::{ModelFiles, refuse};
use super::json::Json;
use super::references;
use super::{Embedder, EmbedderOptions, Reranker, RerankerOptions};
use crate::embed::{MOST_TOKENS, TEXTS, drawn_ids};
use crate::error::Error;
use crate::native::gpu::Gpu;
use crate::native::storage::Storage;
use crate::tensor::Packing;

/// What [`convert`] wrote.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Conversion {
    /// Bytes of `model.safetensors` as it was.
    pub bytes_before: u64,
    /// Bytes of `model.safetensors` as it was written.
    pub bytes: u64,
    /// The least cosine of a few texts' vectors with those of the model as it was; `None` for a
    /// reranker.
    pub fidelity: Option<f32>,
    /// Of a conversion to [`Storage::Int4`], how many layers have their matrices in 8 bits, of how
    /// many.
    pub layers_as_int8: Option<(u32, u32)>,
}

/// Writes the model of a Hugging Face folder to another one, with matrices as [`Storage::Int8`] or
/// [`Storage::Int4`], as `npx framebatch convert` does: a quarter of the bytes, or an eighth and
/// more. Pages and programs load it as any other folder, with [`Storage::Auto`], and hold it to the
/// vectors of the model as it was, which are computed on this session and written beside it. It
/// blocks until that is done.
///
/// In 4 bits are the table of words, and of the layers as many as vectors with a cosine of 0.99
/// leave; the last ones stay in 8. A reranker has no vectors that tell what 4 bits cost. Weights in
/// GGUF files are converted by the command alone.
///
/// ```no_run
/// # fn main() -> Result<(), framebatch::Error> {
/// use framebatch::{Blocking, Config, Storage, convert};
///
/// let gpu = Blocking::open(Config::default())?;
/// let done = convert(gpu.gpu(), "models/minilm", "models/minilm-int8", Storage::Int8)?;
/// println!("{} bytes instead of {}", done.bytes, done.bytes_before);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Error::InvalidInput`] for another storage, for a folder that was converted already, for one
/// that is there with files, for a reranker in 4 bits, and for what cannot be read or written;
/// [`Error::Unsupported`] where vectors are too far off with all layers in 8 bits; and the errors of
/// [`Embedder::open`]. Nothing half written stays.
pub fn convert(
    gpu: &Gpu,
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    storage: Storage,
) -> Result<Conversion, Error> {
    let packing = match storage {
        Storage::Int8 => Packing::Int8,
        Storage::Int4 => Packing::Int4,
        other => {
            let problem = format!("convert: give Storage::Int8 or Storage::Int4, got {other:?}");
            return Err(Error::InvalidInput(problem));
        }
    };
    let (from, to) = (from.as_ref(), to.as_ref());
    let names = files_of(from)?;
    if names.iter().any(|name| name == references::NAME) {
        let problem = "was converted already; give the model's own folder";
        return Err(refuse(&from.to_string_lossy(), problem));
    }
    // Before anything is written, because what fails later is removed.
    let is_empty = match fs::read_dir(to) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => true,
        Err(error) => return Err(failed(to, &error)),
    };
    if !is_empty {
        return Err(refuse(
            &to.to_string_lossy(),
            "is there already, with files",
        ));
    }
    let conversion = Folders { gpu, from, to }.write(&names, packing);
    if conversion.is_err() {
        // What went wrong is told, and not that this does as well.
        let _ = fs::remove_dir_all(to);
    }
    conversion
}

/// A conversion under way.
struct Folders<'a> {
    gpu: &'a Gpu,
    from: &'a Path,
    to: &'a Path,
}

impl Folders<'_> {
    fn write(&self, names: &[String], packing: Packing) -> Result<Conversion, Error> {
        fs::create_dir_all(self.to).map_err(|error| failed(self.to, &error))?;
        for name in names.iter().filter(|name| is_copied(name)) {
            self.copy(name)?;
        }
        let mut matrices = Matrices::open(&ModelFiles::from(self.from))?;
        let references = self.references()?;
        let kept = json!({ "storage": packing.name(), "references": references });
        let path = self.to.join(references::NAME);
        fs::write(&path, kept.to_string()).map_err(|error| failed(&path, &error))?;
        let before = matrices.bytes();
        let conversion = |(bytes, fidelity), layers_as_int8| Conversion {
            bytes_before: before,
            bytes,
            fidelity,
            layers_as_int8,
        };
        if packing == Packing::Int8 {
            let bytes = self.write_weights(&mut matrices, None)?;
            let fidelity = match references[..] {
                [] => None,
                _ => self.fidelity()?,
            };
            return Ok(conversion((bytes, fidelity), None));
        }
        if references.is_empty() {
            let problem = "is a reranker, which has no vectors that tell what 4 bits cost; convert it with Storage::Int8";
            return Err(refuse(&self.from.to_string_lossy(), problem));
        }
        let layers = matrices.layers();
        let (mut fewest, mut most) = (0, layers);
        while fewest < most {
            let kept = u32::midpoint(fewest, most);
            match self.attempt(&mut matrices, kept) {
                Ok(_) => most = kept,
                Err(Error::Unsupported(_)) => fewest = kept + 1,
                Err(error) => return Err(error),
            }
        }
        let attempt = self.attempt(&mut matrices, fewest)?;
        Ok(conversion(attempt, Some((fewest, layers))))
    }

    fn copy(&self, name: &str) -> Result<(), Error> {
        let (from, to) = (self.from.join(name), self.to.join(name));
        let folder = to.parent().unwrap_or(self.to);
        let copied = fs::create_dir_all(folder).and_then(|()| fs::copy(&from, &to));
        copied.map(|_| ()).map_err(|error| failed(&to, &error))
    }

    /// Writes the weights in 4 bits, but for so many of the last layers, and loads them: their bytes,
    /// and the least cosine.
    fn attempt(&self, matrices: &mut Matrices<'_>, kept: u32) -> Result<(u64, Option<f32>), Error> {
        let bytes = self.write_weights(matrices, Some(kept))?;
        Ok((bytes, self.fidelity()?))
    }

    /// Writes the weights: in 8 bits, or in 4 but for so many of the last layers. Their bytes.
    fn write_weights(&self, matrices: &mut Matrices<'_>, kept: Option<u32>) -> Result<u64, Error> {
        let layers = matrices.layers();
        let written = matrices.written(|matrix| match (kept, matrix.layer) {
            (None, _) => Packing::Int8,
            _ if matrix.is_largest => Packing::Int4,
            (Some(kept), Some(layer)) if layer + kept < layers => Packing::Int4,
            (Some(_), _) => Packing::Int8,
        })?;
        let path = self.to.join(WEIGHTS);
        fs::write(&path, &written).map_err(|error| failed(&path, &error))?;
        Ok(written.len() as u64)
    }

    /// Loads what was written, which compares vectors.
    fn fidelity(&self) -> Result<Option<f32>, Error> {
        let options = EmbedderOptions {
            dtype: Storage::Auto,
            ..EmbedderOptions::default()
        };
        Ok(Embedder::open(self.gpu, self.to, options)?.fidelity())
    }

    /// The tokens of a few texts and their vectors by the model as it is; none of a reranker, which
    /// gives a number.
    fn references(&self) -> Result<Vec<Value>, Error> {
        if self.is_reranker()? {
            // Loading says what the folder of a reranker lacks.
            let options = RerankerOptions {
                verify: false,
                ..RerankerOptions::default()
            };
            Reranker::open(self.gpu, self.from, options)?;
            return Ok(Vec::new());
        }
        let options = EmbedderOptions {
            verify: false,
            ..EmbedderOptions::default()
        };
        let embedder = Embedder::open(self.gpu, self.from, options)?;
        let most = MOST_TOKENS.min(embedder.config().max_tokens) as usize;
        let drawn = drawn_ids(embedder.config());
        let ids = TEXTS.iter().zip(drawn).map(|(text, drawn)| {
            // Drawn ones where nothing splits the text, or into nothing.
            let ids = embedder.ids(text).unwrap_or_default();
            let mut ids = if ids.is_empty() { drawn } else { ids };
            ids.truncate(most);
            ids
        });
        let ids: Vec<Vec<u32>> = ids.collect();
        let calls: Vec<_> = ids.iter().map(|ids| embedder.embed_ids(ids)).collect();
        self.gpu.flush();
        let references = ids.iter().zip(calls).map(|(ids, call)| {
            let vector = call.wait()?;
            match vector.iter().all(|x| x.is_finite()) {
                true => Ok(json!({ "ids": ids, "vector": vector })),
                false => {
                    let problem = "its weights give vectors that are no numbers";
                    Err(refuse(&self.from.to_string_lossy(), problem))
                }
            }
        });
        references.collect()
    }

    fn is_reranker(&self) -> Result<bool, Error> {
        let config = Json::find(&ModelFiles::from(self.from), "config.json")?;
        let names = config.and_then(|config| config.value.get("architectures").cloned());
        let is_for = |name: &Value| {
            let name = name.as_str().unwrap_or_default();
            name.ends_with("ForSequenceClassification")
        };
        let names = names.as_ref().and_then(Value::as_array);
        Ok(names.is_some_and(|names| names.iter().any(is_for)))
    }
}

/// What a folder has besides, and is copied: descriptions and words, and the weights of modules.
fn is_copied(name: &str) -> bool {
    let ends = [".json", ".txt", ".md", "/model.safetensors"];
    ends.iter().any(|end| name.ends_with(end))
}

/// The names of all files of a folder, with `/` between folders.
fn files_of(folder: &Path) -> Result<Vec<String>, Error> {
    let mut names = Vec::new();
    let mut left = vec![(folder.to_path_buf(), String::new())];
    while let Some((path, prefix)) = left.pop() {
        for (name, path) in entries(&path)? {
            let name = [&prefix, &name[..]].concat();
            // Links are followed, as loading does.
            match path.is_dir() {
                true => left.push((path, [&name, "/"].concat())),
                false => names.push(name),
            }
        }
    }
    Ok(names)
}

fn entries(folder: &Path) -> Result<Vec<(String, PathBuf)>, Error> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let entries = entries.map_err(|error| failed(folder, &error))?;
    let named = entries.into_iter().map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, entry.path())
    });
    Ok(named.collect())
}

fn failed(path: &Path, error: &std::io::Error) -> Error {
    refuse(&path.to_string_lossy(), &error.to_string())
}

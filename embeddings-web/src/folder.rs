//! The reader of a model's folder as JavaScript sees it: files go in by name, and what is needed
//! next comes out until the model is described.

use wasm_bindgen::prelude::*;

use framebatch::Error;
use framebatch::embed::folder::{Description, Folder, Progress, Task};

use super::encoder::WebEncoder;

/// A model's folder while it is read.
#[wasm_bindgen(js_name = Folder)]
#[derive(Default)]
pub struct WebFolder {
    folder: Folder,
    description: Option<Box<Description>>,
}

#[wasm_bindgen(js_class = Folder)]
impl WebFolder {
    /// A folder of which nothing was given yet.
    #[wasm_bindgen(constructor)]
    pub fn new() -> WebFolder {
        WebFolder::default()
    }

    /// Takes a file.
    pub fn give(&mut self, name: &str, content: &[u8]) -> Result<(), Error> {
        self.folder.give(name, Some(content))
    }

    /// Hears that the folder has no such file.
    pub fn lacks(&mut self, name: &str) -> Result<(), Error> {
        self.folder.give(name, None)
    }

    /// The names of the files that are needed next, a line each; none once the model is described:
    /// as a reranker, or as an embedder whose vectors have so many floats, 0 for all of them.
    #[expect(clippy::fn_params_excessive_bools, reason = "so JavaScript asks it")]
    pub fn needs(&mut self, is_reranker: bool, dimensions: u32) -> Result<String, Error> {
        let task = match is_reranker {
            true => Task::Rerank,
            false => Task::Embed {
                dimensions: (dimensions > 0).then_some(dimensions),
            },
        };
        match self.folder.describe(task)? {
            Progress::Needs(names) => Ok(names.join("\n")),
            Progress::Described(description) => {
                self.description = Some(description);
                Ok(String::new())
            }
        }
    }

    /// The encoder of the model that was described, once.
    pub fn encoder(&mut self) -> Result<WebEncoder, Error> {
        let description = self.description.take();
        let description = description
            .ok_or_else(|| Error::Fatal("the folder's files were not all asked for".into()))?;
        Ok(WebEncoder(*description))
    }
}

//! The vectors that a converted folder has of its model: `framebatch convert` writes them.

use super::files::{ModelFiles, refuse};
use super::json::Json;
use crate::embed::Config;
use crate::error::Error;

/// The file of a converted folder that has such vectors.
pub(super) const NAME: &str = "framebatch.json";

/// The tokens of a text, and the vector that it had before the folder was converted.
pub(super) struct Reference {
    pub(super) ids: Vec<u32>,
    pub(super) vector: Vec<f32>,
}

/// Texts of the model as it was.
pub(super) fn references(files: &ModelFiles<'_>, config: &Config) -> Result<Vec<Reference>, Error> {
    let Some(json) = Json::find(files, NAME)? else {
        return Err(refuse(NAME, "is missing; convert the folder again"));
    };
    let list = json
        .value
        .get("references")
        .and_then(|list| list.as_array());
    let list = list.ok_or_else(|| refuse(NAME, "references must be a list"))?;
    let read = list.iter().enumerate().map(|(at, one)| {
        let wrong = |field: &str, rule: String| {
            refuse(NAME, &format!("references[{at}]: {field} must {rule}"))
        };
        let ids = one.get("ids").and_then(|ids| ids.as_array());
        let ids = ids.map(|ids| ids.iter().map(|id| id.as_u64()).collect::<Option<Vec<_>>>());
        let most = config.max_tokens as usize;
        let fits = |ids: &Vec<u64>| {
            (1..=most).contains(&ids.len()) && ids.iter().all(|id| *id < config.vocab.into())
        };
        let ids = ids.flatten().filter(fits);
        let ids = ids.ok_or_else(|| {
            wrong(
                "ids",
                format!("be 1 to {most} tokens below {}", config.vocab),
            )
        })?;
        let vector = one.get("vector").and_then(|vector| vector.as_array());
        let vector = vector.map(|floats| floats.iter().map(|x| x.as_f64()).collect());
        let vector: Option<Vec<f64>> = vector.flatten();
        let dimensions = config.dimensions() as usize;
        let vector = vector.filter(|vector| vector.len() == dimensions);
        let vector = vector.ok_or_else(|| wrong("vector", format!("have {dimensions} numbers")))?;
        #[expect(clippy::cast_possible_truncation, reason = "as the page keeps them")]
        Ok(Reference {
            ids: ids.into_iter().map(|id| id as u32).collect(),
            vector: vector.into_iter().map(|x| x as f32).collect(),
        })
    });
    read.collect()
}

//! What `config.json` says of how queries and keys are turned by their places.

use super::super::config::{Heads, Rotation};
use super::super::json::Value;
use super::super::positions::root;
use super::fields::Fields;
use crate::error::Error;

/// What transformers writes since its fifth version.
const PARAMETERS: &str = "rope_parameters";
const SCALING: &str = "rope_scaling";
const ALL: &str = "full_attention";
const NEAR: &str = "sliding_attention";

/// The one rotation of an encoder, whose heads have so many floats: its base is a field of this
/// name, or else `usual`.
pub(super) fn one(json: &Fields<'_>, name: &str, usual: f64, size: u32) -> Result<Rotation, Error> {
    json.only_number("rotary_emb_fraction", 1.0)?;
    json.only_number("partial_rotary_factor", 1.0)?;
    if let Some(parameters) = json.object(PARAMETERS)? {
        return rotation(&parameters, base(json, name, usual)?, size);
    }
    let plain = Rotation {
        theta: base(json, name, usual)?,
        scale: 1.0,
    };
    let scaling = json.object(SCALING)?;
    scaling.map_or(Ok(plain), |scaling| scaled(&scaling, plain, size))
}

/// Layers of two kinds: those that attend to all tokens, and those that attend to neighbors. Each
/// kind is turned at its own pace.
pub(super) struct Kinds {
    /// The fields that say the bases of turns, and the usual bases: of all, of neighbors.
    pub(super) thetas: [(&'static str, f64); 2],
    /// The fields that may say in how many layers one attends to all tokens.
    pub(super) every: &'static [&'static str],
    /// What they say usually.
    pub(super) usual_every: u32,
    /// The number of the layer that attends to all tokens, among as many layers as `every` says.
    pub(super) all_at: fn(u32) -> u32,
    /// Whether the last layer attends to all tokens whatever is said.
    pub(super) ends_with_all: bool,
    /// The field that says how many tokens a token attends to.
    pub(super) window: &'static str,
    /// What it says usually.
    pub(super) usual_window: u32,
    /// How far away a neighbor may be by the window, on both sides.
    pub(super) reach: fn(u32) -> u32,
}

impl Kinds {
    /// The rotations of layers that attend to all tokens, and of those that attend to neighbors, by
    /// their heads.
    pub(super) fn rotations(
        &self,
        json: &Fields<'_>,
        [all, near]: [Heads; 2],
    ) -> Result<[Rotation; 2], Error> {
        let parameters = json.object(PARAMETERS)?;
        let is_by_kind = |of: &Fields<'_>| [ALL, NEAR].iter().any(|kind| of.get(kind).is_some());
        if parameters.as_ref().is_some_and(|of| !is_by_kind(of)) {
            let known = "only parameters by \"full_attention\" and \"sliding_attention\" are known";
            return Err(json.unknown(PARAMETERS, known));
        }
        let one = |kind: &str, (name, usual): (&str, f64), Heads { size, .. }: Heads| {
            let plain = Rotation {
                theta: base(json, name, usual)?,
                scale: 1.0,
            };
            match &parameters {
                Some(parameters) => match parameters.object(kind)? {
                    Some(own) => rotation(&own, plain.theta, size),
                    None => Ok(plain),
                },
                None if kind == ALL => match json.object(SCALING)? {
                    Some(scaling) => scaled(&scaling, plain, size),
                    None => Ok(plain),
                },
                None => Ok(plain),
            }
        };
        Ok([
            one(ALL, self.thetas[0], all)?,
            one(NEAR, self.thetas[1], near)?,
        ])
    }

    /// Whether each layer attends to neighbors.
    pub(super) fn near(&self, json: &Fields<'_>, layers: u32) -> Result<Vec<bool>, Error> {
        let mut near = self.said(json, layers)?;
        if self.ends_with_all
            && let Some(last) = near.last_mut()
        {
            *last = false;
        }
        Ok(near)
    }

    fn said(&self, json: &Fields<'_>, layers: u32) -> Result<Vec<bool>, Error> {
        const TYPES: &str = "layer_types";
        match json.get(TYPES) {
            None => {
                let mut names = self.every.iter();
                let name = names.find(|name| json.get(name).is_some());
                let name = name.unwrap_or(&self.every[0]);
                let every = json.whole(name, 1..=u32::MAX, Some(self.usual_every))?;
                let all = (self.all_at)(every) % every;
                Ok((0..layers).map(|layer| layer % every != all).collect())
            }
            Some(Value::List(kinds)) if kinds.len() == layers as usize => {
                let is_near = |kind: &Value| match kind.as_text() {
                    Some(ALL) => Ok(false),
                    Some(NEAR) => Ok(true),
                    _ => Err(json.unknown(
                        TYPES,
                        "only \"full_attention\" and \"sliding_attention\" are known",
                    )),
                };
                kinds.iter().map(is_near).collect()
            }
            value => Err(json.wrong(TYPES, value, "must have an entry for each layer")),
        }
    }

    /// How far away a neighbor may be: by the window on both sides, or, in front of a token that attends
    /// to none behind it, the whole window with the token in it.
    pub(super) fn reach(&self, json: &Fields<'_>, heads: Heads) -> Result<u32, Error> {
        let least = u32::from(heads.is_causal);
        let window = json.whole(self.window, least..=u32::MAX, Some(self.usual_window))?;
        Ok(match heads.is_causal {
            true => window - 1,
            false => (self.reach)(window),
        })
    }
}

/// The rotation of an object as transformers writes it.
fn rotation(fields: &Fields<'_>, usual: f64, size: u32) -> Result<Rotation, Error> {
    let plain = Rotation {
        theta: base(fields, "rope_theta", usual)?,
        scale: 1.0,
    };
    fields.only_number("partial_rotary_factor", 1.0)?;
    scaled(fields, plain, size)
}

/// A rotation for texts that are longer than those that a model was first trained with: a slower one
/// (Chen and others, Extending Context Window by Positional Interpolation, 2023), or the fixed one
/// of "NTK" (Su, https://kexue.fm/archives/9706, formula 6).
fn scaled(fields: &Fields<'_>, plain: Rotation, size: u32) -> Result<Rotation, Error> {
    let mut kinds = ["type", "rope_type"].into_iter();
    let Some(kind) = kinds.find(|name| fields.get(name).is_some()) else {
        return Ok(plain);
    };
    match fields.text(kind)? {
        Some("default") => return Ok(plain),
        Some("linear") => {}
        Some("ntk") if fields.get("mixed_b").is_none() => {}
        _ => {
            let known = "only \"default\", \"linear\" and \"ntk\" are known";
            return Err(fields.unknown(kind, known));
        }
    }
    let factor = fields.number("factor", 1.0)?;
    if !(1.0..=1e6).contains(&factor) {
        return Err(fields.wrong("factor", fields.get("factor"), "must be 1 to 10^6"));
    }
    if fields.text(kind)? == Some("linear") {
        let scale = 1.0 / factor;
        return Ok(Rotation { scale, ..plain });
    }
    Ok(Rotation {
        theta: plain.theta * factor,
        scale: root(1.0 / factor, (size / 2).max(1)),
    })
}

/// A base of turns.
fn base(fields: &Fields<'_>, name: &str, usual: f64) -> Result<f64, Error> {
    let base = fields.number(name, usual)?;
    match (1.0..=1e12).contains(&base) {
        true => Ok(base),
        false => Err(fields.wrong(name, fields.get(name), "must be 1 to 10^12")),
    }
}

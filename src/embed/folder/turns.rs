//! What `config.json` says of how queries and keys are turned by their places.

use super::super::config::{Near, Rotation};
use super::super::json::Value;
use super::super::positions::root;
use super::fields::Fields;
use crate::error::Error;

/// What transformers writes since its fifth version.
const PARAMETERS: &str = "rope_parameters";
const ALL: &str = "full_attention";
const NEAR: &str = "sliding_attention";

/// The one rotation of an encoder, whose heads have so many floats: its base is a field of this
/// name, or else `usual`.
pub(super) fn one(json: &Fields<'_>, name: &str, usual: f64, size: u32) -> Result<Rotation, Error> {
    json.only_number("rotary_emb_fraction", 1.0)?;
    json.only_number("partial_rotary_factor", 1.0)?;
    if let Some(parameters) = json.object(PARAMETERS)? {
        return rotation(&parameters, usual, size);
    }
    let plain = Rotation {
        theta: base(json, name, usual)?,
        scale: 1.0,
    };
    let scaling = json.object("rope_scaling")?;
    scaling.map_or(Ok(plain), |scaling| scaled(&scaling, plain, size))
}

/// The rotations of layers that attend to all tokens, and of those that attend to neighbors.
pub(super) fn two(json: &Fields<'_>, size: u32) -> Result<[Rotation; 2], Error> {
    let parameters = json.object(PARAMETERS)?;
    let one = |kind: &str, name: &str, usual: f64| {
        let usual = base(json, name, usual)?;
        let own = match &parameters {
            None => None,
            Some(parameters) => parameters.object(kind)?,
        };
        let plain = Rotation {
            theta: usual,
            scale: 1.0,
        };
        own.map_or(Ok(plain), |own| rotation(&own, usual, size))
    };
    Ok([
        one(ALL, "global_rope_theta", 160_000.0)?,
        one(NEAR, "local_rope_theta", 10_000.0)?,
    ])
}

/// Which layers attend to neighbors, and how far away these are.
pub(super) fn neighbors(json: &Fields<'_>, rotation: Rotation, layers: u32) -> Result<Near, Error> {
    const TYPES: &str = "layer_types";
    let near = match json.get(TYPES) {
        None => {
            let every = json.whole("global_attn_every_n_layers", 1..=u32::MAX, Some(3))?;
            (0..layers).map(|layer| layer % every != 0).collect()
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
            kinds.iter().map(is_near).collect::<Result<_, _>>()?
        }
        value => return Err(json.wrong(TYPES, value, "must have an entry for each layer")),
    };
    // The tokens on both sides together.
    let window = json.whole("local_attention", 0..=u32::MAX, Some(128))?;
    Ok(Near {
        reach: window / 2,
        layers: near,
        rotation,
    })
}

/// The rotation of an object as transformers writes it.
fn rotation(fields: &Fields<'_>, usual: f64, size: u32) -> Result<Rotation, Error> {
    let plain = Rotation {
        theta: base(fields, "rope_theta", usual)?,
        scale: 1.0,
    };
    match fields.text("rope_type")? {
        None | Some("default") => Ok(plain),
        Some(_) => scaled(fields, plain, size),
    }
}

/// A rotation for texts that are longer than those that a model was first trained with: the fixed
/// one of "NTK" (Su, https://kexue.fm/archives/9706, formula 6).
fn scaled(fields: &Fields<'_>, plain: Rotation, size: u32) -> Result<Rotation, Error> {
    let mut kinds = ["type", "rope_type"].into_iter();
    let Some(kind) = kinds.find(|name| fields.get(name).is_some()) else {
        return Ok(plain);
    };
    match fields.text(kind)? {
        Some("default") => return Ok(plain),
        Some("ntk") if fields.get("mixed_b").is_none() => {}
        _ => return Err(fields.unknown(kind, "only \"default\" and \"ntk\" are known")),
    }
    let factor = fields.number("factor", 1.0)?;
    if !(1.0..=1e6).contains(&factor) {
        return Err(fields.wrong("factor", fields.get("factor"), "must be 1 to 10^6"));
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

//! What `config.json` says of the heads of an attention.

use super::super::config::{HeadNorms, Heads};
use super::architectures::{Names, Share};
use super::fields::Fields;
use crate::error::Error;
use crate::graph::chain::MAX_HEAD;

const SIZE: &str = "head_dim";
const OF_KEYS: &str = "num_key_value_heads";
const BY_LAYER: &str = "per_layer_config";
/// What says that tokens attend to those behind them, too: a field of Gemma's, and one of all decoders.
pub(super) const BOTH_WAYS: &str = "use_bidirectional_attention";
pub(super) const CAUSAL: &str = "is_causal";

/// What the sizes of heads depend on.
pub(super) struct Sizes<'a> {
    /// Floats of a token's vector.
    pub(super) hidden: u32,
    /// Whether each layer attends to neighbors.
    pub(super) near: &'a [bool],
}

/// The heads of all layers.
pub(super) struct All {
    /// The heads of layers that attend to all tokens, and of layers that attend to neighbors.
    pub(super) by_sight: [Heads; 2],
    /// What products of queries and keys are multiplied by, if anything says so.
    pub(super) score_scale: Option<f32>,
}

/// The heads of an architecture that shares them so.
pub(super) fn heads(
    json: &Fields<'_>,
    share: Share,
    names: &Names,
    sizes: Sizes<'_>,
) -> Result<All, Error> {
    let most = match share {
        Share::Even => sizes.hidden,
        Share::Own(_) | Share::ByLayer => 1 << 10,
    };
    let count = json.whole(names.heads, 1..=most, None)?;
    match share {
        Share::Even => {
            let heads = even(json, names, count, sizes.hidden)?;
            Ok(All {
                by_sight: [heads; 2],
                score_scale: None,
            })
        }
        Share::Own(usual) => {
            let heads = own(json, [SIZE, OF_KEYS], count, [usual, count])?;
            let scaled = json.number("query_pre_attn_scalar", f64::from(heads.size))?;
            let is_causal = !json.flag(BOTH_WAYS)?.unwrap_or(false);
            let heads = Heads {
                norms: HeadNorms::QueriesAndKeys,
                is_causal: is_causal && json.flag(CAUSAL)?.unwrap_or(true),
                ..heads
            };
            Ok(All {
                by_sight: [heads; 2],
                #[expect(clippy::cast_possible_truncation, reason = "a factor in 32 bits")]
                score_scale: Some((1.0 / scaled.sqrt()) as f32),
            })
        }
        Share::ByLayer => Ok(All {
            by_sight: by_layer(json, count, sizes.near)?.map(|heads| Heads {
                norms: HeadNorms::All,
                ..heads
            }),
            score_scale: Some(1.0),
        }),
    }
}

/// Heads that share the floats of a token evenly.
fn even(json: &Fields<'_>, names: &Names, count: u32, hidden: u32) -> Result<Heads, Error> {
    if hidden.is_multiple_of(count) && hidden / count <= MAX_HEAD {
        return Ok(Heads::even(count, hidden));
    }
    let (size, floats) = (hidden.to_string(), MAX_HEAD.to_string());
    let rule = [
        "must divide ",
        names.hidden,
        " ",
        &size,
        " into heads of at most ",
        &floats,
        " floats",
    ];
    Err(json.wrong(names.heads, json.get(names.heads), &rule.concat()))
}

/// Heads of sizes of their own, by the fields of these names, or else these usual ones: the floats of
/// a head, and how many heads of keys there are.
fn own(
    json: &Fields<'_>,
    [size, of_keys]: [&str; 2],
    count: u32,
    [usual_size, usual_of_keys]: [u32; 2],
) -> Result<Heads, Error> {
    let given = json.whole(of_keys, 1..=count, Some(usual_of_keys.min(count)))?;
    if !count.is_multiple_of(given) {
        let rule = ["must divide num_attention_heads ", &count.to_string()];
        return Err(json.wrong(of_keys, json.get(of_keys), &rule.concat()));
    }
    let size = json.whole(size, 1..=MAX_HEAD, Some(usual_size))?;
    Ok(Heads {
        of_keys: given,
        ..Heads::even(count, count * size)
    })
}

/// Heads of which an object says the sizes in some layers: of those that attend to all tokens, and of
/// those that attend to neighbors.
fn by_layer(json: &Fields<'_>, count: u32, near: &[bool]) -> Result<[Heads; 2], Error> {
    let usual = own(json, [SIZE, OF_KEYS], count, [256, 2])?;
    let Some(sizes) = json.object(BY_LAYER)? else {
        let names = ["global_head_dim", "num_global_key_value_heads"];
        return Ok([own(json, names, count, [512, 1])?, usual]);
    };
    let mut found = [None; 2];
    for (layer, is_near) in near.iter().enumerate() {
        // Numbers are as long as the longest one, with zeros in front.
        let mut names = sizes.names();
        let name = names.find(|name| name.parse() == Ok(layer));
        let heads = match name.map(|name| sizes.object(name)).transpose()?.flatten() {
            Some(layer) => own(&layer, [SIZE, OF_KEYS], count, [usual.size, usual.of_keys])?,
            None => usual,
        };
        let known = &mut found[usize::from(*is_near)];
        if known.is_some_and(|known| known != heads) {
            let known = "only one size for all layers that attend to the same tokens is known";
            return Err(json.unknown(BY_LAYER, known));
        }
        *known = Some(heads);
    }
    Ok(found.map(|heads| heads.unwrap_or(usual)))
}

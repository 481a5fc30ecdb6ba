//! Attention as an operation of the command builder.

use super::{Batch, Value};
use crate::error::Error;
use crate::graph::chain::Heads;

/// The settings of [`Batch::attention`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attention {
    /// How many heads share a row. All have the same number of the row's floats, 1 to 512.
    pub heads: u32,
    /// The factor of all products of queries and keys; `None` is one over the square root of a
    /// head's floats.
    pub scale: Option<f32>,
    /// Whether a query attends to no keys behind its own. The last query's own key is the last
    /// key, the query before has the key before, and so on.
    pub is_causal: bool,
    /// How far from its own key a query attends to keys, on both sides; `Some(0)` is its own alone,
    /// and `None` however far.
    pub window: Option<u32>,
}

/// The farthest that a window reaches: no tensor has so many keys.
const MAX_WINDOW: u32 = 1 << 30;

impl Attention {
    /// Heads that attend to all keys, with the usual scale.
    pub const fn heads(heads: u32) -> Attention {
        Attention {
            heads,
            scale: None,
            is_causal: false,
            window: None,
        }
    }
}

impl<G> Batch<'_, G> {
    /// Attention of `heads` heads: softmax(q·kᵀ · scale)·v, each head with its own
    /// floats of every row. `q` is `[.., m, heads · size]`, `k` and `v` are
    /// `[.., n, heads · size]`, the result is like `q`; axes in front broadcast.
    /// Keys and values may have fewer heads, a number that divides that of the
    /// queries: neighboring heads of queries share one (Ainslie and others, GQA,
    /// 2023).
    ///
    /// Scores are never in memory (FlashAttention, Dao and others, 2022), and
    /// batches of other numbers of rows are computed in the same passes. How exact it is,
    /// [`kernel::generated`](crate::kernel::generated) says.
    ///
    /// ```
    /// # use framebatch::{Attention, Blocking, Config, EngineChoice};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// # let mut batch = gpu.batch();
    /// let queries = batch.upload_shaped(&[0.0; 8], &[2, 4])?; // 2 rows, 2 heads of 2.
    /// let keys = batch.upload_shaped(&[1.0; 12], &[3, 4])?;
    /// let values = batch.upload_shaped(&[5.0; 12], &[3, 4])?;
    /// let seen = batch.attention(queries, keys, values, Attention::heads(2))?;
    /// batch.execute()?;
    /// assert_eq!(batch.read(seen)?, [5.0; 8]); // Equal weights, of equal values.
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Batch::relu`], and for shapes that do not agree in their last
    /// dimension or in the rows of `k` and `v`, for rows that are not so many
    /// heads, for no keys, and for more queries than keys where it is causal or has a window.
    pub fn attention(
        &mut self,
        q: Value,
        k: Value,
        v: Value,
        attention: Attention,
    ) -> Result<Value, Error> {
        let name = "attention";
        let operands = self.operands(name, [q, k, v])?;
        let width = self.shape(q)?.last().copied().unwrap_or_default();
        let size = width.checked_div(attention.heads).unwrap_or_default();
        #[expect(clippy::cast_precision_loss, reason = "at most 512")]
        let usual = 1.0 / (size as f32).sqrt();
        let heads = Heads {
            count: attention.heads,
            is_causal: attention.is_causal,
            window: attention.window.map(|window| window.min(MAX_WINDOW)),
        };
        let scale = self.constant(attention.scale.unwrap_or(usual))?;
        let node = self.chain.attention(heads, operands, scale)?;
        Ok(self.operation(node, &operands))
    }
}

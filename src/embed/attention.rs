//! The attention of a layer: products around it, norms of heads, and turned queries and keys.

use super::config::{HeadNorms, Heads, Sight};
use super::pass::{END, Pass, refuse};
use crate::error::Error;
use crate::graph::chain;
use crate::graph::shape::Shape;
use crate::graph::{BinaryFn, NodeId};

impl Pass<'_> {
    /// What the tokens of a layer see of each other.
    pub(super) fn attend(&mut self, x: NodeId, sight: Sight) -> Result<NodeId, Error> {
        let (biases, heads) = (self.config.biases.attention, self.config.heads(sight));
        let mut projected = self.linear(x, biases)?;
        let mut turned = projected;
        if heads.norms != HeadNorms::Absent {
            turned = self.norm_heads(projected, heads)?;
        }
        if heads.norms == HeadNorms::All {
            projected = turned;
        }
        if let Some(angles) = self.shared.angles[sight as usize] {
            turned = self.turn(turned, heads, angles)?;
        }
        let mut part = |of: NodeId, from: u32, to: u32| {
            let columns = ((from * heads.size) as i32, (to * heads.size) as i32, 1);
            self.chain.slice(of, &[(0, END, 1), columns])
        };
        let parts = [
            part(turned, 0, heads.count)?,
            part(turned, heads.count, heads.turned())?,
            part(projected, heads.turned(), heads.all())?,
        ];
        let heads = chain::Heads {
            count: heads.count,
            is_causal: heads.is_causal,
            window: self.config.window(sight),
        };
        let bias = self.shared.bias.filter(|_| sight == Sight::All);
        let seen = match bias {
            None => self.chain.attention(heads, parts, self.scale)?,
            Some(bias) => (self.chain).biased_attention(heads, parts, self.scale, bias)?,
        };
        self.linear(seen, biases)
    }

    /// Norms heads, which lie side by side, each by itself.
    fn norm_heads(&mut self, x: NodeId, heads: Heads) -> Result<NodeId, Error> {
        let weight = self.weight()?;
        let (size, count) = (heads.size, heads.normed());
        let x = self.by_heads(x, &[size])?;
        let x = (self.chain).slice(x, &[(0, END, 1), (0, count as i32, 1)])?;
        let x = self.normed(x)?;
        let x = self.chain.binary(BinaryFn::Mul, x, weight)?;
        let tokens = self.chain.node(x).shape.dims()[0];
        self.chain.reshape(x, Shape::new(&[tokens, count * size])?)
    }

    /// Rows of heads as rows of these dimensions for each head.
    fn by_heads(&mut self, x: NodeId, head: &[u32]) -> Result<NodeId, Error> {
        let [tokens, width] = *self.chain.node(x).shape.dims() else {
            return Err(refuse("heads lie side by side in rows"));
        };
        let heads = [tokens, width / head.iter().product::<u32>()];
        let shape = Shape::new(&[&heads, head].concat())?;
        self.chain.reshape(x, shape)
    }

    /// Turns queries and keys, which lie side by side, by the angles of their places.
    fn turn(
        &mut self,
        x: NodeId,
        heads: Heads,
        [cosine, sine]: [NodeId; 2],
    ) -> Result<NodeId, Error> {
        let (size, turned) = (heads.size, heads.turned());
        let x = self.by_heads(x, &[2, size / 2])?;
        let chain = &mut self.chain;
        let tokens = chain.node(x).shape.dims()[0];
        let mut half = |at: i32| {
            let parts = [(0, END, 1), (0, turned as i32, 1), (at, at + 1, 1)];
            chain.slice(x, &parts)
        };
        let (a, b) = (half(0)?, half(1)?);
        let mut times = |x, y| chain.binary(BinaryFn::Mul, x, y);
        let first = [times(a, cosine)?, times(b, sine)?];
        let second = [times(b, cosine)?, times(a, sine)?];
        let first = chain.binary(BinaryFn::Sub, first[0], first[1])?;
        let second = chain.binary(BinaryFn::Add, second[0], second[1])?;
        let rows = chain.concat(&[first, second], 2)?;
        chain.reshape(rows, Shape::new(&[tokens, turned * size])?)
    }
}

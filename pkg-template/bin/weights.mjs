// The weights of a model, written anew with matrices in blocks.
//
// Which matrix is packed how is the caller's matter, and so is what it costs.

import { open } from "node:fs/promises";
import { WIDEN } from "./floats.mjs";
import * as int4 from "./int4.mjs";
import * as int8 from "./int8.mjs";
import { headOf } from "./safetensors.mjs";

export const WEIGHTS = "model.safetensors";

/** How matrices can be kept. */
export const DTYPES = { int8, int4 };

/**
 * Writes the tensors of a source to a file, one by one; the bytes of the file. `dtypeOf` is given
 * the name of each matrix, its layer, if it is of one, and whether it is the largest of all.
 */
export async function convertWeights({ tensors }, to, dtypeOf) {
  const matrices = tensors.filter(isMatrix);
  const [largest] = matrices.toSorted((a, b) => elementsOf(b) - elementsOf(a));
  const plans = tensors.map((tensor) => {
    if (!isMatrix(tensor)) return { ...tensor, convert: tensor.read };
    const { name } = tensor;
    const isLargest = tensor === largest;
    return inBlocks(tensor, dtypeOf({ name, layer: layerOf(name), isLargest }));
  });
  const head = headOf(plans);
  const out = await open(to, "w");
  try {
    await out.write(head);
    for (const { name, convert } of plans) {
      try {
        await out.write(await convert());
      } catch (cause) {
        throw new Error(`tensor '${name}': ${cause.message}`, { cause });
      }
    }
  } finally {
    await out.close();
  }
  return plans.reduce((sum, { bytes }) => sum + bytes, head.length);
}

/** How many layers weights have. */
export const layersOf = ({ tensors }) =>
  Math.max(0, ...tensors.map((tensor) => (layerOf(tensor.name) ?? -1) + 1));

/** The number in a name, as in `encoder.layer.5.output.dense.weight`; undefined without one. */
function layerOf(name) {
  const [, layer] = /(?:^|\.)(\d+)\./.exec(name) ?? [];
  return layer === undefined ? undefined : Number(layer);
}

const elementsOf = ({ shape }) => shape.reduce((count, dim) => count * dim, 1);

/** Whether a tensor can be written in blocks. */
function isMatrix(tensor) {
  const { name, dtype, shape } = tensor;
  return (
    shape.length === 2 &&
    /\.weight$/.test(name) &&
    // A bias for each distance, which encoders keep in 32 bits.
    !/relative_attention_bias/.test(name) &&
    dtype in WIDEN &&
    // What would leave a block open may be followed by another part of the same matrix.
    elementsOf(tensor) % int8.BLOCK === 0
  );
}

/** How a matrix is written: as the source has it in these blocks already, or packed. */
function inBlocks(tensor, dtype) {
  const { name, read } = tensor;
  const { BLOCK_BYTES, pack } = DTYPES[dtype];
  const blocks = elementsOf(tensor) / int8.BLOCK;
  return {
    ...{ name, dtype: "U8", shape: [blocks, BLOCK_BYTES] },
    bytes: blocks * BLOCK_BYTES,
    convert: async () =>
      tensor[dtype]?.() ?? pack(WIDEN[tensor.dtype](await read())),
  };
}

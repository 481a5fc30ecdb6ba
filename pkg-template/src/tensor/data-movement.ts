// Records the operations that move elements: transpose, slice, reshape, gather, concat.
//
// Each takes nodes and gives a node, or throws a sentence that names the op and the
// shapes. The rules are those of `src/graph/chain/moved_shapes.rs` and `record.rs`.

import { invalid, kindOf } from "../checks/errors.js";
import { CODE, FLOATS, INDEXES, MAX_ELEMENTS, MAX_OPERANDS } from "./codes.js";
import { type Node, operation } from "./node.js";
import { axisOf, isSame, mismatch, shapeOf, text } from "./shape.js";

/**
 * A part of an axis by Python's rules: start, end (left out) and step. Negative
 * places count from the end, what lies outside is cut off, and what is left out goes
 * as far as the axis does.
 */
export type SliceRange = readonly [
  start?: number | undefined,
  end?: number | undefined,
  step?: number | undefined,
];

/** Axes in another order; reversed unless it is given. */
export function transpose(x: Node, order: readonly number[] | undefined): Node {
  const { dims } = x.shape;
  const axes =
    order === undefined
      ? dims.map((_, axis) => dims.length - 1 - axis)
      : listOf("transpose", "order", order).map((axis) =>
          axisOf("transpose", x.shape, axis),
        );
  if (axes.length !== dims.length || new Set(axes).size !== dims.length) {
    throw invalid(
      "transpose",
      `the order must name each axis of shape ${text(dims)} once, got ${text(order!)}`,
    );
  }
  const shape = shapeOf(
    "transpose",
    axes.map((axis) => dims[axis]),
  );
  return operation(CODE.transpose, [x], axes, shape, x.dtype);
}

/** A part of each axis; axes without a range stay whole. */
export function slice(
  x: Node,
  ranges: readonly (SliceRange | undefined)[],
): Node {
  const { dims } = x.shape;
  if (ranges.length > dims.length) {
    throw invalid(
      "slice",
      `${ranges.length} ranges are more than shape ${text(dims)} has axes`,
    );
  }
  const attributes: number[] = [];
  const kept = dims.map((dim, axis) => {
    const { start, step, count } = sliceIndices(ranges[axis] ?? [], dim);
    attributes.push(start, step, count);
    return count;
  });
  const shape = shapeOf("slice", kept);
  return operation(CODE.slice, [x], attributes, shape, x.dtype);
}

/** The same elements in another shape; one dimension may be -1, which is what is left. */
export function reshape(x: Node, dims: readonly number[]): Node {
  const wanted = [...listOf("reshape", "the shape", dims)];
  const open = wanted.indexOf(-1);
  const { count } = x.shape;
  if (open >= 0) {
    const others = wanted.reduce(
      (product, dim, i) => (i === open ? product : product * dim),
      1,
    );
    // A count that does not divide evenly is refused.
    const rest = count / others;
    if (Number.isInteger(rest)) wanted[open] = rest;
    else {
      throw invalid(
        "reshape",
        `shape ${text(x.shape.dims)} does not divide into ${text(dims)}`,
      );
    }
  }
  const shape = shapeOf("reshape", wanted);
  if (shape.count !== count) {
    throw mismatch(
      "reshape",
      x.shape,
      shape,
      "hold different numbers of elements",
    );
  }
  return operation(CODE.reshape, [x], shape.dims, shape, x.dtype);
}

/** The elements along an axis at the places that `indexes` holds. */
export function gather(x: Node, indexes: Node, axis: number): Node {
  if (indexes.dtype === FLOATS) {
    throw invalid(
      "gather",
      "the indexes must be whole numbers, as argmax gives; give a Uint32Array, or a tensor of one",
    );
  }
  const { dims } = x.shape;
  const along = axisOf("gather", x.shape, axis);
  const largest = indexes.storage?.largest;
  if (largest !== undefined && largest >= dims[along]) {
    throw invalid(
      "gather",
      `index ${indexes.dtype === INDEXES ? largest : largest | 0} is outside of axis ${along} of shape ${text(dims)}`,
    );
  }
  const shape = shapeOf("gather", [
    ...dims.slice(0, along),
    ...indexes.shape.dims,
    ...dims.slice(along + 1),
  ]);
  return operation(CODE.gather, [x, indexes], [along], shape, x.dtype);
}

/** Tensors laid end to end along an axis. */
export function concat(parts: readonly Node[], axis: number): Node {
  const [{ shape: first, dtype }] = parts;
  const along = axisOf("concat", first, axis);
  if (parts.length > MAX_OPERANDS) {
    throw invalid(
      "concat",
      `it takes at most ${MAX_OPERANDS} tensors, not ${parts.length}; join some of them first`,
    );
  }
  let sum = 0;
  for (const { shape, dtype: other } of parts) {
    if (other !== dtype) {
      throw invalid("concat", "operands must hold elements of one type");
    }
    const dims = [...shape.dims];
    sum += dims[along];
    dims[along] = first.dims[along];
    if (!isSame(dims, first.dims)) {
      throw mismatch("concat", first, shape, "differ outside of the axis");
    }
  }
  const dims = [...first.dims];
  dims[along] = sum;
  return operation(CODE.concat, parts, [along], shapeOf("concat", dims), dtype);
}

/** Start, step and count of a range, as of Python's `slice.indices`. */
function sliceIndices(
  range: SliceRange,
  dim: number,
): { start: number; step: number; count: number } {
  if (!Array.isArray(range)) {
    throw invalid(
      "slice",
      `a range must be an array of start, end and step, got ${kindOf(range)}`,
    );
  }
  const [from, to, given = 1] = range as SliceRange;
  for (const place of [from, to, given]) {
    if (place === undefined || Number.isSafeInteger(place)) continue;
    throw invalid(
      "slice",
      `start, end and step must be whole numbers, got ${String(place)}`,
    );
  }
  if (given === 0) throw invalid("slice", "a step must not be 0");
  // A step beyond the longest axis means the same as one of its length, and fits the core's numbers.
  const step = Math.max(-MAX_ELEMENTS, Math.min(given, MAX_ELEMENTS));
  // With a negative step, the bounds are -1 and dim - 1.
  const [low, high] = step > 0 ? [0, dim] : [-1, dim - 1];
  const place = (place: number) =>
    Math.max(low, Math.min(place < 0 ? place + dim : place, high));
  const start = from === undefined ? (step > 0 ? low : high) : place(from);
  const end = to === undefined ? (step > 0 ? high : low) : place(to);
  const count = Math.max(0, Math.ceil((end - start) / step));
  return count === 0 ? { start: 0, step: 1, count } : { start, step, count };
}

function listOf(
  op: string,
  name: string,
  value: readonly number[],
): readonly number[] {
  if (Array.isArray(value)) return value;
  throw invalid(
    op,
    `${name} must be an array of numbers, got ${kindOf(value)}`,
  );
}

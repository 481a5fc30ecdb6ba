// What shape each operation gives, and what it refuses, by the table that the native
// tests read too (`tests/chains/shapes.rs`).

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { manual } from "./face.mjs";

const { gpu } = await manual();
const TABLE = JSON.parse(
  readFileSync(
    new URL("../../tests/data/shapes.json", import.meta.url),
    "utf8",
  ),
);

const REDUCTIONS = ["sum", "mean", "max", "min", "argmax"];
const NORMS = ["softmax", "layerNorm", "rmsNorm", "normalize"];

/** A tensor of these dimensions; one of places holds the first of an axis. */
function tensorOf(dims, isIndexes) {
  const count = dims.reduce((product, dim) => product * dim, 1);
  const Kind = isIndexes ? Uint32Array : Float32Array;
  return gpu.tensor(new Kind(count <= 2 ** 20 ? count : 0), dims);
}

/** What the row's operation gives, recorded by the methods of tensors. */
function record(row) {
  const { op, dims, axes, keep, ranges, heads, causal, window } = row;
  if (op === "tensor") return tensorOf(dims, false);
  const [x, ...others] = row.of.map((dims, i) =>
    tensorOf(dims, i === row.indexes),
  );
  const [axis] = axes ?? [];
  if (REDUCTIONS.includes(op)) {
    return x[op]({ axis: axes, keepDims: keep });
  }
  if (NORMS.includes(op)) return x[op]({ axis });
  switch (op) {
    case "where":
      return gpu.where(x, ...others);
    case "attention":
      return x.attention(...others, { heads, causal, window });
    case "transpose":
      return x.transpose(axes);
    case "slice":
      return x.slice(
        ...ranges.map((range) => range.map((place) => place ?? undefined)),
      );
    case "reshape":
      return x.reshape(dims);
    case "gather":
      return x.gather(...others, axis);
    case "concat":
      return x.concat(others, axis);
    default:
      return x[op](...others);
  }
}

for (const row of TABLE) {
  test(`shapes: ${JSON.stringify(row)}`, () => {
    if (row.refused === undefined) {
      assert.deepEqual(record(row).shape, row.gives);
      return;
    }
    assert.throws(
      () => record(row),
      ({ code, message }) => {
        assert.equal(code, "invalid-input");
        assert.ok(message.includes(row.refused), message);
        return true;
      },
    );
  });
}

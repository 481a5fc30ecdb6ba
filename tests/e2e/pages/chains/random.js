// Random graphs through the public face, each beside what it should give.
//
// A graph is made of a seed: the same one with other rows or other data asks for the
// same operations, so that both can be computed together.

import { random } from "/workload.js";
import { exact, float } from "./bounds.js";
import * as oracle from "./oracle.js";

const UNARY = [
  ...["relu", "sigmoid", "tanh", "silu", "gelu", "geluTanh"],
  ...["exp", "log", "sqrt", "abs", "neg"],
  ...["sin", "cos", "floor", "ceil", "round", "sign"],
];
const BINARY = [
  ...["add", "sub", "mul", "div", "minimum", "maximum", "pow"],
  ...["mod", "atan2"],
  ...["less", "lessEqual", "greater", "greaterEqual", "equal", "notEqual"],
];
const REDUCTIONS = ["sum", "mean", "max", "min", "argmax"];
const NORMS = ["softmax", "layerNorm", "rmsNorm", "normalize"];
const COLUMNS = [5, 8, 1, 3, 33, 40];
const RANGES = [
  [0, undefined, 1],
  [1, undefined, 2],
  [undefined, undefined, -1],
  [0, -1, 1],
];

/** Elements that a value may have; more are not used any further. */
const MOST = 4000;

/** Tensors on the device that graphs share: a row and a square of each width. */
export async function share(gpu) {
  const shared = new Map();
  for (const columns of COLUMNS) {
    const row = floats([columns], random(columns));
    const square = floats([columns, columns], random(columns + 100));
    const tensors = [gpu.tensor(row), gpu.tensor(square, [columns, columns])];
    const values = [
      oracle.tensor([columns], row),
      oracle.tensor([columns, columns], square),
    ];
    shared.set(columns, { tensors, values });
    // Short data stays there from its second use on.
    const read = gpu.readAll(tensors.map((tensor) => tensor.neg()));
    gpu.flush();
    await read;
  }
  return shared;
}

/** Floats between -2 and 2. */
function floats(dims, next) {
  const length = dims.reduce((product, dim) => product * dim, 1);
  return Float32Array.from({ length }, () => next() * 4 - 2);
}

/**
 * The results that a seed stands for: tensors to read, and what they should hold if
 * `isHeld`. `rows` is the first dimension of most inputs.
 */
export function graph(gpu, shared, { seed, rows, data, isHeld }) {
  const maker = new Maker(gpu, isHeld, random(seed), random(data), shared);
  const columns = maker.pick(COLUMNS);
  const shapes = [
    ...[[rows, columns], [columns], [rows, 1], [2, rows, columns]],
    ...[[], [columns, rows], [1, columns]],
  ];
  const inputs = 2 + maker.below(3);
  for (let i = 0; i < inputs; i++) maker.input(maker.pick(shapes));
  const { tensors, values } = shared.get(columns);
  maker.keep(tensors[0], () => values[0]);
  const steps = 1 + maker.below(14);
  for (let i = 0; i < steps; i++) maker.step();
  return maker.values.slice(-1 - maker.below(3));
}

class Maker {
  values = [];

  constructor(gpu, isHeld, next, data, shared) {
    Object.assign(this, { gpu, isHeld, next, data, shared });
  }

  below(limit) {
    return Math.floor(this.next() * limit);
  }

  pick(items) {
    return items[this.below(items.length)];
  }

  input(dims) {
    const data = floats(dims, this.data);
    this.keep(this.gpu.tensor(data, dims), () => oracle.tensor(dims, data));
  }

  keep(tensor, expect) {
    const expected = this.isHeld ? expect() : undefined;
    this.values.push({ tensor, expected });
    return expected;
  }

  /** Later values more often, so that chains grow long. */
  operand() {
    const usable = this.values.filter(
      ({ tensor: { shape, dtype } }) =>
        dtype === "float32" &&
        shape.reduce((product, dim) => product * dim, 1) <= MOST,
    );
    return this.below(3) === 0
      ? this.pick(usable)
      : this.pick(usable.slice(-5));
  }

  /** Records one operation; the package and the oracle must agree on whether it fits. */
  step() {
    const { ask, expect, what } = this.operation();
    let tensor;
    let refusal;
    try {
      tensor = ask();
    } catch (error) {
      if (error?.code !== "invalid-input") throw error;
      refusal = error;
    }
    if (tensor !== undefined) {
      const expected = this.keep(tensor, expect);
      if (this.isHeld && String(expected?.dims) !== String(tensor.shape)) {
        throw new Error(
          `${what}: shape ${tensor.shape} instead of ${expected?.dims}`,
        );
      }
    } else if (this.isHeld && expect() !== undefined) {
      throw new Error(`${what} was refused: ${refusal.message}`);
    }
  }

  operation() {
    const a = this.operand();
    const { tensor: x, expected: q } = a;
    const rank = x.shape.length;
    const axis = this.below(rank);
    switch (this.below(24)) {
      case 0:
      case 1:
      case 2:
        return this.unary(a);
      case 3:
      case 4:
      case 5:
      case 6:
        return this.binary(a);
      case 7:
      case 8:
        return this.reduce(a, axis);
      case 9:
      case 10:
        return this.norm(a, axis);
      case 11: {
        const turn = this.below(rank);
        const order = x.shape.map((_, i) => (i + turn) % rank);
        return {
          what: "transpose",
          ask: () => x.transpose(order),
          expect: () => oracle.transpose(q, order),
        };
      }
      case 12: {
        const ranges = x.shape.map(() => this.pick(RANGES));
        return {
          what: "slice",
          ask: () => x.slice(...ranges),
          expect: () => oracle.slice(q, ranges),
        };
      }
      case 13:
        return this.reshape(a);
      case 14:
        return this.gather(a, axis);
      case 15:
        return this.clamp(a);
      case 16: {
        const { tensor: y, expected: other } = this.operand();
        return {
          what: "dot",
          ask: () => x.dot(y),
          expect: () => oracle.dot(q, other),
        };
      }
      case 17:
        return this.matmul(a);
      case 18:
        return this.layer(a);
      case 19:
      case 20:
      case 21:
        return this.attention(a);
      case 22:
        return this.where(a);
      default: {
        const others = Array.from({ length: this.below(3) }, () =>
          this.below(2) ? a : this.operand(),
        );
        return {
          what: "concat",
          ask: () =>
            x.concat(
              others.map(({ tensor }) => tensor),
              axis,
            ),
          expect: () =>
            rank > 0
              ? oracle.concat([q, ...others.map((o) => o.expected)], axis)
              : undefined,
        };
      }
    }
  }

  unary({ tensor: x, expected: q }) {
    const what = this.pick(UNARY);
    return {
      what,
      ask: () =>
        what === "geluTanh" ? x.gelu({ approximate: "tanh" }) : x[what](),
      expect: () => oracle.unary(what, q),
    };
  }

  /** With any other value, or with its own turned around, which always suits. */
  matmul({ tensor: x, expected: q }) {
    const order = x.shape.map((_, i) => i);
    order.push(...order.splice(-2).reverse());
    const isOwn = order.length >= 2 && this.below(2) === 0;
    const { tensor: y, expected: other } = this.operand();
    return {
      what: "matmul",
      ask: () => x.matmul(isOwn ? x.transpose(order) : y),
      expect: () =>
        oracle.matmul(q, isOwn ? oracle.transpose(q, order) : other),
    };
  }

  /** Weights and a bias that all share, an activation, and what went in once more. */
  layer({ tensor: x, expected: q }) {
    const what = this.pick(["relu", "tanh", "gelu", "silu"]);
    const { tensors, values } = this.shared.get(x.shape.at(-1)) ?? {};
    const isRight = tensors !== undefined && x.shape.length >= 2;
    return {
      what: `layer with ${what}`,
      ask: () => {
        if (!isRight) return x.clamp(0, 1);
        return x.matmul(tensors[1]).add(tensors[0])[what]().add(x);
      },
      expect: () => {
        if (!isRight) {
          const [low, high] = [0, 1].map((v) => oracle.tensor([], [v]));
          return oracle.clamp(q, low, high);
        }
        const product = oracle.matmul(q, values[1]);
        const sum = oracle.binary("add", product, values[0]);
        return oracle.binary("add", oracle.unary(what, sum), q);
      },
    };
  }

  /** To itself, to its rows backwards, to another value, of parts of one value, or with fewer keys. */
  attention(a) {
    const last = (at) => at.tensor.shape.at(-1);
    const rows = this.values.filter(
      ({ tensor: { shape, dtype } }) =>
        dtype === "float32" &&
        shape.length >= 2 &&
        shape.reduce((product, dim) => product * dim, 1) <= MOST,
    );
    const x = a.tensor.shape.length >= 2 || rows.length === 0 ? a : rows.at(-1);
    const { length } = x.tensor.shape;
    const part = (axis, range) => {
      const ranges = x.tensor.shape.map((_, i) =>
        i === axis ? range : [undefined, undefined, 1],
      );
      return {
        tensor: x.tensor.slice(...ranges),
        expected: this.isHeld ? oracle.slice(x.expected, ranges) : undefined,
      };
    };
    let operands = [x, x, x];
    const kind = this.below(5);
    if (kind === 1) {
      const back = part(length - 2, [undefined, undefined, -1]);
      operands = [x, back, back];
    } else if (kind === 2) {
      const third = Math.floor(last(x) / 3);
      operands = [0, 1, 2].map((i) =>
        part(length - 1, [i * third, (i + 1) * third, 1]),
      );
    } else if (kind === 3) {
      const other = this.operand();
      operands = [x, other, other];
    }
    const width = last(operands[0]) || 1;
    const counts = Array.from({ length: width }, (_, i) => i + 1);
    const heads = this.pick(counts.filter((count) => width % count === 0));
    if (kind === 4) {
      const size = width / heads;
      const shared = counts.filter((count) => heads % count === 0);
      const keys = part(length - 1, [0, size * this.pick(shared), 1]);
      operands = [x, keys, keys];
    }
    const causal = this.below(3) === 0;
    const window = this.pick([undefined, undefined, 0, 1, 5]);
    const scale = this.data() + 0.01;
    const [q, k, v] = operands;
    return {
      what: `attention of ${heads} heads`,
      ask: () =>
        q.tensor.attention(k.tensor, v.tensor, {
          ...{ heads, scale, causal, window },
        }),
      expect: () =>
        oracle.attention(q.expected, k.expected, v.expected, {
          ...{ heads, causal, window },
          scale: float(scale),
        }),
    };
  }

  /** With another value, or with a number. */
  binary({ tensor: x, expected: q }) {
    const what = this.pick(BINARY);
    if (this.below(3) === 0) {
      const number = this.data() * 2 + 0.01;
      const scalar = { dims: [], values: [float(number)] };
      return {
        what,
        ask: () => x[what](number),
        expect: () => oracle.binary(what, q, scalar),
      };
    }
    const { tensor: y, expected: other } = this.operand();
    return {
      what,
      ask: () => x[what](y),
      expect: () => oracle.binary(what, q, other),
    };
  }

  /** By a comparison with another value, or by a value itself. */
  where({ tensor: x, expected: q }) {
    const [first, second] = [this.operand(), this.operand()];
    const isCompared = this.below(2) === 0;
    const zero = { dims: [], values: [exact(0)] };
    return {
      what: isCompared ? "where less" : "where",
      ask: () =>
        this.gpu.where(isCompared ? x.less(0) : x, first.tensor, second.tensor),
      expect: () =>
        oracle.where(
          isCompared ? oracle.binary("less", q, zero) : q,
          first.expected,
          second.expected,
        ),
    };
  }

  clamp({ tensor: x, expected: q }) {
    const { tensor: low, expected: lowest } = this.operand();
    const high = { dims: [], values: [exact(1)] };
    return {
      what: "clamp",
      ask: () => x.clamp(low, 1),
      expect: () => oracle.clamp(q, lowest, high),
    };
  }

  reduce({ tensor: x, expected: q }, axis) {
    const what = this.pick(REDUCTIONS);
    const keepDims = this.below(2) === 0;
    const isAll = this.below(4) === 0 || x.shape.length === 0;
    const axes = isAll ? x.shape.map((_, i) => i) : [axis];
    const given = isAll ? undefined : axis - x.shape.length;
    const isEmpty = what !== "sum" && axes.some((k) => x.shape[k] === 0);
    return {
      what,
      ask: () => x[what]({ axis: given, keepDims }),
      expect: () =>
        isEmpty ? undefined : oracle.reduce(what, q, axes, keepDims),
    };
  }

  norm({ tensor: x, expected: q }, axis) {
    const what = this.pick(NORMS);
    const epsilon =
      what === "softmax" || this.below(2) === 0
        ? undefined
        : this.data() + 0.01;
    const options = epsilon === undefined ? { axis } : { axis, epsilon };
    return {
      what,
      ask: () => x[what](options),
      expect: () =>
        x.shape.length > 0 ? oracle.norm(what, q, axis, epsilon) : undefined,
    };
  }

  reshape({ tensor: x, expected: q }) {
    const count = x.shape.reduce((product, dim) => product * dim, 1);
    const dims = this.pick([
      [count, 1],
      [1, count],
      [Math.floor(count / 2), 2],
    ]);
    return {
      what: "reshape",
      ask: () => x.reshape(dims),
      expect: () => oracle.reshape(q, dims),
    };
  }

  /** By places that are given, or that are computed. */
  gather({ tensor: x, expected: q }, axis) {
    const { shape } = x;
    if (this.below(2) === 0 && shape.length > 0) {
      const [from, isEmpty] = [shape[axis], shape[axis] === 0];
      return {
        what: `gather of ${from} by argmax`,
        ask: () => x.gather(x.argmax(axis), axis),
        expect: () => {
          if (isEmpty) return undefined;
          return oracle.gather(
            q,
            oracle.reduce("argmax", q, [axis], false),
            axis,
          );
        },
      };
    }
    const places = Uint32Array.from({ length: 3 }, () => this.data() * 3);
    return {
      what: "gather",
      ask: () => x.gather(places, axis),
      expect: () =>
        shape.length > 0 && places.every((place) => place < shape[axis])
          ? oracle.gather(q, oracle.tensor([3], places), axis)
          : undefined,
    };
  }
}

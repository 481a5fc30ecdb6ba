// The numbers of chains on the wire, and their limits.
//
// The core has the same numbers in `src/graph/chain/wire.rs`, `src/graph/expr.rs` and
// `src/graph/shape.rs`. In which order these make a chain is told in `chain-encoder.ts`.

/** What a node is. */
export const CODE = {
  input: 0,
  constant: 1,
  unary: 2,
  binary: 3,
  clamp: 4,
  dot: 5,
  reduce: 6,
  norm: 7,
  transpose: 8,
  slice: 9,
  reshape: 10,
  gather: 11,
  concat: 12,
  matmul: 13,
  attention: 14,
  where: 15,
  call: 16,
} as const;

/** Functions of one value. */
export const UNARY = {
  relu: 0,
  sigmoid: 1,
  tanh: 2,
  silu: 3,
  gelu: 4,
  geluTanh: 5,
  exp: 6,
  log: 7,
  sqrt: 8,
  abs: 9,
  neg: 10,
  sin: 11,
  cos: 12,
  floor: 13,
  ceil: 14,
  round: 15,
  sign: 16,
} as const;

/** Functions of two values. */
export const BINARY = {
  add: 0,
  sub: 1,
  mul: 2,
  div: 3,
  minimum: 4,
  maximum: 5,
  pow: 6,
  mod: 7,
  atan2: 8,
  less: 9,
  lessEqual: 10,
  greater: 11,
  greaterEqual: 12,
  equal: 13,
  notEqual: 14,
} as const;

/** How many values become one. */
export const REDUCTION = {
  sum: 0,
  mean: 1,
  max: 2,
  min: 3,
  argmax: 4,
} as const;

/** How a row is scaled. */
export const NORM = {
  softmax: 0,
  layerNorm: 1,
  rmsNorm: 2,
  normalize: 3,
} as const;

/** Element types. */
export const FLOATS = 0;
export const INDEXES = 1;
export const INTEGERS = 2;

/** Where the data of an input lies: with its call, or on the device. */
export const WITH_CALL = 0;
export const RESIDENT = 1;
/** Where packed data lies: on the device, in one of these formats. */
export const PACKED = {
  f16: 2,
  bf16: 3,
  int8: 4,
  int4: 5,
} as const;

/** Dimensions that a tensor may have. */
export const MAX_RANK = 8;

/** Elements that a tensor may have. */
export const MAX_ELEMENTS = 2 ** 30;

/** Floats that a head of an attention may have. */
export const MAX_HEAD = 512;

/** Nodes that a chain may have. */
export const MAX_NODES = 4096;

/** Operations that a chain may have one behind the other: each is a frame of the stack. */
export const MAX_DEPTH = 1024;

/** Operands that a node may have. */
export const MAX_OPERANDS = 255;

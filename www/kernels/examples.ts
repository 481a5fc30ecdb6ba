// Kernels to begin with: one of values, of places, with a loop, of vectors, of whole numbers,
// and a mistake.

import type { Sketch } from "./sketch.ts";

const USUAL = { callers: 1000, places: 64 } as const;

/** Two sources of rings; `late` is how far the waves have come since. */
const rings = (late: string) =>
  [0.3, 0.7]
    .map((at) => `Math.cos(50 * Math.hypot(x - ${at}, y - 0.5)${late})`)
    .join(" + ");

export const EXAMPLES: Readonly<Record<string, Sketch>> = {
  "Decay: values in, a value out": {
    ...USUAL,
    name: "decay",
    code: `fn element(height: f32, speed: f32) -> f32 {
  return height * exp(-speed * params.dt);
}`,
    cpu: "({ height, speed }, { dt }) =>\n  height * Math.exp(-speed * dt)",
    inputs: { height: "1.2 + Math.sin(40 * x + c)", speed: "4 * x" },
    params: { dt: { type: "f32", value: 0.5 } },
    shape: [256],
  },
  "Wave: a stencil that looks around": {
    ...USUAL,
    name: "wave",
    code: `fn at(i: i32) -> f32 {
  let row = i / height_cols();
  let col = i % height_cols();
  let around = height_at(row - 1, col) + height_at(row + 1, col)
    + height_at(row, col - 1) + height_at(row, col + 1);
  let bend = around - 4.0 * height(i);
  return 2.0 * height(i) - before(i) + params.speed * bend;
}`,
    cpu: `(i, { height, before }, { speed }) => {
  const row = Math.floor(i / height.columns);
  const col = i % height.columns;
  const around = height.at(row - 1, col) + height.at(row + 1, col)
    + height.at(row, col - 1) + height.at(row, col + 1);
  const bend = around - 4 * height(i);
  return 2 * height(i) - before(i) + speed * bend;
}`,
    inputs: { height: rings(""), before: rings(" + 0.3") },
    params: { speed: { type: "f32", value: 0.25 } },
    shape: [128, 128],
  },
  "Logistic map: a loop": {
    ...USUAL,
    name: "logistic",
    code: `fn element(rate: f32) -> f32 {
  var x = 0.5;
  for (var step = 0; step < params.steps; step++) {
    x = rate * x * (1.0 - x);
  }
  return x;
}`,
    cpu: `({ rate }, { steps }) => {
  let x = 0.5;
  for (let step = 0; step < steps; step++) x = rate * x * (1 - x);
  return x;
}`,
    inputs: { rate: "1.5 + 2 * x" },
    params: { steps: { type: "i32", value: 60 } },
    shape: [512],
  },
  "Light on a ball: a vector in, a struct out": {
    ...USUAL,
    name: "lit",
    code: `struct Lit { color: vec3f, light: f32 }

fn element(normal: vec3f) -> Lit {
  let sun = normalize(vec3f(params.east, 1.0, 1.0));
  // Where z is 0 there is no ball.
  let light = max(dot(normal, sun), 0.0) * sign(normal.z);
  let gleam = pow(light, 8.0);
  return Lit(light * vec3f(0.2, 0.75, 0.7) + vec3f(0.3 * gleam), light);
}`,
    cpu: `({ normal: [x, y, z] }, { east }) => {
  const far = Math.hypot(east, 1, 1);
  const light = Math.max((x * east + y + z) / far, 0) * Math.sign(z);
  const gleam = 0.3 * light ** 8;
  const color = [0.2, 0.75, 0.7].map((part) => light * part + gleam);
  return { color, light };
}`,
    inputs: {
      normal:
        "[2 * x - 1, 1 - 2 * y, Math.sqrt(Math.max(0, 1 - (2 * x - 1) ** 2 - (2 * y - 1) ** 2))][k]",
    },
    params: { east: { type: "f32", value: -0.6 } },
    shape: [128, 128],
  },
  "Noise: whole numbers that are hashed": {
    ...USUAL,
    name: "noise",
    code: `fn hash(x: u32) -> u32 {
  let state = x * 747796405u + 2891336453u;
  let word = ((state >> ((state >> 28u) + 4u)) ^ state) * 277803737u;
  return (word >> 22u) ^ word;
}

fn element(cell: vec2i, seed: u32) -> u32 {
  return hash(u32(cell.x) + hash(u32(cell.y) + seed)) >> 24u;
}`,
    cpu: `({ cell: [x, y], seed }) => {
  const hash = (x) => {
    const state = (Math.imul(x, 747796405) + 2891336453) >>> 0;
    const word = Math.imul((state >>> ((state >>> 28) + 4)) ^ state, 277803737);
    return ((word >>> 22) ^ word) >>> 0;
  };
  return hash(x + hash(y + seed)) >>> 24;
}`,
    inputs: { cell: "(k ? row : col) >> 2", seed: "c" },
    params: {},
    shape: [128, 128],
  },
  "A mistake: an error at its line": {
    ...USUAL,
    name: "mistake",
    code: `fn element(height: f32) -> f32 {
  let half = 0.5 * height;
  return sqrt(heigth) + half;
}`,
    cpu: "({ height }) => Math.sqrt(height) + 0.5 * height",
    inputs: { height: "x" },
    params: {},
    shape: [256],
  },
};

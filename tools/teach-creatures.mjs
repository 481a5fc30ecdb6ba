// Teaches the creatures of the demo: two networks of 32-64-10 learn to value what a rule
// written by hand values. The seed is fixed.
//
//   node tools/teach-creatures.mjs     two minutes; writes www/demo/creatures/weights.ts
//
// The rule lives here alone: the page has the networks, as bytes, and never the rule.

import { mkdirSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { rolldown } from "rolldown";

const HERE = "www/demo/creatures";
const [INPUTS, HIDDEN, OUTPUTS] = [32, 64, 10];
const HEADINGS = 8;
const STEPS = 1500;
const EPOCHS = 60;
const BATCH = 32;
const RATE = 2e-3;

/** How much of each of eight sectors lies ahead. */
const AHEAD = Array.from({ length: HEADINGS }, (_, k) => {
  const cos = Math.cos((k * 2 * Math.PI) / HEADINGS);
  return cos > 0 ? cos * cos : 0.6 * cos;
});

/** What each species wants of a heading, and how fast it would take that heading. */
const WANTS = {
  grazer(sight, { forward, whim, hunger, along, kin, others }) {
    const near = sight("kin", (c) => c * (0.7 - c));
    const fear = sight("others", (o) => o);
    const food = sight("food", (f) => f);
    return {
      good:
        (0.6 + 2.6 * hunger) * food -
        6 * fear +
        3 * near +
        1.1 * along * Math.min(1, 2 * kin) * (1 - others) +
        0.8 * forward +
        0.5 * whim,
      speed: 0.42 + 0.2 * hunger - 0.15 * Math.max(0, food) + 0.75 * others,
    };
  },
  hunter(sight, { forward, whim, hunger, kin, others }) {
    const prey = sight("others", (o) => o);
    const apart = sight("kin", (c) => c);
    const keen = Math.max(0, hunger - 0.2);
    return {
      good:
        7 * keen * prey - 2.2 * apart * (0.4 + kin) + 1 * forward + 0.9 * whim,
      speed:
        0.3 +
        0.9 * keen * Math.max(0, prey) +
        0.35 * keen * Math.min(1, others),
    };
  },
};

/** The rule: the value of each of ten speeds for one heading. */
function valued(species, row) {
  const part = { food: 0, kin: HEADINGS, others: 2 * HEADINGS };
  const sight = (name, curve) =>
    AHEAD.reduce(
      (sum, ahead, k) => sum + ahead * curve(row[part[name] + k]),
      0,
    );
  const [forward, , whim, , hunger, along, kin, others] = row.slice(24);
  const own = { forward, whim, hunger, along, kin, others };
  const { good, speed } = WANTS[species](sight, own);
  const best = Math.min(1, Math.max(0.15, speed));
  return Array.from({ length: OUTPUTS }, (_, gait) => {
    const miss = (gait + 1) / OUTPUTS - best;
    return good * 1.4 - 9 * miss * miss;
  });
}

/** The page's own world, as a module that Node can load. */
async function world() {
  const folder = resolve("target/creatures");
  mkdirSync(folder, { recursive: true });
  const exports = {
    World: `${HERE}/world.ts`,
    sequence: "www/bench/ops/inputs.ts",
  };
  const from = `${folder}/entry.mjs`;
  const lines = Object.entries(exports).map(
    ([name, path]) =>
      `export { ${name} } from ${JSON.stringify(resolve(path))};`,
  );
  writeFileSync(from, lines.join("\n"));
  const bundle = await rolldown({ input: from });
  await bundle.write({ file: `${folder}/world.mjs`, format: "esm" });
  return import(`${folder}/world.mjs`);
}

/** Rows that creatures met while they lived by the rule, and some that they did not meet. */
function lived({ World, sequence }) {
  const next = sequence(7);
  const alive = new World(16 / 9, next);
  const rows = { grazer: [], hunter: [] };
  for (let step = 0; step < STEPS; step++) {
    alive.sense();
    for (const creature of alive.creatures) {
      const { name } = creature.species;
      creature.think(({ inputs, into }) => {
        for (let row = 0; row < HEADINGS; row++) {
          const own = inputs.slice(row * INPUTS, (row + 1) * INPUTS);
          into.set(valued(name, [...own]), row * OUTPUTS);
          const share = name === "hunter" ? 0.06 : 0.006;
          if (next() < share) rows[name].push(own);
        }
      }, HEADINGS);
      creature.decide();
    }
    alive.feed();
    alive.step(1 / 30);
  }
  for (const name of Object.keys(rows)) {
    for (const row of rows[name].filter((_, i) => i % 4 === 0)) {
      rows[name].push(row.map((value) => value + (next() - 0.5) * 0.3));
    }
  }
  return rows;
}

/** A network with the layout of the page's, of small random numbers. */
function fresh(next) {
  const spread = (length, inputs) =>
    Float64Array.from(
      { length },
      () => (next() + next() + next() - 1.5) * Math.sqrt(8 / inputs),
    );
  return {
    first: spread(INPUTS * HIDDEN, INPUTS),
    firstBias: new Float64Array(HIDDEN),
    second: spread(HIDDEN * OUTPUTS, HIDDEN),
    secondBias: new Float64Array(OUTPUTS),
  };
}

/** A network that learned the rule from rows, by Adam. */
function taught(name, rows, next) {
  const network = fresh(next);
  const zeros = () =>
    Object.fromEntries(
      Object.entries(network).map(([part, { length }]) => [
        part,
        new Float64Array(length),
      ]),
    );
  const learning = {
    network,
    gradient: zeros(),
    mean: zeros(),
    square: zeros(),
  };
  const lessons = rows.map((row) => ({ row, right: valued(name, [...row]) }));
  const batches = Math.floor(lessons.length / BATCH);
  let loss = 0;
  for (let epoch = 0, time = 1; epoch < EPOCHS; epoch++) {
    loss = 0;
    const rate = RATE * (1 - epoch / EPOCHS) + 1e-5;
    for (let batch = 0; batch < batches; batch++, time++) {
      for (const part of Object.values(learning.gradient)) part.fill(0);
      for (let i = 0; i < BATCH; i++) {
        const at = Math.floor(next() * lessons.length);
        loss += descend(network, learning.gradient, lessons[at]);
      }
      improve(learning, rate, time);
    }
  }
  const off = Math.sqrt(loss / (batches * BATCH * OUTPUTS));
  console.log(`${name}: ${rows.length} rows, off by ${off.toFixed(3)}`);
  return network;
}

/** One step of Adam down the gradient of a batch. */
function improve({ network, gradient, mean, square }, rate, time) {
  const scale = Math.sqrt(1 - 0.999 ** time) / (1 - 0.9 ** time);
  for (const part of Object.keys(network)) {
    const [w, g, m, v] = [network, gradient, mean, square].map(
      (numbers) => numbers[part],
    );
    for (let i = 0; i < w.length; i++) {
      const slope = g[i] / BATCH;
      m[i] = 0.9 * m[i] + 0.1 * slope;
      v[i] = 0.999 * v[i] + 0.001 * slope * slope;
      w[i] -= (rate * scale * m[i]) / (Math.sqrt(v[i]) + 1e-8);
    }
  }
}

const hidden = new Float64Array(HIDDEN);
const slopes = new Float64Array(HIDDEN);

/** Adds the gradient of one lesson; gives its squared error. */
function descend(network, gradient, { row, right }) {
  const { first, firstBias, second, secondBias } = network;
  hidden.set(firstBias);
  for (let i = 0; i < INPUTS; i++) {
    const at = i * HIDDEN;
    for (let h = 0; h < HIDDEN; h++) hidden[h] += row[i] * first[at + h];
  }
  slopes.fill(0);
  let error = 0;
  for (let out = 0; out < OUTPUTS; out++) {
    let sum = secondBias[out];
    for (let h = 0; h < HIDDEN; h++) {
      if (hidden[h] > 0) sum += hidden[h] * second[h * OUTPUTS + out];
    }
    const miss = sum - right[out];
    error += miss * miss;
    gradient.secondBias[out] += miss;
    for (let h = 0; h < HIDDEN; h++) {
      if (hidden[h] <= 0) continue;
      gradient.second[h * OUTPUTS + out] += miss * hidden[h];
      slopes[h] += miss * second[h * OUTPUTS + out];
    }
  }
  for (let h = 0; h < HIDDEN; h++) gradient.firstBias[h] += slopes[h];
  for (let i = 0; i < INPUTS; i++) {
    const at = i * HIDDEN;
    const input = row[i];
    for (let h = 0; h < HIDDEN; h++)
      gradient.first[at + h] += slopes[h] * input;
  }
  return error;
}

/** A byte for each number, and what one step of a byte is worth. */
function packed(numbers) {
  const step = Math.max(...numbers.map(Math.abs)) / 127;
  const bytes = Int8Array.from(numbers, (value) => Math.round(value / step));
  return {
    step: Number(step.toPrecision(6)),
    bytes: Buffer.from(bytes.buffer).toString("base64"),
  };
}

const made = await world();
const rows = lived(made);
const lines = Object.entries(rows).flatMap(([name, met]) => {
  const network = taught(name, met, made.sequence(11));
  const parts = Object.entries(network).map(([part, numbers]) => {
    const { step, bytes } = packed(numbers);
    return `    ${part}: {\n      step: ${step},\n      bytes:\n        "${bytes}",\n    },`;
  });
  return [`  ${name}: {`, ...parts, "  },"];
});
writeFileSync(
  `${HERE}/weights.ts`,
  `// What the creatures learned, a byte a weight. Written by tools/teach-creatures.mjs.

import type { Packed } from "./brains.ts";

export const WEIGHTS: Packed = {
${lines.join("\n")}
};
`,
);

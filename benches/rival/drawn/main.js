// Embeds with this package and with transformers.js, run by run in turns: on one thread of the CPU,
// or on the GPU.
//
//     index.html?model=minilm|e5|mpnet|reranker|gemma|qwen [&engine=cpu|gpu] [&dtype=f32|f16]
//         [&runs=7] [&warm=2] [&only=WORKLOAD,...]
//
// In f16, which the GPU has and the graph of `qwen` is made for, both keep halves and compute with
// them.
//
// Both have the same weights, which are drawn: what a text costs depends on sizes alone. Every run
// has other token ids. Before anything is timed, answers of both are held to each other. Each row
// is posted to /log, and all of them to /report; `tools/rival-drawn.sh` puts the page together.

import { CLS, FIRST_WORD, framebatch, SEP, transformers } from "./systems.js";
import { drawn } from "./weights.js";

const query = new URLSearchParams(location.search);
const name = query.get("model") ?? "minilm";
const runs = Number(query.get("runs") ?? 7);
const warm = Number(query.get("warm") ?? 2);
const only = query.get("only")?.split(",");
const engine = query.get("engine") ?? "cpu";
const dtype = query.get("dtype") ?? "f32";
const isReranker = name === "reranker";

/** How far from 1 the cosine of two vectors may be, and how far apart two scores. */
const BOUND = dtype === "f16" ? 1e-2 : 1e-5;

const WORKLOADS = isReranker
  ? { "rank-30x128": () => ranking(30, 128) }
  : {
      "single-8": () => texts(1, () => 8),
      "single-128": () => texts(1, () => 128),
      "array-64": () => texts(64, (i) => 8 + ((i * 5) % 25)),
      "8x128": () => texts(8, () => 128),
      "64x16": () => texts(64, () => 16),
      "100x128": () => texts(100, () => 128),
    };

let config;
let state = 1;

async function main() {
  const json = async (file) => (await fetch(`./models/${name}/${file}`)).json();
  config = await json("config.json");
  const tensors = await json("tensors.json");
  const start = performance.now();
  const asked = { name, engine, dtype, config, tensors, isReranker };
  const weights = { ...asked, ...drawn(tensors) };
  log(`${name}: ${weights.file.length} bytes drawn, ${since(start)}`);
  const systems = {};
  for (const [system, open] of Object.entries({ framebatch, transformers })) {
    const start = performance.now();
    systems[system] = await open(weights);
    log(`${system} is open, ${since(start)}`);
  }
  const apart = await compare(systems);
  log(`apart ${apart.toExponential(1)}`);
  const rows = [];
  for (const [workload, make] of Object.entries(WORKLOADS)) {
    if (only !== undefined && !only.includes(workload)) continue;
    const row = { workload, ...(await measure(systems, make)) };
    log(JSON.stringify(row));
    rows.push(row);
  }
  const { userAgent, hardwareConcurrency } = navigator;
  const machine = { userAgent, hardwareConcurrency };
  const what = { model: name, engine, dtype, runs, warm };
  await report({ ...what, apart, machine, rows });
}

const since = (start) => `${(performance.now() - start).toFixed(0)} ms`;

async function measure(systems, make) {
  const times = { framebatch: [], transformers: [] };
  for (let run = -warm; run < runs; run++) {
    const order = Object.keys(times);
    if (run % 2 !== 0) order.reverse();
    for (const system of order) {
      const work = make();
      await pause();
      const start = performance.now();
      await systems[system].run(work);
      const ms = Number((performance.now() - start).toFixed(2));
      if (run >= 0) times[system].push(ms);
    }
  }
  const [ours, rivals] = Object.values(times).map(median);
  const ratio = Number((rivals / ours).toFixed(2));
  return { framebatch: ours, transformers: rivals, ratio, times };
}

/** The largest distance between both systems' answers. */
async function compare({ framebatch, transformers }) {
  const works = isReranker
    ? [ranking(3, 40)]
    : // The last token of texts that are padded is not the last of an array.
      [8, 38, 68].map((length) => texts(1, () => length));
  const ours = [];
  const rivals = [];
  for (const work of works) {
    ours.push(...(await framebatch.run(work)));
    rivals.push(...(await transformers.run(work)));
  }
  const distances = ours.map((a, i) => distance(a, rivals[i]));
  const worst = Math.max(...distances);
  if (!(worst <= BOUND)) {
    const shown = [ours, rivals].map((all) =>
      all.map((a) => [...a.slice(0, 4)]),
    );
    throw new Error(`answers are ${distances} apart: ${JSON.stringify(shown)}`);
  }
  return worst;
}

function distance(a, b) {
  if (a.length !== b.length) return NaN;
  if (a.length === 1) return Math.abs(a[0] - b[0]);
  let [dot, ofA, ofB] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    dot += a[i] * b[i];
    ofA += a[i] * a[i];
    ofB += b[i] * b[i];
  }
  return Math.abs(1 - dot / Math.sqrt(ofA * ofB));
}

function texts(count, length) {
  return Array.from({ length: count }, (_, i) => [
    CLS,
    ...words(length(i) - 2),
    SEP,
  ]);
}

/** A query of 12 words, and documents of which each has `tokens` with it. */
function ranking(count, tokens) {
  const query = words(12);
  const document = () => words(tokens - query.length - 3);
  return { query, documents: Array.from({ length: count }, document) };
}

function words(count) {
  return Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const share = state / 2 ** 32;
    return FIRST_WORD + Math.floor(share * (config.vocab_size - FIRST_WORD));
  });
}

function median(times) {
  const sorted = times.toSorted((a, b) => a - b);
  const [low, high] = [(sorted.length - 1) >> 1, sorted.length >> 1];
  return (sorted[low] + sorted[high]) / 2;
}

/** What one run leaves behind is done before the next begins. */
const pause = () => new Promise((go) => setTimeout(go, 20));

function log(line) {
  document.querySelector("#lines").append(`${line}\n`);
  void fetch("/log", { method: "POST", body: line }).catch(() => {});
}

async function report(result) {
  log(JSON.stringify(result));
  await fetch("/report", { method: "POST", body: JSON.stringify(result) });
}

await main().catch((error) => report({ error: error.stack ?? `${error}` }));

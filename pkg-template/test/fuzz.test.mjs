// Files as strangers might write them, given to the browser's face.
//
// Each is taken, or refused with an error of the package, in bounded time; no file is
// asked for that lies outside of the folder; and the native face says the same of each
// (`tests/fuzz`, which has the corpora's verdicts written down). Formulas and
// configurations are missing here: Rust reads them in both faces.
//
// FUZZ_SECONDS is how long each target goes on, FUZZ_SEED where it begins. With a time to
// fill, what the native fuzzer tried is judged as well (`target/fuzz/samples-*.jsonl`).

import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { face, manual, module, tokenizersFile } from "./face.mjs";
import { safetensors } from "./folder.mjs";
import { Mutator } from "./mutation.mjs";

await module("embeddings/index");
const { load } = await module("search/index-file");

const path = (name) => fileURLToPath(new URL(`../../${name}`, import.meta.url));
const CORPORA = path("tests/corpora");
const FOUND = path("target/fuzz");
const HOME = path("tests/data/tiny-model");
const VERDICTS = JSON.parse(
  readFileSync(join(CORPORA, "verdicts.json"), "utf8"),
);
const SECONDS = process.env.FUZZ_SECONDS;
const SEED = Number(process.env.FUZZ_SEED ?? 20_261_123);

/** Inputs of a target, unless there is a time to fill. */
const FEW = 300;
/** Milliseconds of CPU time that an input may take. */
const SLOW = 5000;
/** Inputs that mutation begins with, and bytes of each of them, at most. */
const MOST_KEPT = 1024;
const MOST_BYTES = 8192;

const WEIGHTS = "model.safetensors";
const TINY = new Map(
  readdirSync(HOME, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .map((file) => [file.slice(HOME.length + 1), readFileSync(file)]),
);
const zeros = (length) => new Array(length).fill(0);
const square = (name) => [`layer.${name}.weight`, "F32", [64, 64], zeros(4096)];
TINY.set(
  WEIGHTS,
  safetensors([
    ["words.weight", "F32", [128, 64], zeros(8192)],
    ...["query", "key", "value"].map(square),
    ["words.bias", "F32", [64], zeros(64)],
  ]),
);

const TARGETS = {
  indexes: { form: "words", judge: index },
  safetensors: {
    form: "headered",
    judge: (session, input) => opened(session, WEIGHTS, input, ["vocab.txt"]),
  },
  tokenizers: {
    form: "json",
    judge: (session, input) =>
      opened(session, "tokenizer.json", input, ["vocab.txt"]),
  },
  vocabularies: {
    form: "text",
    judge: (session, input) => opened(session, "vocab.txt", input),
  },
};

/** What becomes of a folder with one file in place of others, and why. */
async function opened({ gpu, core }, name, content, without = []) {
  const files = new Map(TINY).set(name, content);
  without.forEach((other) => files.delete(other));
  const get = files.get.bind(files);
  files.get = (asked) => {
    assert.match(asked, /^[\w-]+([./][\w-]+)*$/, "outside of the folder");
    return get(asked);
  };
  let embedder;
  try {
    embedder = await gpu.embedder(files);
  } catch (error) {
    const said = refusal(error);
    // The fake's weights are those of the tiny model's sizes.
    const isOfSizes =
      /model.safetensors: tensor .* (is missing|has shape|holds)/s.test(said);
    return [isOfSizes ? "taken" : "refused", said];
  }
  try {
    const result = embedder.embed("a cat");
    let failure;
    result.catch((error) => (failure = error));
    await null;
    if (failure !== undefined) {
      const said = refusal(failure);
      return [/model's padding/.test(said) ? "taken" : "unsplit", said];
    }
    gpu.flush();
    core.answer();
    await result;
    return ["taken", "taken"];
  } finally {
    embedder.dispose();
  }
}

function index(_, input) {
  try {
    const { kind, next } = load(input);
    return ["taken", `${kind.metric} ${kind.dtype} ${next > 0}`];
  } catch (error) {
    return ["refused", refusal(error)];
  }
}

/** What an error of the package says; any other is a finding. */
function refusal(error) {
  assert.ok(error instanceof face.FramebatchError, error.stack ?? error);
  const codes = ["invalid-input", "unsupported", "limit-exceeded"];
  assert.ok(codes.includes(error.code), `${error.code}: ${error.message}`);
  return error.message;
}

/** Judges an input; a finding is kept, with what it did. */
async function judge(name, session, input) {
  const file = join(FOUND, `finding-${name}-page`);
  // A process that hangs or dies leaves this behind.
  if (SECONDS !== undefined) {
    mkdirSync(FOUND, { recursive: true });
    writeFileSync(join(FOUND, `last-${name}`), input);
  }
  const start = process.cpuUsage();
  try {
    const said = await TARGETS[name].judge(session, input);
    const { user } = process.cpuUsage(start);
    assert.ok(user / 1000 < SLOW, `it took ${user / 1000} ms`);
    return said;
  } catch (error) {
    mkdirSync(FOUND, { recursive: true });
    writeFileSync(file, input);
    error.message = `${name}: ${file}: ${error.message}`;
    throw error;
  }
}

/**
 * Whether both faces say the same. What the core refuses natively is refused by the
 * WebAssembly in a page, after everything else, and there is none here; and the fake
 * core needs fewer tensors than a model.
 */
function agree(native, verdict) {
  if (native === "refused by the core") return true;
  if (native === "of other sizes") return verdict !== "refused";
  return native === verdict;
}

const classOf = (said) =>
  said
    .slice(0, 400)
    .replace(/'[^']*'|"[^"]*"|[[{].*[\]}]/gs, "")
    .replace(/\d+/g, "0");

for (const [name, { form }] of Object.entries(TARGETS)) {
  const corpus = readdirSync(join(CORPORA, name)).map((file) => [
    file,
    new Uint8Array(readFileSync(join(CORPORA, name, file))),
  ]);

  test(`kept ${name} get the verdicts of the native face`, async () => {
    const session = await manual();
    assert.equal(corpus.length, Object.keys(VERDICTS[name]).length);
    const differing = [];
    for (const [file, input] of corpus) {
      const { length } = tokenizersFile.slices;
      const [verdict, said] = await judge(name, session, input);
      // Tokenizers beyond BERT's are read by Rust alone, which is not here.
      const isTheirs = tokenizersFile.slices.length > length;
      const native = VERDICTS[name][file];
      if (agree(native, verdict) || isTheirs) continue;
      differing.push(`${file}: natively ${native}, here ${verdict}: ${said}`);
    }
    assert.deepEqual(differing, []);
  });

  test(`mutated ${name} are taken or refused`, async () => {
    mkdirSync(FOUND, { recursive: true });
    const session = await manual();
    const mutator = new Mutator(SEED);
    const inputs = corpus.map(([, input]) => input);
    const heard = new Set();
    for (const input of inputs) {
      const [, said] = await judge(name, session, input);
      heard.add(classOf(said));
    }
    const until = Date.now() + Number(SECONDS) * 1000;
    let tried = 0;
    for (; SECONDS === undefined ? tried < FEW : Date.now() < until; tried++) {
      const input = mutator.mutate(form, inputs);
      const [, said] = await judge(name, session, input);
      const size = heard.size;
      heard.add(classOf(said));
      const isNew = heard.size > size && input.length <= MOST_BYTES;
      if (isNew && inputs.length < MOST_KEPT) inputs.push(input);
    }
    console.log(`fuzzed ${name}: ${tried} inputs, ${heard.size} answers`);
  });

  const samples = join(FOUND, `samples-${name}.jsonl`);
  if (SECONDS === undefined || !existsSync(samples)) continue;

  test(`what the native fuzzer tried of ${name} gets its verdicts`, async () => {
    const session = await manual();
    const differing = [];
    for (const line of readFileSync(samples, "utf8").trim().split("\n")) {
      const { verdict: native, bytes } = JSON.parse(line);
      const input = new Uint8Array(Buffer.from(bytes, "hex"));
      const { length } = tokenizersFile.slices;
      const [verdict, said] = await judge(name, session, input);
      const isTheirs = tokenizersFile.slices.length > length;
      if (agree(native, verdict) || isTheirs) continue;
      const file = join(FOUND, `finding-${name}-page-${differing.length}`);
      writeFileSync(file, input);
      differing.push(`${file}: natively ${native}, here ${verdict}: ${said}`);
    }
    assert.deepEqual(differing.slice(0, 20), []);
  });
}

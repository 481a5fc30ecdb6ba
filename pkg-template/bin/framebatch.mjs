#!/usr/bin/env node
// The command of the package: `npx framebatch convert IN OUT`.

import { convert } from "./convert.mjs";
import { DTYPES } from "./weights.mjs";

const USAGE = `usage: npx framebatch convert IN OUT [--dtype int8|int4] [--gguf FILE]

  Writes the model in folder IN, as Hugging Face has it, to folder OUT with a quarter of the
  bytes: matrices as int8, with a scale for each 32 numbers. OUT is loaded as any folder is,
  and has vectors of the model as it was, which loading compares.

  int4 takes half of that, and costs more: as many of the last layers stay int8 as vectors
  with a cosine of 0.99 ask for.

  The weights are those of model.safetensors, or of the one GGUF file in IN, or of the GGUF
  file that --gguf names. All else is of IN: config.json, the tokenizer, the pooling.`;

const [command, ...rest] = process.argv.slice(2);
const folders = [];
let dtype = "int8";
let gguf;
while (rest.length > 0) {
  const word = rest.shift();
  if (word === "--dtype") dtype = rest.shift();
  else if (word === "--gguf")
    gguf = rest.shift() ?? fail("--gguf names a file");
  else if (word.startsWith("-")) fail(`there is no option ${word}`);
  else folders.push(word);
}
if (command === undefined || command === "help" || command === "--help") {
  console.log(USAGE);
} else if (command !== "convert") {
  fail(`there is no command '${command}'`);
} else if (folders.length !== 2) {
  fail("convert takes two folders");
} else if (!Object.hasOwn(DTYPES, dtype)) {
  fail(`--dtype must be int8 or int4, got '${dtype}'`);
} else {
  try {
    await convert(...folders, { dtype, gguf });
  } catch (error) {
    console.error(`framebatch: ${error.message}`);
    process.exitCode = 1;
  }
}

function fail(problem) {
  console.error(`framebatch: ${problem}\n\n${USAGE}`);
  process.exit(2);
}

// The weights of a model from a GGUF file, as the model's own folder would have them.
//
// Undoes what llama.cpp's converter did: names, rows that it cut off, what it added. Tensors are
// read when they are asked for, one at a time.

import { int8Of, numbersOf, widened } from "./gguf-blocks.mjs";
import { openGgufFile } from "./gguf-file.mjs";
import { modelOf, placeOf } from "./gguf-names.mjs";
import { bytesOf } from "./floats.mjs";
import { BLOCK } from "./int8.mjs";

/** More rows of positions than any model has. */
const MOST_POSITIONS = 2 ** 20;

/** Opens a file by the model's configuration, as `weightsOf` describes it. */
export function openGguf(path, config) {
  const model = modelOf(config);
  const file = openGgufFile(path);
  try {
    const { close } = file;
    return { path, ...weightsOf(file, model, config), close };
  } catch (error) {
    file.close();
    throw error;
  }
}

/**
 * The weights in a file that was opened: `{ tensors, unused, size }`, where a tensor is
 * `{ name, dtype, shape, bytes, read, int8 }`. `read()` gives its bytes as `dtype` of safetensors;
 * `int8`, where it is there, gives blocks of int8 without rounding numbers anew.
 */
export function weightsOf(file, model, config) {
  const { path, size, metadata } = file;
  try {
    checkKind(model, metadata);
    const tensors = [];
    const unused = [];
    for (const tensor of file.tensors) {
      const place = placeOf(model, tensor.name);
      if (place === undefined) unused.push(tensor.name);
      else tensors.push(modelTensor(tensor, place, model, config));
    }
    return { tensors, unused, size };
  } catch (cause) {
    throw new Error(`${path}: ${cause.message}`, { cause });
  }
}

function checkKind({ architectures }, metadata) {
  const architecture = metadata.get("general.architecture");
  if (!architectures.includes(architecture)) {
    throw new Error(
      `general.architecture is '${architecture}', but config.json is of '${architectures.join("' or '")}'`,
    );
  }
  const parts = metadata.get("split.count") ?? 1;
  if (parts > 1) {
    throw new Error(
      `the file is one of ${parts}; join them with llama-gguf-split --merge`,
    );
  }
}

function modelTensor(tensor, place, model, config) {
  const { format, read } = tensor;
  const { name, part } = place;
  // llama.cpp drops a first dimension of 1, when it converts and when it quantizes.
  const isRow = part === "matrix" && tensor.shape.length === 1;
  const shape = isRow ? [1, ...tensor.shape] : tensor.shape;
  const stored = { name, format, shape, read };
  if (place.isPositions) return tensorOf(withAllRows(stored, model, config));
  const added = part === "norm" ? model.normsAdd : undefined;
  if (added === undefined) return tensorOf(stored);
  return floatsOf(stored, (floats) => floats.map((x) => x - added));
}

/** The table of positions, with zeros for rows that nothing reads, where these were cut off. */
function withAllRows(tensor, { padding }, config) {
  const [rows, columns] = tensor.shape;
  const all = config.max_position_embeddings;
  const missing = 1 + (config.pad_token_id ?? padding);
  const isCut = padding !== undefined && rows + missing === all;
  if (!isCut || all > MOST_POSITIONS) return tensor;
  const { numbers, bytes } = tensor.format;
  const read = () => {
    const zeros = Buffer.alloc((missing * columns * bytes) / numbers);
    return Buffer.concat([zeros, tensor.read()]);
  };
  return { ...tensor, shape: [all, columns], read };
}

/** A tensor with the numbers that the file has. */
function tensorOf({ name, format, shape, read }) {
  const numbers = numbersOf(shape);
  if (format.widen === undefined) {
    const bytes = numbers * format.bytes;
    return { name, dtype: format.name, shape, bytes, read };
  }
  const tensor = floatsOf({ name, format, shape, read }, (floats) => floats);
  if (format.wholes === undefined || numbers % BLOCK !== 0) return tensor;
  return { ...tensor, int8: () => int8Of(format, read()) };
}

/** A tensor of 32-bit floats, which are made of those of the file. */
function floatsOf({ name, format, shape, read }, change) {
  return {
    ...{ name, dtype: "F32", shape, bytes: 4 * numbersOf(shape) },
    read: () => bytesOf(change(widened(format, read()))),
  };
}

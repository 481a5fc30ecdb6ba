// The header of a safetensors file: which tensors it holds, and where.
//
// Everything in it is checked before a byte behind it is looked at. Which tensors a
// model needs is said in `weights.ts`.

import { type FramebatchError, invalid } from "../checks/errors.js";
import { decode, Fields, parse, shown } from "./json-fields.js";
import { ABOUT } from "./source.js";

/** The file that every model has. */
export const FILE = "model.safetensors";

/** What a header says of the file, beside its tensors. */
const METADATA = "__metadata__";

/** Bytes that the format allows a header. */
const MOST = 100e6;

/** Bytes of an element. */
const SIZES: Readonly<Record<string, number>> = {
  ...{ F4: 0.5, F6_E2M3: 0.75, F6_E3M2: 0.75 },
  ...{ BOOL: 1, U8: 1, I8: 1, F8_E4M3: 1, F8_E5M2: 1 },
  ...{ F8_E8M0: 1, F8_E4M3FNUZ: 1, F8_E5M2FNUZ: 1 },
  ...{ U16: 2, I16: 2, F16: 2, BF16: 2 },
  ...{ U32: 4, I32: 4, F32: 4, U64: 8, I64: 8, F64: 8, C64: 8 },
};

/** A tensor of the file. */
export interface Stored {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  /** Bytes from the end of the header. */
  readonly begin: number;
  readonly end: number;
}

/** An error about a file of this name. */
export function wrongFile(name: string, problem: string): FramebatchError {
  return invalid(ABOUT, `${name}: ${problem}`);
}

/** The length of the header, by the file's first eight bytes. */
export function headerLength(
  file: string,
  first: Uint8Array,
  size?: number,
): number {
  const view = new DataView(first.buffer, first.byteOffset, first.length);
  const length = view.getUint32(0, true) + view.getUint32(4, true) * 2 ** 32;
  if (length > MOST || length < 2) {
    throw wrongFile(
      file,
      `its header would have ${length} bytes, but one has 2 to ${MOST}; this is no safetensors file`,
    );
  }
  if (size !== undefined && 8 + length > size) {
    throw wrongFile(
      file,
      `its header ends at byte ${8 + length}, but the file at ${size}; it is truncated`,
    );
  }
  return length;
}

/** The tensors in the order in which they lie, without a gap. */
export function tensorsOf(
  file: string,
  header: Uint8Array,
  size?: number,
): Stored[] {
  let text: string;
  try {
    text = decode(header);
  } catch {
    throw wrongFile(file, "its header is not UTF-8");
  }
  const value = parse(`${file}: its header`, text);
  const fields = Fields.of(`${file}: its header`, value);
  checkMetadata(fields.object(METADATA));
  const names = fields.names().filter((name) => name !== METADATA);
  const tensors = names.map((name) => tensorOf(file, name, fields.get(name)));
  tensors.sort((a, b) => a.begin - b.begin || a.end - b.end);
  let end = 0;
  for (const tensor of tensors) {
    if (tensor.begin !== end) {
      throw wrongFile(
        file,
        `tensor '${tensor.name}' begins at byte ${tensor.begin} of the data, but the one before ends at ${end}; tensors must lie end to end`,
      );
    }
    end = tensor.end;
  }
  const whole = 8 + header.length + end;
  if (size === undefined || whole === size) return tensors;
  throw wrongFile(
    file,
    `its tensors end at byte ${whole}, but the file at ${size}; ${whole > size ? "it is truncated" : "there is more behind them"}`,
  );
}

/** The format allows texts by name there, and nothing else. */
function checkMetadata(metadata: Fields | undefined): void {
  metadata?.names().forEach((name) => metadata.text(name));
}

function tensorOf(file: string, name: string, value: unknown): Stored {
  const fields = Fields.of(`${file}: tensor '${name}'`, value);
  const dtype = fields.text("dtype");
  const shape = wholes(fields, "shape");
  const offsets = wholes(fields, "data_offsets");
  if (!Object.hasOwn(SIZES, dtype)) {
    throw fields.wrong(
      "dtype",
      `is '${dtype}', which the format does not have`,
    );
  }
  const elements = shape.reduce((product, dim) => {
    if (Number.isSafeInteger(product * dim)) return product * dim;
    throw fields.wrong("shape", `has too many elements, got ${shown(shape)}`);
  }, 1);
  const bytes = elements * SIZES[dtype];
  const [begin, end] = offsets;
  if (offsets.length === 2 && end - begin === bytes) {
    return { name, dtype, shape, begin, end };
  }
  throw fields.wrong(
    "data_offsets",
    `are ${shown(offsets)}, but ${dtype} of shape ${shown(shape)} has ${bytes} bytes`,
  );
}

function wholes(fields: Fields, name: string): number[] {
  const list = fields.get(name);
  if (!Array.isArray(list)) {
    throw fields.wrong(name, `must be a list, got ${shown(list)}`);
  }
  for (const number of list) {
    if (Number.isSafeInteger(number) && (number as number) >= 0) continue;
    throw fields.wrong(
      name,
      `must be whole numbers from 0, got ${shown(list)}`,
    );
  }
  return list as number[];
}

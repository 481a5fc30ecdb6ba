// The weights of a model: which tensors of the file each is made of, and how these are put
// together. Queries, keys and values of a layer are one weight.
//
// A weight goes to the device as soon as its last tensor has arrived. Where bytes come from
// is known in `model-loader.ts`.

import { allocate, type Want } from "../checks/allocation.js";
import { FramebatchError } from "../checks/errors.js";
import { PACKED, RESIDENT } from "../tensor/codes.js";
import type { StorageType } from "../tensor/input.js";
import { input, type Node } from "../tensor/node.js";
import { shapeOf, text } from "../tensor/shape.js";
import { AUTO, TensorStorage } from "../tensor/storage.js";
import { halvesOf, widen } from "./half-floats.js";
import { FILE, type Stored, wrongFile } from "./safetensors.js";
import { ABOUT } from "./source.js";

/** Prefixes that all names of a file may have. */
const PREFIXES = ["", "bert.", "roberta."];

/** How the weights are kept. */
export interface Keeping {
  readonly dtype: StorageType;
  /** Whether the device is a GPU in hardware. */
  readonly isHardware: boolean;
  /** Whether the page keeps them, to restore them after a loss. */
  readonly keep: boolean;
}

/** A weight of the model, while it is put together. */
export class Weight {
  readonly sources: Stored[] = [];
  dims: number[] = [];
  /** The storage of the weight, once its first source arrives. */
  private storage: TensorStorage | undefined;
  private full = 0;

  constructor(readonly isVector: boolean) {}

  /** Adds a tensor of the file, behind those before. */
  add(source: Stored): void {
    this.sources.push(source);
    this.dims = [...source.shape];
    this.dims[0] *= this.sources.length;
  }

  /** Memory for the bytes of a source: in the weight itself, or apart where these are to be widened. */
  target(source: Stored, keeping: Keeping): Uint8Array {
    const { dtype } = source;
    const home = this.homeFor(keeping);
    const isHalves =
      this.sources.every((other) => other.dtype === dtype) &&
      halvesOf(dtype, home, keeping.isHardware);
    const { count } = shapeOf(ABOUT, this.dims);
    if (this.storage === undefined) {
      const Kind = isHalves ? Uint16Array : Float32Array;
      const bytes = count * Kind.BYTES_PER_ELEMENT;
      const memory = allocate(wantOf(bytes), () => new Kind(count));
      const packed = dtype === "F16" ? PACKED.f16 : PACKED.bf16;
      this.storage = new TensorStorage(
        { memory, start: 0, words: count },
        count,
        isHalves ? packed : home,
        undefined,
        keeping.keep,
        this.sources[0].name,
      );
    }
    const { length, at, memory } = this.section(source);
    if (!isHalves && dtype !== "F32") return bytesFor(length * 2);
    const size = memory.BYTES_PER_ELEMENT;
    return new Uint8Array(memory.buffer, at * size, length * size);
  }

  /** The bytes of a source have arrived. Returns the weight's node if the source was the last. */
  filled(source: Stored, bytes: Uint8Array): Node | undefined {
    const { memory, at } = this.section(source);
    if (bytes.buffer !== memory.buffer) {
      widen(source.dtype, bytes, memory as Float32Array, at);
    }
    this.full += 1;
    if (this.full < this.sources.length) return undefined;
    return input(shapeOf(ABOUT, this.dims), this.storage!);
  }

  private section(source: Stored) {
    const { memory, words } = this.storage!.data!;
    const length = words / this.sources.length;
    return { memory, length, at: length * this.sources.indexOf(source) };
  }

  private homeFor({ dtype, isHardware }: Keeping): number {
    if (this.isVector || dtype === "f32") return RESIDENT;
    if (dtype !== "auto") return PACKED[dtype];
    return isHardware ? AUTO : RESIDENT;
  }
}

/** An array for this many bytes of a file. Throws where the page has no memory for them. */
export function bytesFor(bytes: number): Uint8Array {
  return allocate(wantOf(bytes), () => new Uint8Array(bytes));
}

function wantOf(bytes: number): Want {
  return { about: ABOUT, bytes, instead: "load a smaller model" };
}

/**
 * The weights of a model and, for each tensor of the file, the weight that it is a source of.
 * A line of `lines` names a source: the weight's number, 1 for one of 32-bit floats always, the
 * source's dimensions and name. Throws for what is missing or of another shape or type.
 */
export function weightsOf(
  lines: string,
  tensors: readonly Stored[],
): { weights: Weight[]; sources: Map<Stored, Weight> } {
  const wanted = lines.split("\n").map((line) => line.split(" "));
  const stored = new Map(tensors.map((tensor) => [tensor.name, tensor]));
  const [, , , first] = wanted[0];
  const prefix = PREFIXES.find((prefix) => stored.has(prefix + first)) ?? "";
  const weights: Weight[] = [];
  const sources = new Map<Stored, Weight>();
  for (const [number, isVector, dims, name] of wanted) {
    const source = stored.get(prefix + name);
    if (source === undefined) {
      throw wrongFile(
        `tensor '${prefix}${name}' is missing, of shape [${dims.replaceAll(",", ", ")}]`,
      );
    }
    check(source, dims.split(",").map(Number));
    const weight = (weights[+number] ??= new Weight(isVector === "1"));
    weight.add(source);
    sources.set(source, weight);
  }
  return { weights, sources };
}

function check({ name, dtype, shape }: Stored, dims: readonly number[]): void {
  if (shape.join() !== dims.join()) {
    throw wrongFile(
      `tensor '${name}' has shape ${text(shape)}, but config.json asks for ${text(dims)}`,
    );
  }
  if (["F32", "F16", "BF16"].includes(dtype)) return;
  throw new FramebatchError(
    "unsupported",
    `${ABOUT}: ${FILE}: tensor '${name}' holds ${dtype}, and only F32, F16 and BF16 are known`,
  );
}

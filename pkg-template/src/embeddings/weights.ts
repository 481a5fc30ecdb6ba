// The tensors of a model: which of the file's they are made of, and how they get there.
//
// A tensor goes to the device as soon as its last part is there. Where bytes come from
// is the matter of `model-loader.ts`; queries, keys and values of a layer are one tensor.

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

/** What names may begin with, all alike. */
const PREFIXES = ["", "bert.", "roberta."];

/** How the weights are kept. */
export interface Keeping {
  readonly dtype: StorageType;
  /** Whether the device is a GPU in hardware. */
  readonly isHardware: boolean;
  /** Whether the page keeps them, to restore them after a loss. */
  readonly keep: boolean;
}

/** A tensor of the model, while it is put together. */
export class Weight {
  readonly parts: Stored[] = [];
  dims: number[] = [];
  /** What it becomes, once its first part is there. */
  private storage: TensorStorage | undefined;
  private full = 0;

  constructor(readonly isVector: boolean) {}

  /** Another part, behind those before. */
  add(part: Stored): void {
    this.parts.push(part);
    this.dims = [...part.shape];
    this.dims[0] *= this.parts.length;
  }

  /** Where the bytes of a part go: to their place, or for themselves to be widened. */
  room(part: Stored, keeping: Keeping): Uint8Array {
    const { dtype } = part;
    const home = this.homeFor(keeping);
    const isHalves =
      this.parts.every((other) => other.dtype === dtype) &&
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
        this.parts[0].name,
      );
    }
    const { length, at, memory } = this.place(part);
    if (!isHalves && dtype !== "F32") return bytesFor(length * 2);
    const size = memory.BYTES_PER_ELEMENT;
    return new Uint8Array(memory.buffer, at * size, length * size);
  }

  /** A part's room is full. Returns the tensor's node if it was the last. */
  filled(part: Stored, room: Uint8Array): Node | undefined {
    const { memory, at } = this.place(part);
    if (room.buffer !== memory.buffer) {
      widen(part.dtype, room, memory as Float32Array, at);
    }
    this.full += 1;
    if (this.full < this.parts.length) return undefined;
    return input(shapeOf(ABOUT, this.dims), this.storage!);
  }

  private place(part: Stored) {
    const { memory, words } = this.storage!.data!;
    const length = words / this.parts.length;
    return { memory, length, at: length * this.parts.indexOf(part) };
  }

  private homeFor({ dtype, isHardware }: Keeping): number {
    if (this.isVector || dtype === "f32") return RESIDENT;
    if (dtype !== "auto") return PACKED[dtype];
    return isHardware ? AUTO : RESIDENT;
  }
}

/** So many bytes of a file. Throws where the page has no memory for them. */
export function bytesFor(bytes: number): Uint8Array {
  return allocate(wantOf(bytes), () => new Uint8Array(bytes));
}

function wantOf(bytes: number): Want {
  return { about: ABOUT, bytes, instead: "load a smaller model" };
}

/**
 * The weights of a model and, for each tensor of the file, the one that it is a part of.
 * `lines` names the parts: the weight's number, 1 for one of 32-bit floats always, its
 * dimensions, its name. Throws for what is missing or of another shape or type.
 */
export function weightsOf(
  lines: string,
  tensors: readonly Stored[],
): { weights: Weight[]; parts: Map<Stored, Weight> } {
  const wanted = lines.split("\n").map((line) => line.split(" "));
  const stored = new Map(tensors.map((tensor) => [tensor.name, tensor]));
  const [, , , first] = wanted[0];
  const prefix = PREFIXES.find((prefix) => stored.has(prefix + first)) ?? "";
  const weights: Weight[] = [];
  const parts = new Map<Stored, Weight>();
  for (const [number, isVector, dims, name] of wanted) {
    const part = stored.get(prefix + name);
    if (part === undefined) {
      throw wrongFile(
        `tensor '${prefix}${name}' is missing, of shape [${dims.replaceAll(",", ", ")}]`,
      );
    }
    check(part, dims.split(",").map(Number));
    const weight = (weights[+number] ??= new Weight(isVector === "1"));
    weight.add(part);
    parts.set(part, weight);
  }
  return { weights, parts };
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

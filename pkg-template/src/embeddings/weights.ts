// The weights of a model: which tensors of the files each is made of, and how these are put
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
import { AUTO, BLOCK_BYTES, TensorStorage } from "../tensor/storage.js";
import { halvesOf, widen } from "./half-floats.js";
import { type Stored, wrongFile } from "./safetensors.js";
import { ABOUT } from "./source.js";
import type { ModelEncoder } from "./wasm-instance.js";

/** The parts that weights play, by their numbers. */
const Role = { matrix: 0, laidOut: 2, computed: 3 } as const;

/** The words of a weight on the page: floats, 16-bit ones, or blocks as the device has them. */
export type Memory =
  Floats | Uint16Array<ArrayBuffer> | Uint32Array<ArrayBuffer>;

/** The types that a file may have in blocks, as `framebatch convert` writes them. */
type Blocks = "int8" | "int4";

type Floats = Float32Array<ArrayBuffer>;

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
  /** The parts of the weight in their order, as far as their file was opened. */
  readonly sources: Stored[] = [];
  /** The storage of the weight, once its first source arrives. */
  private storage: TensorStorage | undefined;
  /** Elements of each source. */
  private readonly lengths: number[] = [];
  /** The floats of all sources, of a weight that is laid out when they are there. */
  private floats: Floats | undefined;
  private full = 0;
  private isKept = true;

  constructor(
    /** 0 for a matrix, 1 for 32-bit floats always, 2 for what is laid out, 3 for what no file has. */
    private readonly role: number,
    readonly dims: readonly number[],
    /** Lays the floats of the sources out as they lie on the device. */
    private readonly layOut: (floats: Floats) => Floats,
  ) {}

  /** Adds a source of these dimensions; its place. */
  add(dims: readonly number[]): number {
    return this.lengths.push(dims.reduce(times, 1)) - 1;
  }

  /** Whether the device may keep it in fewer bits. */
  get isMatrix(): boolean {
    return this.role === Role.matrix;
  }

  /** Memory for the bytes of a source: in the weight itself, or apart where these are to be widened. */
  target(source: Stored, keeping: Keeping): Uint8Array {
    const { dtype } = source;
    if (this.role === Role.laidOut) return this.floatsOf(source, keeping);
    const blocks = blocksOf(source);
    if (blocks !== undefined)
      return this.blocks(source, PACKED[blocks], keeping);
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
      this.isKept = keeping.keep;
      this.storage = this.stored(memory, isHalves ? packed : home);
    }
    const { length, at, memory } = this.section(source);
    if (!isHalves && dtype !== "F32") return bytesFor(length * 2);
    const size = memory.BYTES_PER_ELEMENT;
    return new Uint8Array(memory.buffer, at * size, length * size);
  }

  /** Memory for the floats of a source that are laid out later, or for what is to be widened. */
  private floatsOf(source: Stored, { keep }: Keeping): Uint8Array {
    this.isKept = keep;
    const count = this.lengths.reduce(plus, 0);
    const bytes = wantOf(count * 4);
    this.floats ??= allocate(bytes, () => new Float32Array(count));
    const { at, length } = this.sectionOf(source, count);
    if (source.dtype !== "F32") return bytesFor(length * 2);
    return new Uint8Array(this.floats.buffer, at * 4, length * 4);
  }

  /** Memory in the weight for the blocks of a source, which go to the device as they are. */
  private blocks(source: Stored, home: number, keeping: Keeping): Uint8Array {
    if (this.storage === undefined) {
      const { count } = shapeOf(ABOUT, this.dims);
      const words = (Math.ceil(count / 64) * BLOCK_BYTES[home]!) / 4;
      const memory = allocate(wantOf(words * 4), () => new Uint32Array(words));
      this.isKept = keeping.keep;
      this.storage = this.stored(memory, home);
    }
    const { length, at, memory } = this.section(source);
    return new Uint8Array(memory.buffer, at * 4, length * 4);
  }

  /** The bytes of a source have arrived. Returns the weight's node if the source was the last. */
  filled(source: Stored, bytes: Uint8Array): Node | undefined {
    const { memory, at } = this.section(source);
    if (bytes.buffer !== memory.buffer) {
      widen(source.dtype, bytes, memory as Floats, at);
    }
    this.full += 1;
    if (this.full < this.sources.length) return undefined;
    if (this.floats !== undefined) {
      this.storage = this.stored(this.layOut(this.floats), RESIDENT);
      this.floats = undefined;
    }
    return input(shapeOf(ABOUT, this.dims), this.storage!);
  }

  /** The node of a weight of these floats, which no file has. */
  computed(floats: Floats, { keep }: Keeping): Node {
    this.isKept = keep;
    return input(shapeOf(ABOUT, this.dims), this.stored(floats, RESIDENT));
  }

  private stored(memory: Memory, home: number): TensorStorage {
    const { count } = shapeOf(ABOUT, this.dims);
    return new TensorStorage(
      { memory, start: 0, words: memory.length },
      count,
      home,
      undefined,
      this.isKept,
      this.sources[0]?.name,
    );
  }

  private section(source: Stored) {
    const memory = this.floats ?? this.storage!.data!.memory;
    return { memory, ...this.sectionOf(source, memory.length) };
  }

  /** Where a source lies among so many words of all sources. */
  private sectionOf(source: Stored, words: number) {
    const { lengths } = this;
    const place = this.sources.indexOf(source);
    const each = words / lengths.reduce(plus, 0);
    const at = lengths.slice(0, place).reduce(plus, 0) * each;
    return { at, length: lengths[place] * each };
  }

  private homeFor({ dtype, isHardware }: Keeping): number {
    if (this.role !== Role.matrix || dtype === "f32") return RESIDENT;
    if (dtype !== "auto") return PACKED[dtype];
    return isHardware ? AUTO : RESIDENT;
  }
}

const plus = (a: number, b: number): number => a + b;
const times = (a: number, b: number): number => a * b;

/** An array for this many bytes of a file. Throws where the page has no memory for them. */
export function bytesFor(bytes: number): Uint8Array {
  return allocate(wantOf(bytes), () => new Uint8Array(bytes));
}

function wantOf(bytes: number): Want {
  return { about: ABOUT, bytes, instead: "load a smaller model" };
}

/** A tensor that a model needs. */
interface Wanted {
  readonly weight: Weight;
  /** Which part of the weight it is. */
  readonly place: number;
  readonly dims: readonly number[];
  readonly hasPrefix: boolean;
  readonly name: string;
}

/** The weights of a model, and the tensors of files that each is made of. */
export class WeightList {
  readonly weights: Weight[] = [];
  /** The type of a converted folder's blocks, of several the one with the fewest bits; undefined where no file has blocks. */
  blocks: Blocks | undefined;
  /** The numbers of those that no file has. */
  readonly computed: number[] = [];
  /** The tensors that are needed, by file. */
  private readonly files = new Map<string, Wanted[]>();
  private readonly prefixes: readonly string[];

  /**
   * A line of the encoder's names a tensor of a file: the weight's number; 1 for one of 32-bit
   * floats always, 2 for one that is laid out; the tensor's dimensions, those of the weight, 1 for a
   * name with a prefix, name, file. For a weight that no file has there are its number, 3, and its
   * dimensions twice.
   */
  constructor(encoder: ModelEncoder) {
    this.prefixes = encoder.prefixes();
    for (const line of encoder.weights().split("\n")) {
      const [number, role, part, whole, hasPrefix, name, file] =
        line.split(" ");
      const weight = (this.weights[+number] ??= new Weight(
        +role,
        dimsOf(whole),
        (floats) => encoder.layOut(+number, floats),
      ));
      if (+role === Role.computed) {
        this.computed.push(+number);
        continue;
      }
      const wanted = this.files.get(file) ?? [];
      this.files.set(file, wanted);
      const dims = dimsOf(part);
      const place = weight.add(dims);
      wanted.push({ weight, place, dims, hasPrefix: hasPrefix === "1", name });
    }
  }

  /** The names of the files. */
  get names(): string[] {
    return [...this.files.keys()];
  }

  /**
   * The weight of each of a file's tensors that is needed. Throws for what is missing, of another
   * shape or type, or cannot be had as `dtype`.
   */
  sources(
    file: string,
    tensors: readonly Stored[],
    dtype: StorageType,
  ): Map<Stored, Weight> {
    const wanted = this.files.get(file)!;
    const stored = new Map(tensors.map((tensor) => [tensor.name, tensor]));
    const [first] = wanted;
    const prefix =
      this.prefixes.find((prefix) => stored.has(prefix + first.name)) ?? "";
    const sources = new Map<Stored, Weight>();
    for (const { weight, place, dims, hasPrefix, name } of wanted) {
      const whole = hasPrefix ? prefix + name : name;
      const source = stored.get(whole);
      if (source === undefined) {
        throw wrongFile(
          file,
          `tensor '${whole}' is missing, of shape ${text(dims)}`,
        );
      }
      check(file, source, dims);
      weight.sources[place] = source;
      const blocks = blocksOf(source);
      if (blocks !== blocksOf(weight.sources[0])) {
        throw wrongFile(
          file,
          `tensor '${whole}' is stored in another way than '${weight.sources[0].name}'; convert the folder again`,
        );
      }
      if (this.blocks !== "int4") this.blocks = blocks ?? this.blocks;
      sources.set(source, weight);
    }
    this.checkDtype(sources, dtype);
    return sources;
  }

  private checkDtype(
    sources: ReadonlyMap<Stored, Weight>,
    dtype: StorageType,
  ): void {
    if (dtype === "auto" || dtype === this.blocks) return;
    for (const source of sources.keys()) {
      if (blocksOf(source) === undefined) continue;
      throw new FramebatchError(
        "unsupported",
        `${ABOUT}: tensor '${source.name}' is stored as ${this.blocks}, which cannot be had as ${dtype}; leave dtype out, or load the folder that it was converted from`,
      );
    }
  }
}

/** The type of a tensor of blocks; undefined for any other. */
function blocksOf({ dtype, shape }: Stored): Blocks | undefined {
  const types = ["int8", "int4"] as const;
  const [, bytes] = shape;
  return dtype === "U8"
    ? types.find((type) => BLOCK_BYTES[PACKED[type]] === bytes)
    : undefined;
}

const dimsOf = (text: string): number[] => text.split(",").map(Number);

function check(file: string, source: Stored, whole: readonly number[]): void {
  const { name, dtype, shape } = source;
  const count = whole.reduce(times, 1);
  const isBlocks = blocksOf(source) !== undefined;
  const dims = isBlocks ? [Math.ceil(count / 64), shape[1]] : whole;
  if (shape.join() !== dims.join()) {
    throw wrongFile(
      file,
      `tensor '${name}' has shape ${text(shape)}, but config.json asks for ${text(dims)}`,
    );
  }
  if (isBlocks || ["F32", "F16", "BF16"].includes(dtype)) return;
  throw new FramebatchError(
    "unsupported",
    `${ABOUT}: ${file}: tensor '${name}' holds ${dtype}, and only F32, F16 and BF16 are known`,
  );
}

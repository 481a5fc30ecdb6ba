// The calls whose results stay on the device: `compute`, `computeInto` and `write`, and what
// is computed again after a loss.
//
// The tensors that may take results are chosen here. How the calls are answered is in
// `stored-operands.ts`; how a lost tensor gets its place on the next device, in
// `resident-tensors.ts`.

import type { ComputeOptions, StoreOptions } from "../calls/call-options.js";
import { allocate } from "../checks/allocation.js";
import { invalid } from "../checks/errors.js";
import { labeled } from "../checks/options.js";
import type { Span } from "../memory/arrays.js";
import { FLOATS, INDEXES, INTEGERS, RESIDENT } from "./codes.js";
import { copyIn, largestOf, type TensorData } from "./copy-in.js";
import type { Root } from "./chain-operands.js";
import { type DType, input, type Node } from "./node.js";
import { isRepeatable } from "./recomputation.js";
import { isSame, shapeOf, text } from "./shape.js";
import { FEWER, TensorStorage, UNKNOWN } from "./storage.js";
import {
  type COMPUTE,
  type COMPUTE_ALL,
  COMPUTE_INTO,
  StoredOperands,
  WRITE,
} from "./stored-operands.js";
import type { TensorSession } from "./tensor-session.js";

/** Results that tensors of their own take. */
export interface Computation<Answer extends object> {
  readonly method: typeof COMPUTE | typeof COMPUTE_ALL;
  readonly roots: readonly Node[];
  readonly options: ComputeOptions | undefined;
  /** What the call resolves to, of the nodes of the new tensors. */
  readonly give: (nodes: readonly Node[]) => Answer;
}

/** Has results computed into new tensors. Throws where there are too many. */
export function compute<Answer extends object>(
  calls: TensorSession,
  { method, roots, options, give }: Computation<Answer>,
): Promise<Answer> {
  const nodes = roots.map((root) => inputLike(root, options ?? {}));
  const holdsAny = ({ shape }: Node): boolean => shape.count > 0;
  const operands = new StoredOperands(calls.chains, {
    method,
    roots: roots.filter(holdsAny),
    targets: { nodes: nodes.filter(holdsAny), offset: undefined },
    targeting: "made",
    isRemembered: options?.keep !== false,
    answer: give(nodes),
  });
  return calls.take(operands, options);
}

/** Has a result stored in a tensor that is there. Throws where the tensor does not take it. */
export function computeInto(
  calls: TensorSession,
  root: Node,
  target: Node,
  options: StoreOptions | undefined,
): Promise<void> {
  const about = labeled(COMPUTE_INTO.name, options?.label);
  checkTarget(about, target);
  if (root.dtype !== target.dtype) {
    throw invalid(
      about,
      `the result holds ${nameOf(root)}, and the target ${nameOf(target)}; give a target of the same kind`,
    );
  }
  if (!isSame(root.shape.dims, target.shape.dims)) {
    throw invalid(
      about,
      `the result has shape ${text(root.shape.dims)}, and the target ${text(target.shape.dims)}; give a target of the same shape, or reshape the result`,
    );
  }
  return store(calls, { method: COMPUTE_INTO, root, target, options });
}

/** What tensors hold, by the type of their elements. */
const NAMES = [
  "floats",
  "whole numbers without a sign",
  "whole numbers with a sign",
] as const;

/** The same, and what to write there. */
const WANTED = [
  "floats; give a Float32Array, or numbers",
  "whole numbers without a sign; give a Uint32Array or an Int32Array",
  "whole numbers with a sign; give an Int32Array",
] as const;

/** What `write` takes. */
export interface Written {
  readonly data: TensorData;
  /** Elements of the target in front of the data. */
  readonly offset: number;
}

/** Has data stored in a tensor that is there. Throws where the data does not fit. */
export function write(
  calls: TensorSession,
  target: Node,
  { data, offset }: Written,
  options: StoreOptions | undefined,
): Promise<void> {
  const about = labeled(WRITE.name, options?.label);
  checkTarget(about, target);
  const { data: own, dtype: given } = copyIn(
    calls.slab,
    about,
    data,
    undefined,
  );
  const { dtype, shape } = target;
  const isHalves = own.memory instanceof Uint16Array;
  const isIndexes = dtype === INDEXES && given === INTEGERS;
  if (isHalves || (given !== dtype && !isIndexes)) {
    throw invalid(about, `the tensor holds ${WANTED[dtype]}`);
  }
  // Numbers without a sign are at most 2³¹ − 1 where their bits are those of numbers with one.
  if (isIndexes && largestOf(own) >= 2 ** 31) {
    throw invalid(
      about,
      "the tensor holds whole numbers from 0; give no others",
    );
  }
  if (!Number.isInteger(offset) || offset < 0) {
    throw invalid(about, `offset must be a whole number from 0, got ${offset}`);
  }
  const { words } = own;
  if (offset + words > shape.count) {
    throw invalid(
      about,
      `data has ${words} elements and begins at element ${offset}, but the tensor holds ${shape.count}; give fewer, or a smaller offset`,
    );
  }
  const label = options?.label;
  const storage = storageOf(words, dtype, label === undefined ? {} : { label });
  // While the session opens, the caller may change its array before the call is written.
  storage.data = calls.core === undefined ? copyOf(about, own) : own;
  storage.isPassing = true;
  const isWhole = words === shape.count;
  const root = input(isWhole ? shape : shapeOf(about, [words]), storage, dtype);
  const part = isWhole ? undefined : offset;
  return store(calls, { method: WRITE, root, target, options, part });
}

/**
 * Computes tensors again that another device has room for, each behind its operands. Those
 * whose operands are not what they were hold their last snapshots, or are lost.
 */
export function recomputeTensors(calls: TensorSession): void {
  const { residents } = calls;
  const storages = residents.recomputable;
  if (storages.length === 0) return;
  residents.restoreFirst(() => {
    for (const storage of storages) recompute(calls, storage);
  });
}

function recompute(calls: TensorSession, storage: TensorStorage): void {
  const { recomputation, label } = storage;
  if (!isRepeatable(recomputation!)) {
    return calls.residents.revert(storage, "what it was computed from is gone");
  }
  const operands = recomputation!.again(storage);
  // Reading the tensor rejects where this does.
  calls.take(operands, label === undefined ? label : { label }).catch(ignore);
}

/** A result and the tensor that takes it. */
interface Stored {
  readonly method: typeof COMPUTE_INTO | typeof WRITE;
  readonly root: Node;
  readonly target: Node;
  readonly options: StoreOptions | undefined;
  /** The element of the target where the result begins, where it fills a part. */
  readonly part?: number | undefined;
}

function store(
  calls: TensorSession,
  { method, root, target, options, part }: Stored,
): Promise<void> {
  const isEmpty = root.shape.count === 0;
  const operands = new StoredOperands(calls.chains, {
    method,
    roots: isEmpty ? [] : [root],
    targets: { nodes: isEmpty ? [] : [target], offset: part },
    targeting: "given",
    isRemembered: false,
    answer: undefined,
  });
  return calls.take(operands, options);
}

/** An input that is going to be computed, shaped like a result. */
export function inputLike(
  { shape, dtype }: Root,
  options: ComputeOptions,
): Node {
  const storage = storageOf(shape.count, dtype, options);
  if (shape.count > 0) storage.expect();
  return input(shape, storage, dtype);
}

function storageOf(
  words: number,
  dtype: DType,
  options: ComputeOptions,
): TensorStorage {
  const largest = dtype === FLOATS ? undefined : UNKNOWN;
  const memory = dtype === FLOATS ? new Float32Array(0) : new Uint32Array(0);
  const data = { memory, start: 0, words: 0 };
  const { label } = options;
  return new TensorStorage(
    data,
    words,
    RESIDENT,
    largest,
    true,
    label,
    0,
    options,
  );
}

/** Throws for a tensor that no call can write. */
export function checkTarget(about: string, { storage }: Node): void {
  if (storage === undefined) {
    throw invalid(
      about,
      "a recorded tensor has no memory to write to; await its compute() first, and write to that tensor",
    );
  }
  if (storage.place !== undefined) {
    throw invalid(
      about,
      "a GPUBuffer of the page is read only; write to a tensor of gpu.tensor, and use its gpuBuffer()",
    );
  }
  if (storage.home !== RESIDENT) {
    throw invalid(
      about,
      "a tensor in fewer bits cannot be written; make it with dtype 'f32'",
    );
  }
}

function copyOf(about: string, { memory, start, words }: Span): Span {
  const want = { about, bytes: words * 4, instead: FEWER };
  const own = allocate(want, () => memory.slice(start, start + words));
  return { memory: own, start: 0, words };
}

function nameOf({ dtype }: Node): string {
  return NAMES[dtype];
}

function ignore(): void {}

// The package's public names, and nothing else.

export { isSupported, open, shared } from "./open.js";
export { CODES, type Code, FramebatchError } from "./errors.js";
export type { Session } from "./session.js";
export type { Mode, States } from "./states.js";
export type { Fraction, Points } from "./check.js";
export type {
  CallOptions,
  GradientsOptions,
  LerpOptions,
} from "./call-options.js";
export type { OpenOptions, Scheduler } from "./options.js";
export type { Info, Routing, Stats } from "./stats.js";
export type { BatchSizes } from "./batch-size.js";
export type { BatchFacts } from "./facts.js";
export type { BatchListener } from "./metrics.js";
export type { Profile, ProfileOptions } from "./profile.js";
export type { StreamSource } from "./stream/source.js";
export type {
  ChunkContext,
  ChunkFunction,
  Stream,
  StreamOptions,
  StreamProgress,
} from "./stream/stream.js";
export type { DeviceEvent, TensorBuffer, WasmSource } from "./core.js";
export type { DeviceListener, DeviceNews } from "./events.js";
export type { NestedNumbers, TensorData } from "./tensor/intake.js";
export type { AttentionOptions } from "./tensor/attention.js";
export type { ReadAllOptions } from "./tensor/entry.js";
export type { NormOptions, ReduceOptions } from "./tensor/fold.js";
export type { StorageType, TensorOptions } from "./tensor/input.js";
export type { SliceRange } from "./tensor/move.js";
export type {
  ArraysOf,
  DTypeOf,
  Elements,
  Fresh,
  KindOf,
} from "./tensor/kinds.js";
export type { Tensor } from "./tensor/tensor.js";

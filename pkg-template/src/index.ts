// The package's public names, and nothing else.

export { open, shared } from "./session/open.js";
export { isSupported } from "./core/webgpu.js";
export { CODES, type Code, FramebatchError } from "./checks/errors.js";
export type { Session } from "./session/session.js";
export type { Mode, States } from "./session/states.js";
export type { Priority } from "./checks/priority.js";
export type { Fraction, Points } from "./calls/arguments.js";
export type {
  CallOptions,
  ComputeOptions,
  GradientsOptions,
  LerpOptions,
  StoreOptions,
} from "./calls/call-options.js";
export type { StorageOptions } from "./checks/storage-options.js";
export type { OpenOptions } from "./session/open-options.js";
export type {
  CpuReason,
  Info,
  Routing,
  Stats,
  Tuning,
} from "./metrics/stats.js";
export type { BatchSizes, EncoderSizes } from "./session/batch-size.js";
export type { BatchFacts, BatchListener } from "./metrics/batch-facts.js";
export type { Profile, ProfileOptions, Spread } from "./metrics/profile.js";
export type { StreamSource } from "./stream/source.js";
export type {
  ChunkContext,
  ChunkFunction,
  Stream,
  StreamOptions,
  StreamProgress,
} from "./stream/stream.js";
export type { DeviceEvent, TensorBuffer, WasmSource } from "./core/core.js";
export type { DeviceListener, DeviceNews } from "./session/device-listeners.js";
export type {
  LostTensor,
  RevertedTensor,
  TensorNews,
} from "./tensor/resident-tensors.js";
export type { NestedNumbers, TensorData } from "./tensor/copy-in.js";
export type { AttentionOptions } from "./tensor/attention.js";
export type { ReadAllOptions } from "./tensor/session-methods.js";
export type { NormOptions, ReduceOptions } from "./tensor/reductions.js";
export type { BufferOptions } from "./tensor/buffer-input.js";
export type { StorageType, TensorOptions } from "./tensor/input.js";
export type { SliceRange } from "./tensor/data-movement.js";
export type {
  ArraysOf,
  DTypeOf,
  Elements,
  DataOf,
  Fresh,
  KindOf,
  TensorsOf,
} from "./tensor/kinds.js";
export type { Tensor } from "./tensor/tensor.js";
export type { Scheduler } from "./clock/clock.js";

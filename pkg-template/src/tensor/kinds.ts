// The kinds of elements of tensors, as types alone.

import type { NestedNumbers, TensorData } from "./copy-in.js";
import type { Tensor } from "./tensor.js";

/** What a tensor may hold: floats, or whole numbers without or with a sign. */
export type Elements = Float32Array | Uint32Array | Int32Array;

/** The array that reading gives where none is given. */
export type Fresh<Kind extends Elements> = Kind extends Float32Array
  ? Float32Array<ArrayBuffer>
  : Kind extends Uint32Array
    ? Uint32Array<ArrayBuffer>
    : Int32Array<ArrayBuffer>;

/** How the elements of a kind are named. */
export type DTypeOf<Kind extends Elements> = Kind extends Float32Array
  ? "float32"
  : Kind extends Uint32Array
    ? "uint32"
    : "int32";

/** What a tensor of some data holds. */
export type KindOf<Data extends TensorData> = Data extends Uint32Array
  ? Uint32Array
  : Data extends Int32Array
    ? Int32Array
    : Float32Array;

/** What may be written to a tensor of a kind. */
export type DataOf<Kind extends Elements> = Kind extends Float32Array
  ? Float32Array | NestedNumbers
  : Kind extends Uint32Array
    ? Uint32Array | Int32Array
    : Int32Array;

/** The tensors that computing tensors gives. */
export type TensorsOf<Tensors extends readonly Tensor<Elements>[]> = {
  -readonly [At in keyof Tensors]: Tensors[At] extends Tensor<infer Kind>
    ? Tensor<Kind>
    : never;
};

/** The arrays that reading tensors gives. */
export type ArraysOf<Tensors extends readonly Tensor<Elements>[]> = {
  -readonly [At in keyof Tensors]: Tensors[At] extends Tensor<infer Kind>
    ? Fresh<Kind>
    : never;
};

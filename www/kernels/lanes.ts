// How many numbers a value of each type is.

import type { ValueType } from "framebatch/kernels";

export const TYPE_LANES: Readonly<Record<ValueType, number>> = {
  f32: 1,
  vec2f: 2,
  vec3f: 3,
  vec4f: 4,
};

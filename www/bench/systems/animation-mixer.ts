// three.js's AnimationMixer, which poses objects and computes nothing else.

import type { System } from "./system.ts";

export const animationMixer: System = {
  name: "animation-mixer",
  about: "three.js 0.187 AnimationMixer, one for all objects",
  bound: "own",
  open: ({ name }) => Promise.reject(new Error(`it has no ${name}`)),
};

// The package, whose sessions take the GPU even if it is software.

import * as framebatch from "/pkg/dist/index.js";

export * from "/pkg/dist/index.js";
export const shared = (options) =>
  framebatch.shared({ engine: "gpu", ...options });
export const open = (options) => framebatch.open({ engine: "gpu", ...options });

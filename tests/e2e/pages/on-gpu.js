// The package, with a shared session that takes the GPU even if it is software.

import * as framebatch from "/pkg/dist/index.js";

export * from "/pkg/dist/index.js";
export const shared = (options) =>
  framebatch.shared({ engine: "gpu", ...options });

// Opens sessions whose core is a WebAssembly instance of this thread.
//
// Importing this file does nothing, so a server may import components that use sessions.
// How a session is brought up is in `bring-up.ts`.

import { isRemembered, loadCore } from "../core/core-instance.js";
import { checkPlatform } from "../core/webgpu.js";
import { Opener } from "./bring-up.js";
import type { OpenOptions } from "./open-options.js";
import type { Session } from "./session.js";

const opener = /* @__PURE__ */ new Opener<OpenOptions>({
  async home({ engine, wasm }) {
    if (engine === "gpu") checkPlatform();
    return loadCore(wasm);
  },
  isRemembered,
});

/**
 * Opens a session; resolves when its device is up.
 *
 * Rejects with a {@link FramebatchError}: `invalid-input` for an option that is
 * unknown or wrong, `unsupported`, `insecure-context` or `no-adapter` where
 * `engine: "gpu"` finds no GPU.
 *
 * @example
 * const gpu = await open({ engine: "auto" });
 * const halfway = await gpu.lerp(new Float32Array([0, 10]), new Float32Array([1, 20]), 0.5);
 * // Float32Array [0.5, 15]
 * await gpu.dispose();
 */
export function open(options: OpenOptions = {}): Promise<Session> {
  return opener.open(options);
}

/**
 * The session that everything in a page shares, at once: calls wait until its
 * device is up. The first call's options count. If opening fails, the calls made
 * so far reject with the reason, and the next `shared()` starts anew; where the WebAssembly
 * file did not load, not before a second has passed, then two, four, up to a minute.
 *
 * @example
 * const gpu = shared();
 * const turned = await gpu.slerp(new Float32Array([0, 0, 0, 1]), new Float32Array([0, 1, 0, 0]), 0.5);
 */
export function shared(options: OpenOptions = {}): Session {
  return opener.shared(options);
}

// Stores of what is there while somebody subscribes: the session, and clips. Svelte itself is
// not imported: a store is any object with this `subscribe`.

import { holdClip, releaseClip } from "../animation/held-clips.js";
import type { Clip, ClipOptions } from "../animation/index.js";
import { type OpenOptions, type Session, shared } from "../index.js";
// The session's methods.
import "../animation/index.js";

/** A store, as Svelte declares it. */
export interface Readable<Value> {
  /** Hears of the value at once, and of each other one; gives what ends that. */
  subscribe(this: void, run: (value: Value) => void): () => void;
}

/** Which session a store uses. */
export interface GpuStoreOptions {
  /** A session of your own, which you dispose of. Default: the page's. */
  session?: Session;
  /** For the page's session, if nobody opened it before. */
  options?: OpenOptions;
}

/** The session of a store; undefined on a server, where nothing is opened. */
export function sessionOf({
  session,
  options,
}: GpuStoreOptions): Session | undefined {
  if (typeof document === "undefined") return undefined;
  return session ?? shared(options);
}

/**
 * A store of the page's session, or of yours; undefined on a server. The session is opened
 * with the first subscription.
 *
 * @example
 * const session = gpu();
 * // $session?.lerp(from, to, t).then(show)
 */
export function gpu(
  options: GpuStoreOptions = {},
): Readable<Session | undefined> {
  return {
    subscribe(run) {
      run(sessionOf(options));
      return () => {};
    },
  };
}

/**
 * A store of a clip of these tracks on the device, which is there while somebody subscribes;
 * undefined on a server. The same `tracks` object is the same clip, however many stores have
 * it. Wrong tracks throw as somebody subscribes, with what `gpu.clip` throws.
 *
 * @example
 * const wave = clip({ tracks: [{ times: [0, 1, 2], values: [0, 8, 0] }] });
 * // $wave?.sample(seconds, { wrap: "loop" }).then(show)
 */
export function clip(
  tracks: ClipOptions,
  options: GpuStoreOptions = {},
): Readable<Clip | undefined> {
  return {
    subscribe(run) {
      const session = sessionOf(options);
      run(session && holdClip(session, tracks));
      return once(() => session && releaseClip(session, tracks));
    },
  };
}

/** A function that does something the first time alone: subscriptions may be ended twice. */
export function once(run: () => void): () => void {
  let isDone = false;
  return () => {
    if (!isDone) run();
    isDone = true;
  };
}

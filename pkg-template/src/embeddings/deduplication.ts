// Computes equal texts that wait at the same time once, with an array for each caller.
//
// Only keys and promises are known here; which texts are equal, and how these are
// computed, the embedder decides. A caller that gives up takes nothing from others.

import { lostInto, noMemory } from "../calls/call-errors.js";
import { listen } from "../platform/abort.js";

/** How a caller wants its answer. */
export interface Asked {
  /** How messages about its call begin. */
  readonly about: string;
  readonly into: Float32Array | undefined;
  readonly signal: AbortSignal | undefined;
}

/** A caller that waits for the answer to another caller. */
interface Follower {
  /** Gives the caller its own copy. Never throws, because other callers come next. */
  answer(result: Float32Array): void;
  /** Asks for the caller alone, because the other caller got no answer. */
  again(): void;
}

/** The texts of one model that are asked for and not answered yet. */
export class Deduplication {
  private readonly asked = new Map<string, Follower[]>();

  /** The answer to `key`: a copy of the one that is being computed, or what `compute` gives. */
  ask(
    key: string,
    compute: () => Promise<Float32Array>,
    asked: Asked,
  ): Promise<Float32Array> {
    const followers = this.asked.get(key);
    if (followers !== undefined) {
      const again = () => this.ask(key, compute, asked);
      return follow(followers, again, asked);
    }
    const own: Follower[] = [];
    this.asked.set(key, own);
    const result = compute();
    // Followers are served before the first caller, which may change its array.
    result.then(
      (array) => {
        this.asked.delete(key);
        for (const follower of own) follower.answer(array);
      },
      () => {
        this.asked.delete(key);
        for (const { again } of own) again();
      },
    );
    return result;
  }
}

function follow(
  followers: Follower[],
  ask: () => Promise<Float32Array>,
  { about, into, signal }: Asked,
): Promise<Float32Array> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      const at = followers.indexOf(follower);
      if (at >= 0) followers.splice(at, 1);
      reject(signal!.reason);
    };
    const follower: Follower = {
      answer(result) {
        signal?.removeEventListener("abort", abort);
        try {
          if (into === undefined) return resolve(result.slice());
          if (into.length !== result.length) return reject(lostInto(about));
          into.set(result);
          resolve(into);
        } catch (error) {
          reject(noMemory(about, result.length, error));
        }
      },
      again() {
        signal?.removeEventListener("abort", abort);
        resolve(ask());
      },
    };
    followers.push(follower);
    listen(signal, abort);
  });
}

// Equal texts that wait at the same time: computed once, each caller its own array.
//
// It knows keys and promises; what is computed, and for whom something differs, is said
// by who asks. A caller that gives up takes nothing from the others.

import { lostInto, noMemory } from "../calls/call-errors.js";

/** What a caller wants. */
export interface Asked {
  /** How messages about its call begin. */
  readonly about: string;
  readonly into: Float32Array | undefined;
  readonly signal: AbortSignal | undefined;
}

/** A caller that waits for what another one asked. */
interface Follower {
  /** Gets its own copy. Never throws: others follow. */
  answer(result: Float32Array): void;
  /** Asks by itself: the other one got nothing. */
  again(): void;
}

/** What is asked of one model and not answered yet. */
export class Deduplication {
  private readonly asked = new Map<string, Follower[]>();

  /** The answer to `key`, of `compute` or of the one who asked the same before. */
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
    // Ahead of the caller's own reaction, which may change the array.
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
    signal?.addEventListener("abort", abort);
  });
}

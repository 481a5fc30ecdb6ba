// The bytes of the weights as they arrive, taken in the portions that tensors are.
//
// It knows no tensor, and keeps nothing but what it was given last.

import { wrongFile } from "./safetensors.js";
import type { OpenFile } from "./source.js";

/** A file taken bit by bit. */
export class ByteReader {
  /** Hears how many were taken so far. */
  report: (loaded: number) => void = () => {};
  private taken = 0;
  private rest: Uint8Array = new Uint8Array(0);

  constructor(
    private readonly file: OpenFile,
    private readonly signal: AbortSignal,
  ) {}

  async take(length: number): Promise<Uint8Array> {
    const bytes = new Uint8Array(length);
    await this.fill(bytes);
    return bytes;
  }

  async fill(to: Uint8Array): Promise<void> {
    await this.each(to.length, (part, at) => to.set(part, at));
  }

  skip(length: number): Promise<void> {
    return this.each(length, () => {});
  }

  /** Throws unless everything was taken. */
  async end(): Promise<void> {
    while (this.rest.length === 0) {
      const more = await this.file.read();
      if (more === undefined) return;
      this.rest = more;
    }
    throw wrongFile(
      `its tensors end at byte ${this.taken}, and there is more behind them`,
    );
  }

  private async each(
    length: number,
    use: (part: Uint8Array, at: number) => void,
  ): Promise<void> {
    for (let at = 0; at < length;) {
      if (this.rest.length === 0) await this.more();
      const part = this.rest.subarray(0, length - at);
      use(part, at);
      this.rest = this.rest.subarray(part.length);
      at += part.length;
      this.taken += part.length;
      this.report(this.taken);
      // Whoever hears of it may give up.
      this.signal.throwIfAborted();
    }
  }

  private async more(): Promise<void> {
    this.signal.throwIfAborted();
    const more = await this.file.read();
    this.signal.throwIfAborted();
    if (more === undefined) {
      throw wrongFile(
        `it ends at byte ${this.taken}, before its tensors do; it is truncated`,
      );
    }
    this.rest = more;
  }
}

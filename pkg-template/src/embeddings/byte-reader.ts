// Reads a file of weights as its bytes arrive, in portions of any length.
//
// Tensors are not known here. Nothing is kept but the bytes that arrived last.

import { wrongFile } from "./safetensors.js";
import type { OpenFile } from "./source.js";

/** A file that is read portion by portion. */
export class ByteReader {
  /** Hears how many bytes were read so far. */
  report: (loaded: number) => void = () => {};
  private taken = 0;
  private rest: Uint8Array = new Uint8Array(0);

  constructor(
    private readonly name: string,
    private readonly file: OpenFile,
    private readonly signal: AbortSignal,
  ) {}

  async take(length: number): Promise<Uint8Array> {
    const bytes = new Uint8Array(length);
    await this.fill(bytes);
    return bytes;
  }

  async fill(to: Uint8Array): Promise<void> {
    await this.each(to.length, (portion, at) => to.set(portion, at));
  }

  skip(length: number): Promise<void> {
    return this.each(length, () => {});
  }

  /** Throws unless the file was read to its end. */
  async end(): Promise<void> {
    while (this.rest.length === 0) {
      const more = await this.file.lend();
      if (more === undefined) return;
      this.rest = more;
    }
    throw wrongFile(
      this.name,
      `its tensors end at byte ${this.taken}, and there is more behind them`,
    );
  }

  private async each(
    length: number,
    use: (portion: Uint8Array, at: number) => void,
  ): Promise<void> {
    for (let at = 0; at < length;) {
      if (this.rest.length === 0) await this.more();
      const portion = this.rest.subarray(0, length - at);
      use(portion, at);
      this.rest = this.rest.subarray(portion.length);
      at += portion.length;
      this.taken += portion.length;
      this.report(this.taken);
      // The listener to progress may have given up.
      this.signal.throwIfAborted();
    }
  }

  private async more(): Promise<void> {
    this.signal.throwIfAborted();
    const more = await this.file.lend();
    this.signal.throwIfAborted();
    if (more === undefined) {
      throw wrongFile(
        this.name,
        `it ends at byte ${this.taken}, before its tensors do; it is truncated`,
      );
    }
    this.rest = more;
  }
}

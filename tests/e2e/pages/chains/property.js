// Holds random graphs to the oracle, and to the bits that they give alone.

import { random } from "/workload.js";
import { graph, share } from "./random.js";

/** Other graphs that one is computed with, at most. */
const NEIGHBORS = 7;

/** One session's graphs, one after the other. */
export class Property {
  /** Results that were held to a bound, and that could not be. */
  held = 0;
  open = 0;
  /** Graphs computed beside others, and dispatches that this saved. */
  merged = 0;
  saved = 0;
  /** Earlier graphs with their bits. */
  recent = [];

  static async open(engine, options) {
    const gpu = await framebatch.open({ engine, flush: "manual", ...options });
    return new Property(gpu, await share(gpu), engine === "cpu");
  }

  constructor(gpu, shared, isExact) {
    Object.assign(this, { gpu, shared, isExact });
  }

  /** Tries the graphs of some seeds. Throws for the first that is wrong. */
  async run(first, count) {
    for (let seed = first; seed < first + count; seed++) {
      try {
        await this.try(seed);
      } catch (error) {
        throw new Error(`graph ${seed}: ${error.message}`, { cause: error });
      }
    }
    const { held, open, merged, saved } = this;
    return { held, open, merged, saved };
  }

  async try(seed) {
    const next = random(seed ^ 0x5bd1e995);
    const rows = 1 + Math.floor(next() * 40);
    const own = { seed, rows, data: seed };
    const alone = await this.alone(own);
    const beside = [alone];
    const neighbors = 1 + Math.floor(next() * NEIGHBORS);
    for (let i = 0; i < neighbors; i++) {
      const other = this.recent[Math.floor(next() * this.recent.length)];
      // The same operations on other shapes, or what came before.
      if (i < 2 || other === undefined) {
        const rows = 1 + Math.floor(next() * 40);
        const twin = { seed, rows, data: seed + 1e6 * (i + 1) };
        beside.push(await this.alone(twin));
      } else beside.push(other);
    }
    await this.compare(beside, Math.floor(next() * beside.length));
    this.recent.push(alone);
    if (this.recent.length > NEIGHBORS) this.recent.shift();
  }

  /** A graph with its bits, and with what is known of each of its results. */
  async alone(own) {
    const before = this.gpu.stats().dispatches;
    const { values, results } = await this.ask([own], true);
    own.dispatches = this.gpu.stats().dispatches - before;
    values[0].forEach((root, i) => this.hold(root, results[0][i], i));
    // WGSL says nothing of the other values, such as x / 0, and a GPU may give anything.
    const known = values[0].map(({ expected }) =>
      expected.values.map(({ e }) => this.isExact || e < Infinity),
    );
    return { own, known, bits: bitsOf(results[0], known) };
  }

  /** Asks for all of them at once, beginning with any. */
  async compare(beside, first) {
    const turned = [...beside.slice(first), ...beside.slice(0, first)];
    const before = this.gpu.stats().dispatches;
    const { results } = await this.ask(turned.map(({ own }) => own));
    const together = this.gpu.stats().dispatches - before;
    turned.forEach(({ own, known, bits }, i) => {
      const found = bitsOf(results[i], known);
      if (found === bits) return;
      throw new Error(
        `${JSON.stringify(own)} gives other bits (${difference(bits, found)}) beside ${JSON.stringify(turned.map((other) => other.own))}`,
      );
    });
    this.merged += 1;
    this.saved +=
      turned.reduce((sum, { own }) => sum + own.dispatches, 0) - together;
  }

  /** The results of graphs that are sent together, and what they should be if asked for. */
  async ask(graphs, isHeld = false) {
    const values = graphs.map((own) =>
      graph(this.gpu, this.shared, { ...own, isHeld }),
    );
    const answers = values.map((roots) =>
      this.gpu.readAll(roots.map(({ tensor }) => tensor)),
    );
    this.gpu.flush();
    return { values, results: await Promise.all(answers) };
  }

  hold({ expected: { values } }, result, output) {
    if (values.length !== result.length) {
      throw new Error(
        `result ${output} has ${result.length} elements, not ${values.length}`,
      );
    }
    values.forEach(({ v, e }, i) => {
      if (e === Infinity) {
        this.open += 1;
        return;
      }
      this.held += 1;
      if (Math.abs(result[i] - v) <= e) return;
      throw new Error(
        `result ${output}, element ${i}: ${result[i]} instead of ${v} ± ${e}`,
      );
    });
  }
}

/** Bits of results, where they are known, as one text. */
function bitsOf(arrays, known) {
  return arrays
    .map(({ buffer, byteOffset, length }, i) =>
      Array.from(new Uint32Array(buffer, byteOffset, length), (bits, k) =>
        known[i][k] ? (isNotANumber(bits) ? "NaN" : bits) : "?",
      ).join(),
    )
    .join(";");
}

/** WebAssembly leaves it open which bits a result has that is not a number. */
const isNotANumber = (bits) => (bits & 0x7fffffff) > 0x7f800000;

/** The first place where two texts of bits differ, and how. */
function difference(bits, others) {
  const [a, b] = [bits, others].map((text) => text.split(/[,;]/));
  const at = a.findIndex((word, i) => word !== b[i]);
  return `element ${at}: ${a[at]}, then ${b[at]}`;
}

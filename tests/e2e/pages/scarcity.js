// A GPU with little memory, as a page sees one, and streams under a memory budget.

import { GRADIENTS } from "/oracle.js";
import { count } from "/counting.js";
import { bytes, floats, random } from "/workload.js";

/**
 * From here on no device makes a buffer of more than `most` bytes: it is invalid, and
 * the scope for out-of-memory hears of it. Returns what ends it, which returns how often
 * that was.
 */
export function refuseBuffers(most) {
  const { createBuffer, pushErrorScope, popErrorScope } = GPUDevice.prototype;
  const scopes = new WeakMap();
  const scopesOf = (device) => {
    if (!scopes.has(device)) scopes.set(device, []);
    return scopes.get(device);
  };
  let refused = 0;
  GPUDevice.prototype.createBuffer = function (desc) {
    if (desc.size <= most) return createBuffer.call(this, desc);
    refused++;
    const scope = scopesOf(this).findLast((scope) => scope.isOfMemory);
    if (scope) scope.isOut = true;
    pushErrorScope.call(this, "validation");
    const buffer = createBuffer.call(this, { ...desc, usage: 0 });
    popErrorScope.call(this);
    return buffer;
  };
  GPUDevice.prototype.pushErrorScope = function (filter) {
    scopesOf(this).push({ isOfMemory: filter === "out-of-memory" });
    pushErrorScope.call(this, filter);
  };
  GPUDevice.prototype.popErrorScope = function () {
    const { isOut } = scopesOf(this).pop() ?? {};
    const caught = popErrorScope.call(this);
    const error = () => new GPUOutOfMemoryError("no memory is left");
    return isOut ? caught.then(error) : caught;
  };
  return () => {
    const own = { createBuffer, pushErrorScope, popErrorScope };
    Object.assign(GPUDevice.prototype, own);
    return refused;
  };
}

/** The same for results: no more than `most` bytes are mapped to be read. */
export function refuseMaps(most) {
  const { mapAsync } = GPUBuffer.prototype;
  let refused = 0;
  GPUBuffer.prototype.mapAsync = function (mode, offset = 0, size = this.size) {
    if (mode !== GPUMapMode.READ || size <= most)
      return mapAsync.call(this, mode, offset, size);
    refused++;
    return Promise.reject(new DOMException("no memory", "OperationError"));
  };
  return () => {
    GPUBuffer.prototype.mapAsync = mapAsync;
    return refused;
  };
}

const KINDS = [
  {
    make: (chance, k) => bytes(16 * lengthBy(chance, 1 << 15), k),
    call: (gpu, states, options) => gpu.states.gradients(states, options),
    expected: (states) => {
      const sum = states.reduce((sum, byte) => sum + GRADIENTS[byte >> 4], 0);
      return { length: states.length * 2, sum };
    },
  },
  {
    make: (chance, k) => floats(lengthBy(chance, 1 << 19), k),
    call: (gpu, from, options) => gpu.lerp(from, from, 0.5, options),
    expected: (from) => ({ length: from.length, sum: total(from) }),
  },
  {
    make: (chance, k) => floats(64 * lengthBy(chance, 1 << 12), k),
    call: (gpu, rows, options, { ones }) =>
      gpu
        .tensor(rows, [rows.length / 64, 64], { keep: false })
        .matmul(ones)
        .read(options),
    // Every row's sum, 64 times.
    expected: (rows) => ({ length: rows.length, sum: 64 * total(rows) }),
  },
];

/** Mostly small, now and then as large as may be. */
function lengthBy(chance, most) {
  return 1 + Math.floor(most * chance() ** 4);
}

function total(numbers) {
  let sum = 0;
  for (const number of numbers) sum += number;
  return sum;
}

/**
 * Streams of all kinds at the same time on `gpu`, for so many seconds. Resolves to how many
 * chunks there were, how many results were wrong in their length or their sum, and what
 * memory was held.
 */
export async function streaming(gpu, { seconds, seed = 1 }) {
  const until = performance.now() + seconds * 1000;
  const ones = gpu.tensor(new Float32Array(64 * 64).fill(1), [64, 64]);
  const report = { chunks: 0, results: 0, wrong: 0, mostRounded: 0 };

  async function stream(kind, which) {
    const chance = random(seed * 100 + which);
    const given = [];
    function* source() {
      // At least two, however slow the machine.
      for (let k = 0; k < 2 || performance.now() < until; k++) {
        const chunk = kind.make(chance, seed * 1e6 + which * 1e5 + k);
        given.push(chunk);
        report.chunks++;
        yield chunk;
      }
    }
    const call = (chunk, { signal }) =>
      kind.call(gpu, chunk, { signal }, { ones });
    for await (const result of gpu.stream(source(), call)) {
      const { length, sum } = kind.expected(given.shift());
      const isRight =
        result.length === length &&
        Math.abs(total(result) - sum) <= 1e-5 * length;
      report.results++;
      if (!isRight) report.wrong++;
      const { bytes, liveBytes, buffers } = gpu.stats().pool;
      // The smallest buffer is 64 KiB, whatever it is for.
      const rounded = bytes - liveBytes - 65536 * buffers;
      report.mostRounded = Math.max(report.mostRounded, rounded / liveBytes);
    }
  }

  await Promise.all(KINDS.map(stream));
  ones.dispose();
  const { pool, fallbacks, pending } = gpu.stats();
  return { ...report, pool, fallbacks, pending, counted: count().mostBytes };
}

// Counts what reaches WebGPU, by wrapping the methods of its prototypes.
//
// The wrappers see every caller in the page or worker, the package included, and change
// nothing that callers do. Submissions without command buffers are nudges, and count apart.

const counts = {
  submits: 0,
  nudges: 0,
  writes: 0,
  readMaps: 0,
  writeMaps: 0,
  dispatches: 0,
  /** By the method's name: createBuffer, createBindGroup, … */
  created: {},
  liveBuffers: 0,
  /** Bytes of the live buffers, now and at most. */
  liveBytes: 0,
  mostBytes: 0,
};
const memories = [];

// An insecure page has no WebGPU to count.
if ("GPUQueue" in globalThis) {
  wrapQueue();
  wrapBuffers();
  wrapDevice();
}
wrapWebAssembly();

/** The counts so far. */
export function count() {
  return structuredClone(counts);
}

/** What was counted while `work` ran, and what it resolved to. */
export async function during(work) {
  const before = count();
  const value = await work();
  return { value, counts: since(before) };
}

/** What was counted after `before` was taken. */
export function since(before) {
  const change = (now, then) =>
    typeof now === "number"
      ? now - then
      : Object.fromEntries(
          Object.keys(now).map((key) => [key, change(now[key], then[key])]),
        );
  return change(counts, before);
}

/** What a warm batch must not make: everything but the encoders, which a submission uses up. */
export function lasting({ created }) {
  const { createCommandEncoder, ...rest } = created;
  return Object.fromEntries(Object.entries(rest).filter(([, n]) => n !== 0));
}

/** Bytes of WebAssembly memory in the page. */
export const wasmBytes = () =>
  memories.reduce((sum, memory) => sum + memory.buffer.byteLength, 0);

function wrapQueue() {
  wrap(GPUQueue.prototype, "submit", (buffers) => {
    if (buffers.length > 0) counts.submits++;
    else counts.nudges++;
  });
  wrap(GPUQueue.prototype, "writeBuffer", () => counts.writes++);
  for (const method of ["dispatchWorkgroups", "dispatchWorkgroupsIndirect"]) {
    wrap(GPUComputePassEncoder.prototype, method, () => counts.dispatches++);
  }
}

function wrapBuffers() {
  wrap(GPUBuffer.prototype, "mapAsync", (mode) => {
    if (mode & GPUMapMode.READ) counts.readMaps++;
    else counts.writeMaps++;
  });
  const live = new WeakSet();
  const { createBuffer } = GPUDevice.prototype;
  GPUDevice.prototype.createBuffer = function (desc) {
    const buffer = createBuffer.call(this, desc);
    live.add(buffer);
    counts.liveBuffers++;
    counts.liveBytes += desc.size;
    counts.mostBytes = Math.max(counts.mostBytes, counts.liveBytes);
    return buffer;
  };
  const { destroy } = GPUBuffer.prototype;
  GPUBuffer.prototype.destroy = function () {
    if (live.delete(this)) {
      counts.liveBuffers--;
      counts.liveBytes -= this.size;
    }
    destroy.call(this);
  };
}

function wrapDevice() {
  for (const method of Object.getOwnPropertyNames(GPUDevice.prototype)) {
    if (!method.startsWith("create")) continue;
    counts.created[method] = 0;
    wrap(GPUDevice.prototype, method, () => counts.created[method]++);
  }
}

function wrapWebAssembly() {
  for (const method of ["instantiate", "instantiateStreaming"]) {
    const original = WebAssembly[method];
    WebAssembly[method] = async (...args) => {
      const made = await original(...args);
      const { exports } = made.instance ?? made;
      if (exports.memory) memories.push(exports.memory);
      return made;
    };
  }
}

function wrap(prototype, method, before) {
  const original = prototype[method];
  prototype[method] = function (...args) {
    before(...args);
    return original.apply(this, args);
  };
}

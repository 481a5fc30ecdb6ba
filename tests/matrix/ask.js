// What every environment of the matrix asks a session: four calls of four kinds, and who computed
// them.

import "framebatch/animation";

export async function ask(gpu) {
  const bytes = new Uint8Array(16).fill(0x80);
  const x = gpu.tensor([1, 2, 3, 4], [2, 2]);
  const rise = gpu.clip({ tracks: [{ times: [0, 2], values: [0, 10] }] });
  const found = await Promise.all([
    gpu.lerp(new Float32Array([0, 10]), new Float32Array([1, 20]), 0.5),
    gpu.states.lerp(bytes, bytes, 0.5),
    x.matmul(x).relu().sum(1).read(),
    rise.sample(1),
  ]);
  const { engine } = gpu.info;
  await gpu.dispose();
  return { answers: found.map((each) => Array.from(each)), engine };
}

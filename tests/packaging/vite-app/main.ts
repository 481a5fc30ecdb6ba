// A frame of calls in an app that installed the package; the result goes to the page.

import { FramebatchError, open, type Session, type Stats } from "framebatch";

const gpu: Session = await open({ engine: "gpu" });
const from = new Float32Array([0, 10, 20]);
const to = new Float32Array([1, 20, 40]);
const answers: Float32Array[] = await Promise.all(
  Array.from({ length: 100 }, (_, i) => gpu.lerp(from, to, i / 100)),
);
const refused: string = await gpu
  .lerp(from, new Float32Array(1), 0.5)
  .then(() => "answered")
  .catch((error: unknown) =>
    error instanceof FramebatchError ? error.code : String(error),
  );
const { calls, submits }: Stats = gpu.stats();
await gpu.dispose();

document.body.dataset.result = JSON.stringify({
  halfway: Array.from(answers[50]),
  refused,
  calls,
  submits,
});

// A page that does not get the WebAssembly, and one that holds it in a script.

import "/pkg/dist/animation.js";
import { open, shared } from "/pkg/dist/index.js";

const warnings = [];
console.warn = (text) => warnings.push(text);
const { search } = location;
if (search === "?inline") await import("/pkg/dist/inline.js");

/** What opening and a call come to, and what a tween does meanwhile. */
async function look() {
  const gpu = shared({ engine: "cpu" });
  const tween = gpu.tween(0, 1, { duration: 0.05 });
  const call = await gpu
    .lerp(new Float32Array([0, 10]), new Float32Array([1, 20]), 0.5)
    .then(Array.from, ({ code, message }) => ({ code, message }));
  const again = await open({ engine: "cpu" }).then(
    () => "open",
    ({ cause }) => cause instanceof Error,
  );
  return { call, again, finished: await tween.finished, warnings };
}

window.found = await look();

// Sessions that lose their devices, each at a load and at moments of its own: whether any
// call is left waiting.
//
// Seeded. It destroys devices and judges nothing but the calls; whoever runs it says what
// must come out.

import { open } from "/pkg/dist/index.js";
import { Traffic } from "/traffic.js";
import { random } from "/workload.js";

const sleep = (ms) => new Promise((run) => setTimeout(run, ms));

/** Calls a second: from one to more than any GPU answers. */
const RATES = [1, 10, 100, 1000, 5000, 20_000];

/** No more calls are pending at a time, so that the page itself is not what is slow. */
const AT_MOST = 20_000;

/** Longer than a session waits for a GPU that answers nothing, in milliseconds. */
const PATIENCE_MS = 30_000;

/**
 * A session of its own that makes calls for `ms` and loses its device `losses` times
 * meanwhile. Resolves to what became of the calls and what the session told.
 */
export async function losing({ seed, engine, losses = 3, ms = 600 }) {
  const chance = random(seed);
  const perSecond = RATES[Math.floor(chance() * RATES.length)];
  const flush = chance() < 0.5 ? "frame" : "eager";
  const gpu = await open({ engine, flush });
  const news = [];
  for (const event of ["lost", "restored", "fallback"]) {
    gpu.on(event, ({ type }) => news.push(type));
  }
  const terms = { perSecond, atMost: AT_MOST, patienceMs: PATIENCE_MS };
  const traffic = new Traffic(gpu, terms);
  // Some devices go with the first call, when the session still measures them; some go
  // while the one before is still being replaced.
  const moments = Array.from({ length: losses }, () => chance() * ms);
  moments.sort((a, b) => a - b);
  const start = performance.now();
  for (const moment of moments) {
    await sleep(Math.max(0, moment - (performance.now() - start)));
    gpu.device?.destroy();
  }
  await sleep(Math.max(0, ms - (performance.now() - start)));
  const report = await traffic.stop();
  const { info } = gpu;
  const stats = report.unsettled > 0 ? gpu.stats() : undefined;
  await gpu.dispose();
  const told = { on: info.engine, moments, news, stats };
  return { seed, engine, perSecond, flush, ...told, ...report };
}

/** Many losses, `atOnce` at a time; the runs that did not come to a good end. */
export async function losingOften({ first, count, engines, atOnce = 1 }) {
  const bad = [];
  let [next, calls, lost] = [first, 0, 0];
  const work = async () => {
    while (next < first + count) {
      const seed = next++;
      const engine = engines[seed % engines.length];
      const report = await losing({ seed, engine });
      const { made, right, wrong, unsettled, refused, uncaught } = report;
      const known = refused["device-lost"] ?? 0;
      calls += made;
      lost += known;
      const is = wrong + unsettled + uncaught.length === 0;
      if (!is || right + known !== made) bad.push(report);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return { count, calls, lost, bad };
}

// A page that opens one system, makes one call, and tells the page around it how
// long that took. `?system=NAME`, and `?probe` to look for long tasks instead.

import { check } from "./measure.ts";
import { lerp } from "./ops/lerp.ts";
import type { Fresh } from "./special/fresh-page.ts";
import { Probe } from "./special/probe.ts";
import { SYSTEMS } from "./systems/index.ts";

const SHAPE = { calls: 1, items: 256 };

const query = new URLSearchParams(location.search);
const answer = await firstCall().catch((error: unknown) => ({
  problem: error instanceof Error ? error.message : String(error),
}));
parent.postMessage(answer, location.origin);

async function firstCall(): Promise<Fresh> {
  const system = SYSTEMS.find(({ name }) => name === query.get("system"))!;
  const calls = lerp.calls(SHAPE.calls, SHAPE.items);
  const probe = query.has("probe") ? new Probe() : undefined;
  const start = performance.now();
  const opened = await system.open(lerp, calls);
  const open = performance.now();
  const longestOpen = (await probe?.longest()) ?? 0;
  const asked = performance.now();
  const answers = await opened.run(calls);
  const end = performance.now();
  const longestCall = (await probe?.longest()) ?? 0;
  probe?.stop();
  const error = check(lerp, system, calls, answers);
  await opened.close();
  return {
    open: open - start,
    call: end - asked,
    longestOpen,
    longestCall,
    error,
  };
}

// A page that loads one system's model, embeds one text, and tells the page around it
// how long both took. `?system=NAME`.

import type { First } from "./first-page.ts";
import { SYSTEMS } from "./systems.ts";
import { textOf } from "./texts.ts";

const query = new URLSearchParams(location.search);
const answer = await first().catch((error: unknown) => ({
  problem: error instanceof Error ? error.message : String(error),
}));
parent.postMessage(answer, location.origin);

async function first(): Promise<First> {
  const system = SYSTEMS.find(({ name }) => name === query.get("system"))!;
  const start = performance.now();
  const opened = await system.open();
  const loaded = performance.now();
  await opened.each([textOf(8, 1)]);
  const end = performance.now();
  await opened.close();
  return { load: loaded - start, first: end - loaded };
}

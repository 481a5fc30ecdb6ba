// Opens fresh pages, in frames of this one, that each make one first call.

import { pause, type Terms } from "../measure.ts";
import type { System } from "../systems/system.ts";

/** What a fresh page reports, in milliseconds. */
export interface Fresh {
  /** Loading and opening. */
  open: number;
  /** The first call, after that. */
  call: number;
  /** The longest tasks meanwhile; 0 unless probed. */
  longestOpen: number;
  longestCall: number;
  error: number;
}

export async function repeatFresh(
  system: System,
  count: number,
  terms: Terms,
  ...flags: "probe"[]
): Promise<Fresh[]> {
  const runs: Fresh[] = [];
  while (runs.length < count) {
    terms.signal.throwIfAborted();
    runs.push(await fresh(system.name, flags));
    // The page's device is being destroyed.
    await pause(50);
  }
  return runs;
}

function fresh(system: string, flags: string[]): Promise<Fresh> {
  const query = new URLSearchParams({ system });
  for (const flag of flags) query.set(flag, "");
  return ask(`./fresh.html?${query}`);
}

/** What a fresh page at `url` posts to this one. */
export async function ask<Answer extends object>(url: string): Promise<Answer> {
  const page = document.createElement("iframe");
  page.src = url;
  page.hidden = true;
  const answer = new Promise<Answer | { problem: string }>((resolve) => {
    const heard = ({ data, source }: MessageEvent) => {
      if (source !== page.contentWindow) return;
      removeEventListener("message", heard);
      resolve(data);
    };
    addEventListener("message", heard);
  });
  document.body.append(page);
  const result = await answer;
  page.remove();
  if (isProblem(result)) throw new Error(result.problem);
  return result;
}

const isProblem = (answer: object): answer is { problem: string } =>
  "problem" in answer;

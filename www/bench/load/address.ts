// A load of one's own, as the address of the page says it.
//
//   ?rate=2000          calls a second; several with commas
//   ?arrivals=poisson   or burst
//   ?mix=mixed          or lerp
//   ?animate=1          the page makes a call in each frame, too
//   ?seconds=5          how long a load lasts, also those of the table
//   ?policy=auto        and ?engine=gpu: framebatch as said; several with commas
//
// Systems that are no sessions of this package are named by `?systems=`, as on every page
// of the bench. What no rule here takes is refused by its name.

import { ARRIVALS } from "./arrivals.ts";
import { ENGINES, POLICIES, systemName } from "./framebatch.ts";
import type { Load } from "./measure-load.ts";
import { MIXES } from "./mix.ts";

/** What is asked for; undefined where the address does not say. */
export interface Asked {
  readonly loads: readonly Load[];
  readonly seconds: number | undefined;
  /** Names of systems, with commas between them. */
  readonly systems: string | undefined;
}

/** Loads last no longer. */
const MOST_SECONDS = 600;
const MOST_CALLS_A_SECOND = 1_000_000;

export function asked(query: URLSearchParams): Asked {
  const given = query.get("seconds");
  const seconds =
    given === null ? undefined : numberOf("seconds", given, MOST_SECONDS);
  const frames = query.get("animate") === "1" ? "animated" : "still";
  const arrivals = listOf(query, "arrivals", ARRIVALS, "poisson");
  const mixes = listOf(query, "mix", MIXES, "mixed");
  const rates = (query.get("rate") ?? "").split(",").filter(Boolean);
  const loads = rates.flatMap((text) => {
    const rate = numberOf("rate", text, MOST_CALLS_A_SECOND);
    return mixes.flatMap((mix) =>
      arrivals.map((arrivals) => ({ arrivals, rate, mix, frames, seconds })),
    );
  }) as Load[];
  return { loads, seconds, systems: systemsOf(query) };
}

/** The sessions that are asked for by policy and engine. */
function systemsOf(query: URLSearchParams): string | undefined {
  if (!query.has("policy") && !query.has("engine")) return undefined;
  const policies = listOf(query, "policy", POLICIES, POLICIES.join());
  const engines = listOf(query, "engine", ENGINES, ENGINES[0]);
  const others = (query.get("systems") ?? "").split(",").filter(Boolean);
  return engines
    .flatMap((engine) => policies.map((policy) => systemName(policy, engine)))
    .concat(others)
    .join();
}

/** The values of a parameter, each one of the known ones. */
function listOf<Value extends string>(
  query: URLSearchParams,
  name: string,
  known: readonly Value[],
  usual: string,
): Value[] {
  const values = (query.get(name) || usual).split(",") as Value[];
  const wrong = values.find((value) => !known.includes(value));
  if (wrong !== undefined) {
    throw new Error(`${name} is one of ${known.join(", ")}, not ${wrong}`);
  }
  return values;
}

function numberOf(name: string, text: string, most: number): number {
  const value = Number(text);
  if (!(value > 0 && value <= most)) {
    throw new Error(`${name} is more than 0 and at most ${most}, not ${text}`);
  }
  return value;
}

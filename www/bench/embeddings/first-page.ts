// Opens a fresh page, in a frame of this one, that loads a model and embeds one text.

import { ask } from "../special/fresh-page.ts";

/** What it reports, in milliseconds. */
export interface First {
  load: number;
  first: number;
}

export const firstOf = (system: string): Promise<First> =>
  ask(`./first.html?${new URLSearchParams({ system })}`);

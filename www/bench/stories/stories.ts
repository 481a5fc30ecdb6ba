// The five rows that the bench begins with: what is asked, in plain words, and who answers.
//
// Each is a workload of the bench; the words are in stories.json, which tools read as well,
// and the measuring is there.

import data from "./stories.json";

export interface Story {
  readonly title: string;
  readonly about: string;
  /** The workload that measures it, by name. */
  readonly workload: string;
  /** Who is shown, by name. */
  readonly systems: readonly string[];
}

export const STORIES: readonly Story[] = data.stories;

/** What the bars are called. */
export const NAMES: Readonly<Record<string, string>> = data.names;

/** As the address asks for them. */
export const ASKED = {
  workloads: STORIES.map(({ workload }) => workload).join(),
  systems: Object.keys(NAMES).join(),
};

// What is wrong with a kernel, as the page tells it: the message, and the place in the code.

import { FramebatchError } from "framebatch";
import type { Place } from "./editor.ts";
import { ScriptError } from "./script.ts";

export interface Problem {
  readonly message: string;
  /** The code of the error; undefined where it is none of the library's. */
  readonly code: string | undefined;
  /** Undefined where no line of the kernel is named. */
  readonly place: Place | undefined;
}

/** How a message names a place: by the kernel, a line and a column. */
const PLACE = /(?:^|\s)[a-zA-Z]\w*:(\d+):(\d+): /;

/** The problem that an error tells. */
export function problemIn(error: unknown): Problem {
  const text = error instanceof Error ? error.message : String(error);
  if (!(error instanceof FramebatchError)) {
    const message = error instanceof ScriptError ? text : String(error);
    return { message, code: undefined, place: undefined };
  }
  const { code } = error;
  const named = PLACE.exec(text);
  if (named === null) return { message: text, code, place: undefined };
  const [, line, column] = named;
  return {
    message: text.slice(named.index + named[0].length),
    code,
    place: { line: Number(line), column: Number(column) },
  };
}

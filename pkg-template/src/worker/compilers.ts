// What compilers say of kernels of a page's own, in a worker that has only their code: the page
// tells it in the kernel's own words.
//
// The core asks one function for all sessions of its instance; each session knows the kernels
// that its page has told it of.

import type { Core } from "../core/core.js";
import type { CompilerMessage } from "./protocol.js";

/** Has a page say what messages about a text mean; undefined where none of its kernels is meant. */
type Ask = (
  source: string,
  messages: readonly CompilerMessage[],
) => Promise<string | undefined>;

const sessions = new Set<Ask>();

/** Has the core ask these sessions, too. */
export function explainBy(core: Core, ask: Ask): void {
  sessions.add(ask);
  core.explain_kernels(async (module, source) => {
    const { messages } = await module.getCompilationInfo();
    // What browsers give is no plain data.
    const plain = Array.from(messages, (said) => {
      const { type, lineNum, linePos, message } = said;
      return { type, lineNum, linePos, message };
    });
    for (const asked of sessions) {
      const text = await asked(source, plain);
      if (text !== undefined) return text;
    }
    return undefined;
  });
}

/** A session has ended. */
export function explainNoMore(ask: Ask): void {
  sessions.delete(ask);
}

// What is defined once for a session and used by all of its calls: a kernel, a traced function.
//
// A definition costs more than a call, and is not part of what is timed.

import type { Session } from "framebatch";

/** What `define` makes for a session, made again only for another session. */
export function perSession<Defined>(
  define: (gpu: Session) => Defined,
): (gpu: Session) => Defined {
  let last: { gpu: Session; defined: Defined } | undefined;
  return (gpu) => {
    if (last?.gpu !== gpu) last = { gpu, defined: define(gpu) };
    return last.defined;
  };
}

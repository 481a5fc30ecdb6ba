// The answers of a session of this thread.

import { open } from "framebatch";
import { ask } from "./ask.js";

export async function answers(options) {
  return ask(await open(options));
}

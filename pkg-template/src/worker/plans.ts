// The plans that a page has asked its worker for, whose texts are on their way.

import { FramebatchError } from "../checks/errors.js";
import type { Failure } from "./protocol.js";

interface Plan {
  resolve(text: string): void;
  reject(error: unknown): void;
}

/** The plans of one session. */
export class Plans {
  private readonly asked = new Map<number, Plan>();
  private last = 0;

  /** A new question, and the text that answers it. */
  ask(): { readonly question: number; readonly text: Promise<string> } {
    const question = (this.last += 1);
    const text = new Promise<string>((resolve, reject) =>
      this.asked.set(question, { resolve, reject }),
    );
    text.catch(() => {}); // Nobody may look at it.
    return { question, text };
  }

  /** The worker has answered. */
  answer(question: number, text: string | Failure): void {
    const plan = this.asked.get(question);
    this.asked.delete(question);
    if (typeof text === "string") plan?.resolve(text);
    else plan?.reject(new FramebatchError(text.code, text.message));
  }

  /** The worker answers no more. */
  end(error: unknown): void {
    for (const { reject } of this.asked.values()) reject(error);
    this.asked.clear();
  }
}

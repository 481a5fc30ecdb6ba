// An instance of a WebAssembly file besides the core's, and what becomes of those who use it
// when it traps. What the file does is not known here.

import { endedError } from "../calls/call-errors.js";
import { FramebatchError, isCoreFailure } from "../checks/errors.js";

/** An object in the memory of an instance, until it is freed. */
export interface GlueObject {
  free(): void;
}

/** The glue of a file, as the package's tools wrap it. */
export interface Glue {
  /** Makes an instance of the WebAssembly file. */
  start(module: WebAssembly.Module): Promise<unknown>;
  /** To be called after a trap: the instance's own finalizers then enter it no more. */
  abandon(): void;
}

/** Whoever hears of a trap. */
export interface Tenant {
  ended(error: FramebatchError): void;
}

/** A loaded instance, and those who live on it. */
export class Instance<Of extends Glue> {
  /** References alone: an embedder that nobody has any more is collected, and its tensors with it. */
  private readonly tenants = new Set<WeakRef<Tenant>>();
  /** Why nothing enters the instance any more. */
  private ended: FramebatchError | undefined;

  /** `what` the file is, and what is to happen so that others get another instance. */
  constructor(
    private readonly glue: Of,
    private readonly what: string,
    private readonly forget: () => void,
  ) {}

  /** Returns what to call when the tenant leaves: it tells whether this was the first time. */
  enter(tenant: Tenant): () => boolean {
    for (const other of this.tenants) {
      if (other.deref() === undefined) this.tenants.delete(other);
    }
    const reference = new WeakRef(tenant);
    this.tenants.add(reference);
    return () => this.tenants.delete(reference);
  }

  /**
   * What the instance answers; its refusals become the package's errors. Throws `fatal`
   * where it traps, and from then on.
   */
  ask<Answer>(about: string, question: (glue: Of) => Answer): Answer {
    if (this.ended !== undefined) throw endedError(about, this.ended);
    try {
      return question(this.glue);
    } catch (thrown) {
      if (isCoreFailure(thrown)) {
        throw new FramebatchError(thrown.code, `${about}: ${thrown.message}`);
      }
      throw endedError(about, this.condemn(thrown));
    }
  }

  /** Frees an object. Never throws, because callers have more to free. */
  free(held: GlueObject): void {
    // All objects of an instance go with its memory.
    if (this.ended !== undefined) return;
    try {
      held.free();
    } catch (thrown) {
      this.condemn(thrown);
    }
  }

  // After a trap nothing in the instance's memory can be trusted.
  private condemn(thrown: unknown): FramebatchError {
    this.ended = new FramebatchError(
      "fatal",
      `the WebAssembly of ${this.what} stopped (${thrown}); make a new embedder, and please report this`,
      { cause: thrown },
    );
    this.forget();
    this.glue.abandon();
    for (const tenant of this.tenants) tenant.deref()?.ended(this.ended);
    return this.ended;
  }
}

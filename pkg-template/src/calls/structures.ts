// The core's numbers of what methods on arrays compute.
//
// The methods are listed in `methods.ts`; the structures of tensors, clips and
// indexes have tables of their own.

import { checked, type Core, forget } from "../core/core.js";
import { LruMap } from "../core/lru.js";
import { type Method, METHODS } from "./methods.js";

/**
 * The core's numbers of the structures in use, each asked for once. Numbers for the
 * usual widths lie in an array; an unusual width, or number of steps, is looked up.
 */
export class Structures {
  private readonly usual: number[] = new Array(METHODS.length * 2).fill(-1);
  private core!: Core;
  private readonly wide: LruMap<number, number>;
  private readonly fields: LruMap<string, number>;

  constructor() {
    const drop = (numbers: number[]): void => forget(this.core, numbers);
    this.wide = new LruMap(drop);
    this.fields = new LruMap(drop);
  }

  /** The session is open. */
  open(core: Core): void {
    this.core = core;
  }

  /**
   * The number of this method's structure; `each` says that `t` is an array, and a formula
   * whose gradients are asked for, if any.
   */
  id(method: Method, each: boolean, width: number, field?: string): number {
    if (field !== undefined) return this.fieldId(field);
    if (width !== method.width) return this.wideId(method, each, width);
    const at = method.index * 2 + (each ? 1 : 0);
    const known = this.usual[at];
    if (known >= 0) return known;
    return (this.usual[at] = this.ask(method, each, width));
  }

  private fieldId(formula: string): number {
    let id = this.fields.get(formula);
    if (id === undefined) {
      id = checked(this.core, this.core.field_gradients(formula));
      this.fields.add(formula, id);
    }
    return id;
  }

  private wideId(method: Method, each: boolean, width: number): number {
    // With one t for all, a float is an item of its own whatever the width.
    if (!each && method.last === "t")
      return this.id(method, each, method.width);
    const key = width * METHODS.length + method.index;
    let id = this.wide.get(key);
    if (id === undefined) {
      id = this.ask(method, each, width);
      this.wide.add(key, id);
    }
    return id;
  }

  private ask(method: Method, each: boolean, width: number): number {
    const { core } = this;
    return checked(core, core.structure(method.op, width, each));
  }
}

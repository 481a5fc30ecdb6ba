// Has the core measure its cost model once for each adapter, and remembers for the next visit
// the numbers and the values that the core tuned to the load.
//
// What is measured and tuned, and what follows from it, the core decides. Only sessions that
// choose between devices have a cost model.

import type { Core } from "../core/core.js";
import type { Info } from "../metrics/stats.js";
import { setLooseTimer } from "../platform/node.js";

/** The storage that keeps numbers from one visit to the next. */
export type KeyValueStore = Pick<Storage, "getItem" | "setItem">;

/** What a calibrator needs of its page. */
export interface CalibrationHost {
  /** Undefined where nothing can be kept: a worker, Node, a page without permission. */
  readonly store: KeyValueStore | undefined;
  /** Runs a function when there is nothing else to do. */
  whenIdle(callback: () => void): void;
}

/** Milliseconds after which a page that is always busy is measured all the same. */
const LATEST_MS = 2000;

/** The calibration of one session. */
export class Calibrator {
  private readonly key: string;
  private isNeeded: boolean;
  private isOver = false;

  constructor(
    private readonly core: Core,
    private readonly host: CalibrationHost,
  ) {
    const { adapter, driver, version } = core.info() as Info;
    // Sessions with a cost model and sessions without one have entries of their own.
    const { length } = core.model();
    this.key = `framebatch ${version} ${adapter} ${driver} ${length}`;
    const known = this.remembered();
    if (known?.length === length) core.set_model(known);
    this.isNeeded = this.isMissing;
  }

  /** A batch was answered, so the page has what it waited for. */
  returned(): void {
    if (!this.isNeeded) return;
    this.isNeeded = false;
    this.host.whenIdle(() => {
      if (this.isOver) return;
      try {
        this.core.calibrate(() => this.remember());
      } catch {
        // A core that trapped fails the next call with that, too.
      }
    });
  }

  /** The session ended: nothing is measured any more. */
  dispose(): void {
    this.isOver = true;
  }

  /** Whether there is a cost model that was not measured. */
  private get isMissing(): boolean {
    return (this.core.info() as Info).routing?.calibrated === false;
  }

  private remembered(): Float64Array | undefined {
    try {
      const text = this.host.store?.getItem(this.key);
      return text ? Float64Array.from(JSON.parse(text)) : undefined;
    } catch {
      return undefined; // Another program wrote the entry, or the page may not read it.
    }
  }

  /** The core has numbers that the next visit should have. */
  remember(): void {
    // A model that is not measured yet, or of a GPU that was lost meanwhile, is measured again.
    if (this.isOver || this.isMissing) return;
    const facts = JSON.stringify(Array.from(this.core.model()));
    try {
      this.host.store?.setItem(this.key, facts);
    } catch {
      // The store is full, or closed to the page: the next visit measures again.
    }
  }
}

/** The page that this script runs in. */
export function calibrationHost(): CalibrationHost {
  return {
    store: storage(),
    whenIdle(callback) {
      if (typeof requestIdleCallback === "function") {
        requestIdleCallback(() => callback(), { timeout: LATEST_MS });
      } else setLooseTimer(callback);
    },
  };
}

function storage(): KeyValueStore | undefined {
  try {
    return globalThis.localStorage;
  } catch {
    return undefined; // Browsers that block cookies refuse the access itself.
  }
}

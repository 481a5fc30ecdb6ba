// Has the core measure what each device takes, once for each adapter, and remembers
// what it found for the next visit.
//
// What is measured and what follows from it is the core's. Only sessions that choose
// between devices measure anything.

import type { Core } from "../core/core.js";
import type { Info } from "../metrics/stats.js";

/** Where numbers are kept from one visit to the next. */
export type KeyValueStore = Pick<Storage, "getItem" | "setItem">;

/** What a calibrator needs of where it lives. */
export interface CalibrationHost {
  /** Undefined where nothing is kept: a worker, Node, a page that may not. */
  readonly store: KeyValueStore | undefined;
  /** Runs a function when there is nothing else to do. */
  whenIdle(callback: () => void): void;
}

/** How long a page may be busy before it is measured all the same, in milliseconds. */
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
    this.key = `framebatch ${version} ${adapter} ${driver}`;
    const { length } = core.model();
    this.isNeeded = length > 0;
    if (!this.isNeeded) return;
    const known = this.remembered();
    if (known?.length !== length) return;
    core.set_model(known);
    this.isNeeded = !this.isKnown;
  }

  /** A batch was answered: the page has what it came for. */
  returned(): void {
    if (!this.isNeeded) return;
    this.isNeeded = false;
    this.host.whenIdle(() => {
      if (this.isOver) return;
      try {
        this.core.calibrate(() => this.remember());
      } catch {
        // A core that has trapped says so to the next call.
      }
    });
  }

  /** Measures nothing any more. */
  dispose(): void {
    this.isOver = true;
  }

  private get isKnown(): boolean {
    return (this.core.info() as Info).routing?.calibrated === true;
  }

  private remembered(): Float64Array | undefined {
    try {
      const text = this.host.store?.getItem(this.key);
      return text ? Float64Array.from(JSON.parse(text)) : undefined;
    } catch {
      return undefined; // Somebody else's, or a page that may not look.
    }
  }

  private remember(): void {
    // Without a GPU to the end there is nothing to remember.
    if (this.isOver || !this.isKnown) return;
    const facts = JSON.stringify(Array.from(this.core.model()));
    try {
      this.host.store?.setItem(this.key, facts);
    } catch {
      // A full store, or a page that may not: the next visit measures again.
    }
  }
}

/** The host of this script's page. */
export function calibrationHost(): CalibrationHost {
  return {
    store: storage(),
    whenIdle(callback) {
      if (typeof requestIdleCallback === "function") {
        requestIdleCallback(() => callback(), { timeout: LATEST_MS });
      } else setTimeout(callback);
    },
  };
}

function storage(): KeyValueStore | undefined {
  try {
    return globalThis.localStorage;
  } catch {
    return undefined; // Looking is refused where cookies are.
  }
}

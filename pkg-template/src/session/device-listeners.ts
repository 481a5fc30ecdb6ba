// The listeners to events of the device: lost, restored, fallback.
//
// Listeners are called and nothing else happens: the core has already gone on by itself.

import { invalid, report } from "../checks/errors.js";
import type { DeviceEvent } from "../core/core.js";
import type { TensorNews } from "../tensor/resident-tensors.js";

/**
 * What a listener is told. Tensors come with `restored` and `fallback`: `lostTensors` could not
 * be restored, and `revertedTensors` hold what they held at their last snapshot.
 */
export interface DeviceNews extends TensorNews {
  /** The event's own name. */
  readonly type: DeviceEvent;
  /** What happened, in a sentence. */
  readonly message: string;
}

/** A function that hears of the device. */
export type DeviceListener = (news: DeviceNews) => void;

/** The listeners of one session. */
export class DeviceListeners {
  private readonly byEvent: Record<DeviceEvent, Set<DeviceListener>> = {
    lost: new Set(),
    restored: new Set(),
    fallback: new Set(),
  };

  /** Adds a listener; the function that comes back removes it. */
  add(event: DeviceEvent, listener: DeviceListener): () => void {
    const listeners = this.byEvent[event];
    if (listeners === undefined) {
      const names = [...Object.keys(this.byEvent), "batch"].join(", ");
      throw invalid("on", `there is no event '${event}'; give one of ${names}`);
    }
    listeners.add(listener);
    return () => listeners.delete(listener);
  }

  /** Tells everyone. A listener that throws is reported and stops nobody. */
  tell(type: DeviceEvent, message: string, tensors: TensorNews): void {
    for (const listener of [...this.byEvent[type]]) {
      try {
        listener({ type, message, ...tensors });
      } catch (error) {
        report(error); // Browsers report what a page's own event listeners throw, too.
      }
    }
  }
}

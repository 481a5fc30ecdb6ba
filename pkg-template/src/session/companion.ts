// What the package's other entries (clips, motions, indexes) keep beside a session.
//
// A session tells its companions of the events of its life, and knows nothing else of
// them.

import type { FramebatchError } from "../checks/errors.js";
import type { Core, DeviceEvent } from "../core/core.js";

/** A part of a session that the first entry of the package does not know. */
export interface Companion {
  /** The session is open, and no call has entered the core yet. */
  open(core: Core): void;
  /** The device is lost, or another one took its place. */
  hear(event: DeviceEvent): void;
  /** The session has ended, for this reason; the core has released everything. */
  close(why: FramebatchError): void;
}

// What the package's other entries keep on a session's device, and for as long.
//
// A session tells its companions of its life; what they make of it is theirs.

import type { Core, DeviceEvent } from "../core/core.js";

/** What lives as long as the session, on the device too: told with the calls' own. */
export interface Companion {
  /** The session is open; nothing was entered yet. */
  open(core: Core): void;
  /** There is no device, or another one. */
  hear(event: DeviceEvent): void;
  /** The session has ended; the core has released everything. */
  close(): void;
}

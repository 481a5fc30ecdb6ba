// The entry `framebatch/inline`: imported for its effect before a session opens, it holds the
// WebAssembly of the core, so that nothing is fetched and no bundler has to find a file. The
// script is a third larger than the file. Engines without WebAssembly's vectors still fetch
// theirs.

import { hold } from "../core/wasm-file.js";
import { unpacked } from "../platform/held-file.js";
import file from "../../wasm/framebatch_bg.inline.js";

hold("framebatch_bg.wasm", () => unpacked(file));

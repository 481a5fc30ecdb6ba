// The entry `framebatch/inline` for runtimes at the edge, which compile no WebAssembly at run
// time: their bundlers compile the file and import it as a module.

import { hold } from "../core/wasm-file.js";
import module from "../../wasm/framebatch_bg.wasm?module";

hold("framebatch_bg.wasm", () => module);

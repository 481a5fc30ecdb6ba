// What the TypeScript face uses of the glue that wasm-bindgen writes, as the
// package's tools wrap it. It lies where `src` looks for the glue, so that the face
// compiles before, and without, the Rust build. It is not shipped.
import type { CoreGlue } from "../src/core/core.js";
import type { GlueGlobals } from "../src/platform/node.js";

export declare function instantiate(globals: GlueGlobals): CoreGlue;

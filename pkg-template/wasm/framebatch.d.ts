// What the TypeScript face uses of the glue that wasm-bindgen writes. It lies
// where `src` looks for the glue, so that the face compiles before, and without,
// the Rust build. It is not shipped: the package carries the generated file.
import type { CoreClass, InitGlue } from "../src/core.js";

declare const init: InitGlue;
export default init;
export declare const Core: CoreClass;

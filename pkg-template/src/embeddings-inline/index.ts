// The entry `framebatch/embeddings-inline`: what `framebatch/inline` is for the core, for the
// two WebAssembly files of embeddings. Imported for its effect before the first embedder.

import { hold } from "../core/wasm-file.js";
import { unpacked } from "../platform/held-file.js";
import file from "../../wasm/embeddings_bg.inline.js";
import tokenizers from "../../wasm/tokenizers_bg.inline.js";

hold("embeddings_bg.wasm", () => unpacked(file));
hold("tokenizers_bg.wasm", () => unpacked(tokenizers));

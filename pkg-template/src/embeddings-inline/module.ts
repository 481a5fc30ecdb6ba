// The entry `framebatch/embeddings-inline` for runtimes at the edge; see `../inline/module.ts`.

import { hold } from "../core/wasm-file.js";
import module from "../../wasm/embeddings_bg.wasm?module";
import tokenizers from "../../wasm/tokenizers_bg.wasm?module";

hold("embeddings_bg.wasm", () => module);
hold("tokenizers_bg.wasm", () => tokenizers);

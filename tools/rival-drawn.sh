#!/bin/bash
# Puts the page of `benches/rival/drawn` together in the folder that is named: this package, which
# `make build` made, transformers.js and the graphs that it runs. Then serve the folder and open
# index.html?model=minilm, e5, mpnet, reranker, gemma or qwen; weights are drawn in the page. Needs
# npm and Python 3.
set -euo pipefail
cd "$(dirname "$0")/.."

site=${1:-target/rival/drawn}
rival=target/rival
PARTS=js tools/rival.sh
if ! "$rival/python/bin/python" -c 'import onnx, safetensors' 2>/dev/null; then
  python3 -m venv "$rival/python"
  "$rival/python/bin/pip" install --quiet onnx safetensors numpy
fi
mkdir -p "$site/framebatch" "$site/rival"
cp benches/rival/drawn/* "$site/"
cp -r pkg/dist pkg/wasm "$site/framebatch/"
cp "$rival"/js/* "$site/rival/"
"$rival/python/bin/python" benches/rival/make_graphs.py "$site/models"

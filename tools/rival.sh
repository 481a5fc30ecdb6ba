#!/bin/bash
# Puts the rival of the embeddings' bench into target/rival: transformers.js, its
# runtime, and the model as it wants it. Needs models/minilm (`make model`), npm and
# Python 3; nothing is done twice. With PARTS=js no model.
set -euo pipefail
cd "$(dirname "$0")/.."

version=4.3.1
rival=target/rival
mkdir -p "$rival"

if [ ! -e "$rival/js/transformers.min.js" ]; then
  # Without scripts: what they fetch is for Node.
  npm install --prefix "$rival/npm" --ignore-scripts --no-audit --no-fund --silent \
    "@huggingface/transformers@$version"
  modules="$rival/npm/node_modules"
  mkdir -p "$rival/js"
  cp "$modules/onnxruntime-web/dist/"ort-wasm-simd-threaded.asyncify.{mjs,wasm} "$rival/js/"
  cp "$modules/@huggingface/transformers/dist/transformers.min.js" "$rival/js/"
fi

[ "${PARTS:-}" != js ] || exit 0
name=all-MiniLM-L6-v2
if [ ! -e "$rival/models/$name/onnx/model_fused_fp16.onnx" ]; then
  [ -e "$rival/python/bin/python" ] || python3 -m venv "$rival/python"
  "$rival/python/bin/pip" install --quiet onnx safetensors numpy
  "$rival/python/bin/python" benches/rival/make_onnx.py models/minilm "$rival/models/$name"
fi

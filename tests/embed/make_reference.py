"""Makes tests/data/mpnet-reference.jsonl: what transformers computes by all-mpnet-base-v2 in float64.

    tools/mpnet.sh
    python -m venv /tmp/models && . /tmp/models/bin/activate
    pip install torch transformers
    python tests/embed/make_reference.py

The texts are some of those of tests/data/minilm-reference.jsonl.
"""

import json
from pathlib import Path

import torch
from transformers import AutoTokenizer, MPNetModel

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "models/mpnet"
EACH = 5


def main():
    lines = (ROOT / "tests/data/minilm-reference.jsonl").read_text().splitlines()
    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    model = MPNetModel.from_pretrained(MODEL).double().eval()
    limit = json.loads((MODEL / "sentence_bert_config.json").read_text())["max_seq_length"]
    with (ROOT / "tests/data/mpnet-reference.jsonl").open("w") as out, torch.no_grad():
        for line in lines[::EACH]:
            text = json.loads(line)["text"]
            ids = tokenizer(text, truncation=True, max_length=limit)["input_ids"]
            tokens = model(torch.tensor([ids])).last_hidden_state[0]
            vector = torch.nn.functional.normalize(tokens.mean(0), dim=0)
            sample = {
                "text": text,
                "ids": ids,
                "embedding": [float(f"{x:.9g}") for x in vector.tolist()],
            }
            out.write(json.dumps(sample, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()

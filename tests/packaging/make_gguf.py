"""Makes tests/data/gguf.json: what llama.cpp's own Python package knows of GGUF.

    python -m venv /tmp/gguf && . /tmp/gguf/bin/activate
    pip install gguf numpy
    python tests/packaging/make_gguf.py

For each model_type the names that llama.cpp has for the tensors of tests/data/models, `N` being a
layer's number, and for each format some blocks with the numbers that they stand for, as bytes in
base64. Two decoders that have no model there are listed below. The tests need no Python.
"""

import base64
import importlib.metadata
import json
import re
import struct
from pathlib import Path

import gguf
import numpy
from gguf import MODEL_ARCH as ARCHITECTURES
from gguf import GGMLQuantizationType as Formats

ROOT = Path(__file__).resolve().parents[2]
DECODER = ["embed_tokens", "norm"] + [
    f"layers.0.{name}"
    for name in """input_layernorm self_attn.q_proj self_attn.k_proj self_attn.v_proj self_attn.o_proj
    self_attn.q_norm self_attn.k_norm post_attention_layernorm mlp.gate_proj mlp.up_proj
    mlp.down_proj""".split()
]
GEMMA = [f"layers.0.{end}_feedforward_layernorm" for end in ("pre", "post")]
MODELS = {
    "bert": (ARCHITECTURES.BERT, ["bert-dense"]),
    "roberta": (ARCHITECTURES.BERT, ["roberta"]),
    "xlm-roberta": (ARCHITECTURES.BERT, ["reranker-xlm-roberta"]),
    "distilbert": (ARCHITECTURES.BERT, ["distilbert"]),
    "nomic_bert": (ARCHITECTURES.NOMIC_BERT, ["nomic-bert"]),
    "jina_embeddings_v3": (ARCHITECTURES.JINA_BERT_V3, ["jina-v3"]),
    "modernbert": (ARCHITECTURES.MODERN_BERT, ["modernbert", "reranker-modernbert"]),
    "qwen3": (ARCHITECTURES.QWEN3, DECODER),
    "gemma3_text": (ARCHITECTURES.GEMMA_EMBEDDING, DECODER + GEMMA),
}
FORMATS = "F16 BF16 Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 Q4_K Q5_K Q6_K".split()
# Where the 16-bit floats of blocks are, which random bytes would make infinite.
HALVES = {"Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}
SIZES = numpy.array([[1], [1e-3], [1e-5], [100], [0], [-2], [3e-7], [0.5]], numpy.float32)


def main():
    random = numpy.random.default_rng(1)
    found = {
        "versions": {name: importlib.metadata.version(name) for name in ("gguf", "numpy")},
        "models": {name: model(name, *of) for name, of in MODELS.items()},
        "blocks": {name: blocks(Formats[name], random) for name in FORMATS},
    }
    (ROOT / "tests/data/gguf.json").write_text(json.dumps(found, indent=2) + "\n")


def model(model_type, architecture, folders):
    names = folders if folders[0] == DECODER[0] else sum(map(tensors, folders), [])
    known = gguf.get_tensor_name_map(architecture, 1)
    found = {}
    for name in sorted(set(names)):
        # What the converter does to names before it looks them up.
        name = re.sub(r"^(bert|roberta|distilbert|model)\.", "", name)
        sought = name
        if model_type == "modernbert":
            sought = sought.replace("classifier.", "classifier.out_proj.")
        if model_type == "qwen3":
            sought = f"model.{sought}"
        if name.startswith("vocab_"):
            continue
        if name in DECODER + GEMMA:
            name, sought = f"{name}.weight", f"{sought}.weight"
        of = known.get_name(sought, try_suffixes=(".weight", ".bias"))
        found[of.replace("blk.0.", "blk.N.")] = re.sub(r"\.0\.", ".N.", name, count=1)
    return {"architecture": gguf.MODEL_ARCH_NAMES[architecture], "tensors": found}


def tensors(folder):
    """The names of a folder's tensors, all layers being the first."""
    data = (ROOT / f"tests/data/models/{folder}/model.safetensors").read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    names = json.loads(data[8 : 8 + length])
    return [re.sub(r"\.\d+\.", ".0.", name) for name in names if name != "__metadata__"]


def blocks(kind, random):
    numbers, size = gguf.GGML_QUANT_SIZES[kind]
    if kind.name in HALVES:
        data = random.integers(0, 256, (2, size), numpy.uint8)
        for at in HALVES[kind.name]:
            scales = random.uniform(1e-7, 0.1, (2, 1)).astype(numpy.float16)
            data[:, at : at + 2] = scales.view(numpy.uint8)
    else:
        floats = random.normal(size=(8, 32)).astype(numpy.float32) * SIZES
        data = gguf.quantize(floats, kind)
    floats = gguf.dequantize(data, kind).astype("<f4")
    return {"bytes": text(data), "floats": text(floats)}


def text(array):
    return base64.b64encode(array.tobytes()).decode()


main()

#!/usr/bin/env python3
"""ONNX graphs of encoders for transformers.js, as `make_onnx.py` makes them, without weights.

usage: make_graphs.py OUT [LAYERS]

It writes OUT/MODEL/{config.json,tensors.json,onnx/model.onnx} for each model of benches/rival/drawn,
and onnx/model_fp16.onnx of those that compute in 16 bits. Every weight is external data in a file of
its own, whose name is the tensor's in the Hugging Face folder; tensors.json says their sizes, which
are kept transposed, and what is added to them. Whoever runs the graph gives the floats. With LAYERS
models have no more of them: for a look at answers where there is no GPU. Needs onnx and safetensors.
"""

import json
import sys
from math import prod
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto

import decoders
import make_onnx

BERT = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "pad_token_id": 0,
    "num_attention_heads": 12,
    "hidden_size": 384,
    "intermediate_size": 1536,
}
MINILM = {**BERT, "num_hidden_layers": 6, "vocab_size": 30_522}
DECODER = {
    "rms_norm_eps": 1e-6,
    "max_position_embeddings": 2048,
    "pad_token_id": 0,
    "type_vocab_size": 1,
    "vocab_size": 30_000,
}
CONFIGS = {
    # all-MiniLM-L6-v2, multilingual-e5-small, all-mpnet-base-v2, ms-marco-MiniLM-L6-v2.
    "minilm": {**MINILM, "architectures": ["BertModel"]},
    "e5": {**BERT, "architectures": ["BertModel"], "num_hidden_layers": 12, "vocab_size": 250_002},
    "mpnet": {
        **BERT,
        "model_type": "mpnet",
        "architectures": ["MPNetModel"],
        "layer_norm_eps": 1e-5,
        "max_position_embeddings": 514,
        "type_vocab_size": 1,
        "pad_token_id": 1,
        "num_hidden_layers": 12,
        "hidden_size": 768,
        "intermediate_size": 3072,
        "vocab_size": 30_527,
        "relative_attention_num_buckets": 32,
    },
    "reranker": {
        **MINILM,
        "architectures": ["BertForSequenceClassification"],
        "id2label": {"0": "LABEL_0"},
        "label2id": {"LABEL_0": 0},
    },
    # EmbeddingGemma and Qwen3-Embedding-0.6B, with fewer words: what a text costs is the same.
    "gemma": {
        "model_type": "gemma3_text",
        "architectures": ["Gemma3TextModel"],
        "hidden_size": 768,
        "intermediate_size": 1152,
        "num_attention_heads": 3,
        "num_key_value_heads": 1,
        "head_dim": 256,
        "num_hidden_layers": 24,
        "sliding_window": 512,
        "sliding_window_pattern": 6,
        "use_bidirectional_attention": True,
        "query_pre_attn_scalar": 256,
        **DECODER,
    },
    "qwen": {
        "model_type": "qwen3",
        "architectures": ["Qwen3Model"],
        "hidden_size": 1024,
        "intermediate_size": 3072,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "num_hidden_layers": 28,
        "rope_theta": 1_000_000,
        **DECODER,
    },
}

MPNET_NAMES = {
    "attention.self.query": "attention.attn.q",
    "attention.self.key": "attention.attn.k",
    "attention.self.value": "attention.attn.v",
    "attention.output.dense": "attention.attn.o",
    "attention.output.LayerNorm": "attention.LayerNorm",
}


class Drawn(make_onnx.Graph):
    """A graph whose weights are sizes."""

    def __init__(self, config, dtype=np.float32):
        sizes = decoders.shapes(config) if is_decoder(config) else shapes(config)
        super().__init__(sizes, dtype)
        self.config, self.tensors = config, {}

    def place(self, name):
        """The name in the model's own folder."""
        if self.config["model_type"] == "mpnet":
            for own, other in MPNET_NAMES.items():
                name = name.replace(own, other)
        elif self.config["architectures"] == ["BertForSequenceClassification"]:
            name = name if name.startswith("classifier") else "bert." + name
        return name

    def weight(self, name, transposed=False, plus=0):
        shape = self.weights[name]
        kept = name + ".T" if transposed else name
        if kept not in self.constants:
            kind = TensorProto.FLOAT16 if self.dtype == np.float16 else TensorProto.FLOAT
            length = np.dtype(self.dtype).itemsize * prod(shape)
            tensor = TensorProto(name=kept, data_type=kind)
            tensor.dims.extend(reversed(shape) if transposed else shape)
            tensor.data_location = TensorProto.EXTERNAL
            place = self.place(name)
            for key, value in (("location", place), ("offset", "0"), ("length", str(length))):
                tensor.external_data.add(key=key, value=value)
            self.constants[kept] = tensor
            self.tensors[place] = {"name": place, "shape": shape, "transposed": transposed, "plus": plus}
        return kept


def is_decoder(config):
    return "head_dim" in config


def shapes(config):
    """The sizes of all tensors, by BERT's names without the `bert.` of classifiers."""
    width, wide = config["hidden_size"], config["intermediate_size"]
    sizes = {
        "embeddings.word_embeddings.weight": [config["vocab_size"], width],
        "embeddings.position_embeddings.weight": [config["max_position_embeddings"], width],
        "embeddings.token_type_embeddings.weight": [config["type_vocab_size"], width],
        "encoder.relative_attention_bias.weight": [32, config["num_attention_heads"]],
        "pooler.dense.weight": [width, width],
        "pooler.dense.bias": [width],
        "classifier.weight": [1, width],
        "classifier.bias": [1],
    }

    def norm(name):
        sizes.update({f"{name}.weight": [width], f"{name}.bias": [width]})

    def dense(name, to, of):
        sizes.update({f"{name}.weight": [to, of], f"{name}.bias": [to]})

    norm("embeddings.LayerNorm")
    for layer in range(config["num_hidden_layers"]):
        of = f"encoder.layer.{layer}."
        for part in ("query", "key", "value"):
            dense(f"{of}attention.self.{part}", width, width)
        dense(of + "attention.output.dense", width, width)
        norm(of + "attention.output.LayerNorm")
        dense(of + "intermediate.dense", wide, width)
        dense(of + "output.dense", width, wide)
        norm(of + "output.LayerNorm")
    return sizes


def main(target, layers=None):
    for name, config in CONFIGS.items():
        config = {**config, "num_hidden_layers": int(layers or config["num_hidden_layers"])}
        folder = target / name
        (folder / "onnx").mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(config))
        for dtype, file in [(np.float16, "model_fp16"), (np.float32, "model")]:
            if dtype == np.float16 and config["model_type"] != "qwen3":
                continue
            graph = Drawn(config, dtype)
            make = decoders.graph_of if is_decoder(config) else make_onnx.graph_of
            onnx.save(make(graph, config), folder / "onnx" / f"{file}.onnx")
        (folder / "tensors.json").write_text(json.dumps(list(graph.tensors.values())))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])

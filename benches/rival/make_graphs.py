#!/usr/bin/env python3
"""ONNX graphs of encoders for transformers.js, as `make_onnx.py` makes them, without weights.

usage: make_graphs.py OUT

It writes OUT/MODEL/{config.json,tensors.json,onnx/model.onnx} for each model of benches/rival/cpu.
Every weight is external data in a file of its own, whose name is the tensor's in the Hugging Face
folder; tensors.json says their sizes, and which are kept transposed. Whoever runs the graph gives
the floats. Needs onnx and safetensors.
"""

import json
import sys
from math import prod
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

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

    def __init__(self, config):
        super().__init__(shapes(config), np.float32)
        self.config, self.tensors = config, {}

    def place(self, name):
        """The name in the model's own folder."""
        if self.config["model_type"] == "mpnet":
            for own, other in MPNET_NAMES.items():
                name = name.replace(own, other)
        elif self.config["architectures"] == ["BertForSequenceClassification"]:
            name = name if name.startswith("classifier") else "bert." + name
        return name

    def weight(self, name, transposed=False):
        shape = self.weights[name]
        kept = name + ".T" if transposed else name
        if kept not in self.constants:
            tensor = TensorProto(name=kept, data_type=TensorProto.FLOAT)
            tensor.dims.extend(reversed(shape) if transposed else shape)
            tensor.data_location = TensorProto.EXTERNAL
            place = self.place(name)
            for key, value in (("location", place), ("offset", "0"), ("length", str(4 * prod(shape)))):
                tensor.external_data.add(key=key, value=value)
            self.constants[kept] = tensor
            self.tensors[place] = {"name": place, "shape": shape, "transposed": transposed}
        return kept


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


def main(target):
    for name, config in CONFIGS.items():
        graph = Drawn(config)
        model = make_onnx.graph_of(graph, config)
        folder = target / name
        (folder / "onnx").mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "tensors.json").write_text(json.dumps(list(graph.tensors.values())))
        onnx.save(model, folder / "onnx" / "model.onnx")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

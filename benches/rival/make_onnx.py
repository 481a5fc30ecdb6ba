#!/usr/bin/env python3
"""An ONNX folder of a BERT encoder for transformers.js, from a Hugging Face folder.

usage: make_onnx.py MODEL OUT

It writes OUT/{config,tokenizer,tokenizer_config}.json and OUT/onnx/model_fused.onnx
and model_fused_fp16.onnx: graphs of ONNX Runtime's own fused operators
(com.microsoft MultiHeadAttention with an additive bias, SkipLayerNormalization and
BiasGelu), the form that its WebGPU backend runs fastest. Needs onnx and safetensors.
"""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file

FUSED = {"domain": "com.microsoft"}


class Graph:
    """Nodes and what they read; a node's output has its name."""

    def __init__(self, weights, dtype):
        self.weights, self.dtype = weights, dtype
        self.nodes, self.constants = [], {}

    def op(self, kind, inputs, name, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, [name], name, **attributes))
        return name

    def constant(self, name, values):
        if name not in self.constants:
            values = np.ascontiguousarray(values)
            self.constants[name] = numpy_helper.from_array(values, name)
        return name

    def weight(self, name, transposed=False):
        values = self.weights[name].astype(self.dtype)
        if transposed:
            return self.constant(name + ".T", values.T)
        return self.constant(name, values)

    def product(self, x, dense, name):
        return self.op("MatMul", [x, self.weight(dense + ".weight", True)], name)


def build(config, weights, dtype):
    graph = Graph(weights, dtype)
    op, constant, weight = graph.op, graph.constant, graph.weight
    kind = TensorProto.FLOAT16 if dtype == np.float16 else TensorProto.FLOAT
    epsilon = config["layer_norm_eps"]

    def index(name, values):
        return constant(name, np.array(values, np.int64))

    op("Shape", ["input_ids"], "shape")
    op("Slice", ["shape", index("one", [1]), index("two", [2])], "length")
    positions = np.arange(config["max_position_embeddings"], dtype=np.int64)
    op("Slice", [index("positions", positions[None]), index("zero", [0]), "length", "one"], "place")

    table = "embeddings.{}_embeddings.weight"
    found = [
        op("Gather", [weight(table.format(of)), ids], of)
        for of, ids in [("word", "input_ids"), ("token_type", "token_type_ids"), ("position", "place")]
    ]
    total = op("Add", [op("Add", found[:2], "typed"), found[2]], "total")
    norm = "embeddings.LayerNorm"
    x = op("LayerNormalization", [total, weight(norm + ".weight"), weight(norm + ".bias")], "x0", axis=-1, epsilon=epsilon)

    # The attention operator's WebGPU kernel takes no mask, but a bias of this shape.
    mask = op("Cast", ["attention_mask"], "mask", to=kind)
    mask = op("Unsqueeze", [mask, index("inner", [1, 2])], "spread")
    off = op("Sub", [constant("on", np.array(1, dtype)), mask], "off")
    least = constant("least", np.array(-1e4 if dtype == np.float16 else -1e9, dtype))
    square = op("Concat", ["one", "one", "length", "one"], "square", axis=0)
    bias = op("Expand", [op("Mul", [off, least], "floor"), square], "bias")

    def skip(y, x, dense, norm, name):
        y = graph.product(y, dense, name + ".product")
        scale = [weight(norm + ".weight"), weight(norm + ".bias"), weight(dense + ".bias")]
        return op("SkipLayerNormalization", [y, x, *scale], name, epsilon=epsilon, **FUSED)

    for layer in range(config["num_hidden_layers"]):
        of, name = f"encoder.layer.{layer}.", f"layer{layer}."
        parts = []
        for part in ("query", "key", "value"):
            dense = f"{of}attention.self.{part}"
            y = graph.product(x, dense, name + part + ".product")
            parts.append(op("Add", [y, weight(dense + ".bias")], name + part))
        heads = config["num_attention_heads"]
        seen = op("MultiHeadAttention", [*parts, "", "", bias], name + "seen", num_heads=heads, **FUSED)
        out = of + "attention.output."
        x = skip(seen, x, out + "dense", out + "LayerNorm", name + "first")
        dense = of + "intermediate.dense"
        wide = graph.product(x, dense, name + "wide.product")
        wide = op("BiasGelu", [wide, weight(dense + ".bias")], name + "wide", **FUSED)
        x = skip(wide, x, of + "output.dense", of + "output.LayerNorm", name + "second")

    op("Cast", [x], "last_hidden_state", to=TensorProto.FLOAT)
    hidden = ["batch", "length", config["hidden_size"]]
    outputs = [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, hidden)]
    inputs = [
        helper.make_tensor_value_info(of, TensorProto.INT64, ["batch", "length"])
        for of in ("input_ids", "attention_mask", "token_type_ids")
    ]
    made = helper.make_graph(graph.nodes, "bert", inputs, outputs, list(graph.constants.values()))
    versions = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(made, opset_imports=versions, ir_version=9)
    onnx.checker.check_model(model)
    return model


def main(source, target):
    (target / "onnx").mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(source / name, target)
    config = json.loads((source / "config.json").read_text())
    weights = load_file(source / "model.safetensors")
    for dtype, ending in [(np.float32, ""), (np.float16, "_fp16")]:
        onnx.save(build(config, weights, dtype), target / "onnx" / f"model_fused{ending}.onnx")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

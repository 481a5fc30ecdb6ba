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
            values = np.asarray(values, order="C")
            self.constants[name] = numpy_helper.from_array(values, name)
        return name

    def weight(self, name, transposed=False):
        values = self.weights[name].astype(self.dtype)
        if transposed:
            return self.constant(name + ".T", values.T)
        return self.constant(name, values)

    def product(self, x, dense, name):
        return self.op("MatMul", [x, self.weight(dense + ".weight", True)], name)


def distance_bias(graph, config, index):
    """MPNet's biases of distances, `[1, heads, length, length]`: a row of its table for each bucket."""
    reach = config["max_position_embeddings"]
    distances = np.arange(-reach, reach + 1)
    near = config["relative_attention_num_buckets"] // 4
    far = np.maximum(np.abs(distances), near)
    # Two buckets each time that the distance doubles, up to 128.
    far = np.minimum(near + np.floor(2 * np.log2(far / near)), 2 * near - 1)
    buckets = np.where(np.abs(distances) < near, np.abs(distances), far) + 2 * near * (distances > 0)
    op = graph.op
    op("Squeeze", ["length"], "count")
    op("Range", [index("first", 0), "count", index("step", 1)], "keys")
    op("Unsqueeze", ["keys", "one"], "queries")
    op("Add", [op("Sub", ["keys", "queries"], "distance"), index("reach", reach)], "distance.at")
    op("Gather", [index("buckets", buckets), "distance.at"], "bucket")
    table = graph.weight("encoder.relative_attention_bias.weight")
    op("Transpose", [op("Gather", [table, "bucket"], "by_place")], "by_head", perm=[2, 0, 1])
    return op("Unsqueeze", ["by_head", "zero"], "distances")


def build(config, weights, dtype):
    return graph_of(Graph(weights, dtype), config)


def graph_of(graph, config):
    """The model whose weights `graph` has. MPNet's are asked for by BERT's names."""
    dtype = graph.dtype
    op, constant, weight = graph.op, graph.constant, graph.weight
    kind = TensorProto.FLOAT16 if dtype == np.float16 else TensorProto.FLOAT
    is_mpnet = config["model_type"] == "mpnet"
    epsilon = config["layer_norm_eps"]

    def index(name, values):
        return constant(name, np.array(values, np.int64))

    op("Shape", ["input_ids"], "shape")
    op("Slice", ["shape", index("one", [1]), index("two", [2])], "length")
    # The padding's id and those below have no position in MPNet.
    first = config["pad_token_id"] + 1 if is_mpnet else 0
    positions = np.arange(first, config["max_position_embeddings"], dtype=np.int64)
    op("Slice", [index("positions", positions[None]), index("zero", [0]), "length", "one"], "place")

    table = "embeddings.{}_embeddings.weight"
    tables = [("word", "input_ids"), ("token_type", "token_type_ids"), ("position", "place")]
    names = ["input_ids", "attention_mask", "token_type_ids"]
    if is_mpnet:
        del tables[1], names[2]
    total, *others = [op("Gather", [weight(table.format(of)), ids], of) for of, ids in tables]
    for other in others:
        total = op("Add", [total, other], f"total.{other}")
    norm = "embeddings.LayerNorm"
    x = op("LayerNormalization", [total, weight(norm + ".weight"), weight(norm + ".bias")], "x0", axis=-1, epsilon=epsilon)

    # The attention operator's WebGPU kernel takes no mask, but a bias of this shape.
    mask = op("Cast", ["attention_mask"], "mask", to=kind)
    mask = op("Unsqueeze", [mask, index("inner", [1, 2])], "spread")
    off = op("Sub", [constant("on", np.array(1, dtype)), mask], "off")
    least = constant("least", np.array(-1e4 if dtype == np.float16 else -1e9, dtype))
    square = op("Concat", ["one", "one", "length", "one"], "square", axis=0)
    floor = op("Mul", [off, least], "floor")
    if is_mpnet:
        bias = op("Add", [floor, distance_bias(graph, config, index)], "bias")
    else:
        bias = op("Expand", [floor, square], "bias")

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

    output, sizes = "last_hidden_state", ["batch", "length", config["hidden_size"]]
    if config["architectures"] == ["BertForSequenceClassification"]:
        output, sizes = "logits", ["batch", 1]
        x = op("Gather", [x, index("start", 0)], "cls", axis=1)
        for dense, name in [("pooler.dense", "pooled"), ("classifier", "label")]:
            y = graph.product(x, dense, name + ".product")
            x = op("Add", [y, weight(dense + ".bias")], name)
            x = x if name == "label" else op("Tanh", [x], name + ".tanh")
    op("Cast", [x], output, to=TensorProto.FLOAT)
    outputs = [helper.make_tensor_value_info(output, TensorProto.FLOAT, sizes)]
    inputs = [helper.make_tensor_value_info(of, TensorProto.INT64, ["batch", "length"]) for of in names]
    made = helper.make_graph(graph.nodes, "bert", inputs, outputs, list(graph.constants.values()))
    versions = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(made, opset_imports=versions, ir_version=9)


def main(source, target):
    (target / "onnx").mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(source / name, target)
    config = json.loads((source / "config.json").read_text())
    weights = load_file(source / "model.safetensors")
    for dtype, ending in [(np.float32, ""), (np.float16, "_fp16")]:
        model = build(config, weights, dtype)
        onnx.checker.check_model(model)
        onnx.save(model, target / "onnx" / f"model_fused{ending}.onnx")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

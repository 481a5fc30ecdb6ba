"""Graphs of decoders that are used as encoders: EmbeddingGemma's body and Qwen3-Embedding's.

Their operators are those of ONNX Runtime that its WebGPU backend runs fastest: com.microsoft
RotaryEmbedding, FastGelu and SimplifiedLayerNormalization, GroupQueryAttention where texts are read
from left to right, and products and Softmax where they are not: MultiHeadAttention takes 1.2 times
as long for heads of 256 floats, and is wrong on a GPU in software. Texts are pooled within the
graph, so that a vector for each is all that is read back.
"""

import numpy as np
from onnx import TensorProto, helper

FUSED = {"domain": "com.microsoft"}
# No text of the bench is longer, and a window of EmbeddingGemma reaches further.
POSITIONS = 256


def shapes(config):
    """The sizes of all tensors, by their names in the Hugging Face folder."""
    width, wide, head = (config[of] for of in ("hidden_size", "intermediate_size", "head_dim"))
    queries = config["num_attention_heads"] * head
    keys = config["num_key_value_heads"] * head
    sizes = {"embed_tokens.weight": [config["vocab_size"], width], "norm.weight": [width]}
    for layer in range(config["num_hidden_layers"]):
        parts = {
            "input_layernorm": [width],
            "post_attention_layernorm": [width],
            "self_attn.q_proj": [queries, width],
            "self_attn.k_proj": [keys, width],
            "self_attn.v_proj": [keys, width],
            "self_attn.o_proj": [width, queries],
            "self_attn.q_norm": [head],
            "self_attn.k_norm": [head],
            "mlp.gate_proj": [wide, width],
            "mlp.up_proj": [wide, width],
            "mlp.down_proj": [width, wide],
        }
        if is_gemma(config):
            parts["pre_feedforward_layernorm"] = parts["post_feedforward_layernorm"] = [width]
        sizes.update({f"layers.{layer}.{part}.weight": shape for part, shape in parts.items()})
    return sizes


def is_gemma(config):
    return config["model_type"] == "gemma3_text"


class Decoder:
    """The nodes of one model, whose weights and nodes `graph` keeps."""

    def __init__(self, graph, config):
        self.graph, self.config = graph, config
        self.op, self.dtype = graph.op, graph.dtype
        self.kind = TensorProto.FLOAT16 if graph.dtype == np.float16 else TensorProto.FLOAT
        self.heads, self.keys = config["num_attention_heads"], config["num_key_value_heads"]

    def index(self, name, values, dtype=np.int64):
        return self.graph.constant(name, np.array(values, dtype))

    def norm(self, x, weight, name):
        # Gemma's scales are what its weights lie above one.
        scale = self.graph.weight(weight + ".weight", plus=1 if is_gemma(self.config) else 0)
        form = {"axis": -1, "epsilon": self.config["rms_norm_eps"], "stash_type": 1}
        return self.op("SimplifiedLayerNormalization", [x, scale], name, **form)

    def normed_heads(self, x, heads, weight, name):
        size = self.config["head_dim"]
        apart = self.op("Reshape", [x, self.index(f"heads{heads}", [0, 0, heads, size])], name + ".apart")
        normed = self.norm(apart, weight, name + ".normed")
        return self.op("Reshape", [normed, self.index(f"floats{heads}", [0, 0, heads * size])], name)

    def turns(self, theta):
        """Cosines and sines of rotary positions with this base."""
        size = self.config["head_dim"]
        steps = theta ** (-np.arange(0, size, 2) / size)
        angles = np.arange(POSITIONS)[:, None] * steps
        both = [(of, part(angles).astype(self.dtype)) for of, part in (("cos", np.cos), ("sin", np.sin))]
        return [self.graph.constant(f"{of}{theta:g}", values) for of, values in both]

    def build(self):
        op, config, index = self.op, self.config, self.index
        x = op("Gather", [self.graph.weight("embed_tokens.weight"), "input_ids"], "words")
        if is_gemma(config):
            root = self.graph.constant("root", np.array(np.sqrt(config["hidden_size"]), self.dtype))
            x = op("Mul", [x, root], "x0")
        op("Shape", ["input_ids"], "shape")
        op("Slice", ["shape", index("one", [1]), index("two", [2])], "length")
        op("Cast", ["attention_mask"], "mask", to=self.kind)
        if is_gemma(config):
            self.bias()
        else:
            self.lengths()
        for layer in range(config["num_hidden_layers"]):
            x = self.layer(x, layer)
        return self.pooled(self.norm(x, "norm", "last_hidden_state"))

    def bias(self):
        """Padding as an additive bias, `[batch, 1, length, length]`."""
        op, constant = self.op, self.graph.constant
        spread = op("Unsqueeze", ["mask", self.index("inner", [1, 2])], "spread")
        off = op("Sub", [constant("on", np.array(1, self.dtype)), spread], "off")
        floor = op("Mul", [off, constant("least", np.array(-1e9, self.dtype))], "floor")
        op("Expand", [floor, op("Concat", ["one", "one", "length", "one"], "square", axis=0)], "bias")

    def lengths(self):
        """What GroupQueryAttention asks for: each text's last place, and the longest length."""
        op = self.op
        op("Cast", ["attention_mask"], "mask.int32", to=TensorProto.INT32)
        tokens = op("ReduceSum", ["mask.int32", self.index("of_text", [1])], "tokens", keepdims=0)
        op("Sub", [tokens, self.index("last", 1, np.int32)], "last_place")
        op("Cast", [op("Squeeze", ["length"], "count")], "longest", to=TensorProto.INT32)

    def layer(self, x, layer):
        op, graph, of, name = self.op, self.graph, f"layers.{layer}.", f"layer{layer}."
        y = self.norm(x, of + "input_layernorm", name + "in")
        parts = [graph.product(y, f"{of}self_attn.{part}_proj", name + part) for part in "qkv"]
        for part, heads in enumerate([self.heads, self.keys]):
            weight = f"{of}self_attn.{'qk'[part]}_norm"
            parts[part] = self.normed_heads(parts[part], heads, weight, f"{name}{part}")
        seen = (self.seen_both_ways if is_gemma(self.config) else self.seen_behind)(parts, layer, name)
        y = graph.product(seen, of + "self_attn.o_proj", name + "out")
        if is_gemma(self.config):
            y = self.norm(y, of + "post_attention_layernorm", name + "out.normed")
        x = op("Add", [x, y], name + "first")
        before = "pre_feedforward_layernorm" if is_gemma(self.config) else "post_attention_layernorm"
        y = self.norm(x, of + before, name + "before")
        gate = graph.product(y, of + "mlp.gate_proj", name + "gate")
        if is_gemma(self.config):
            gate = op("FastGelu", [gate], name + "gelu", **FUSED)
        else:
            gate = op("Mul", [gate, op("Sigmoid", [gate], name + "sigmoid")], name + "silu")
        wide = op("Mul", [gate, graph.product(y, of + "mlp.up_proj", name + "up")], name + "wide")
        y = graph.product(wide, of + "mlp.down_proj", name + "down")
        if is_gemma(self.config):
            y = self.norm(y, of + "post_feedforward_layernorm", name + "down.normed")
        return op("Add", [x, y], name + "second")

    def seen_both_ways(self, parts, layer, name):
        """With one head of keys, which is that of every query."""
        op, size = self.op, self.config["head_dim"]
        is_global = (layer + 1) % self.config["sliding_window_pattern"] == 0
        turns = self.turns(1e6 if is_global else 1e4)
        for part, heads in enumerate([self.heads, self.keys]):
            inputs = [parts[part], self.index("start", [0]), *turns]
            parts[part] = self.op("RotaryEmbedding", inputs, f"{name}{part}.turned", num_heads=heads, **FUSED)
        # Queries and values by heads, and keys turned.
        forms = [(self.heads, [0, 2, 1, 3]), (self.keys, [0, 2, 3, 1]), (self.keys, [0, 2, 1, 3])]
        for part, (heads, perm) in enumerate(forms):
            apart = op("Reshape", [parts[part], self.index(f"heads{heads}", [0, 0, heads, size])], f"{name}{part}.heads")
            parts[part] = op("Transpose", [apart], f"{name}{part}.by_head", perm=perm)
        query, key, value = parts
        scale = self.graph.constant("scale", np.array(self.config["query_pre_attn_scalar"] ** -0.5, self.dtype))
        scores = op("Mul", [op("MatMul", [query, key], name + "products"), scale], name + "scaled")
        shares = op("Softmax", [op("Add", [scores, "bias"], name + "scores")], name + "shares", axis=-1)
        seen = op("MatMul", [shares, value], name + "seen.by_head")
        seen = op("Transpose", [seen], name + "seen.apart", perm=[0, 2, 1, 3])
        return op("Reshape", [seen, self.index("floats.seen", [0, 0, self.heads * size])], name + "seen")

    def seen_behind(self, parts, _layer, name):
        inputs = [*parts, "", "", "last_place", "longest", *self.turns(self.config["rope_theta"])]
        form = {"num_heads": self.heads, "kv_num_heads": self.keys, "do_rotary": 1, **FUSED}
        outputs = [name + of for of in ("seen", "keys", "values")]
        self.graph.nodes.append(helper.make_node("GroupQueryAttention", inputs, outputs, name, **form))
        return name + "seen"

    def pooled(self, x):
        """The mean of a text's tokens; the last of texts that are equally long, where they are read in order."""
        op = self.op
        if is_gemma(self.config):
            weights = op("Unsqueeze", ["mask", self.index("behind", [2])], "weights")
            total = op("ReduceSum", [op("Mul", [x, weights], "weighted"), "one"], "total", keepdims=0)
            x = op("Div", [total, op("ReduceSum", ["mask", "one"], "tokens", keepdims=1)], "mean")
        else:
            x = op("Gather", [x, self.index("end", -1)], "end_of_text", axis=1)
        op("Cast", [x], "sentence_embedding", to=TensorProto.FLOAT)
        sizes = ["batch", self.config["hidden_size"]]
        return helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, sizes)


def graph_of(graph, config):
    """The model whose weights `graph` has."""
    output = Decoder(graph, config).build()
    names = ["input_ids", "attention_mask"]
    inputs = [helper.make_tensor_value_info(of, TensorProto.INT64, ["batch", "length"]) for of in names]
    made = helper.make_graph(graph.nodes, "decoder", inputs, [output], list(graph.constants.values()))
    versions = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(made, opset_imports=versions, ir_version=9)

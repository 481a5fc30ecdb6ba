"""Makes tiny models with random weights, and what transformers computes by them in float64.

    python -m venv /tmp/models && . /tmp/models/bin/activate
    pip install torch transformers tokenizers safetensors
    python tests/embed/make_models.py

writes tests/data/models anew, a folder for each model as sentence-transformers has it, with the
vectors of some texts, or the scores of some pairs, in oracle.json. The tests read these folders and
need no Python. What weights are made of is seeded, but other versions than those in versions.json
may number random floats in another way.

Weights are 32-bit floats that are computed with as 64-bit ones; the softmax too, and the angles that
queries and keys are turned by, which transformers computes in 32 bits otherwise.
"""

import contextlib
import json
import math
import platform
import shutil
import types
from pathlib import Path

import safetensors
import safetensors.torch
import tokenizers
import torch
import transformers
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertModel,
    DistilBertConfig,
    DistilBertForMaskedLM,
    EmbeddingGemma2Config,
    EmbeddingGemma2Model,
    EmbeddingGemma2TextConfig,
    Gemma3TextConfig,
    Gemma3TextModel,
    GteConfig,
    GteForSequenceClassification,
    GteModel,
    JinaEmbeddingsV3Config,
    JinaEmbeddingsV3Model,
    ModernBertConfig,
    ModernBertForSequenceClassification,
    ModernBertModel,
    MPNetConfig,
    MPNetModel,
    NomicBertConfig,
    NomicBertModel,
    Qwen3Config,
    Qwen3ForSequenceClassification,
    Qwen3Model,
    RobertaConfig,
    RobertaModel,
    XLMRobertaConfig,
    XLMRobertaForSequenceClassification,
)

HOME = Path(__file__).parent.parent / "data" / "models"
SIZES = dict(
    vocab_size=150,
    hidden_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=80,
    max_position_embeddings=64,
    type_vocab_size=2,
)
WORDS = "the a cat dog sat ran on in fog mat hello world and is text where do cats sleep ? . , ##ing ##s"
LENGTHS = [1, 2, 3, 9, 17, 33, 60]

softmax = torch.nn.functional.softmax
torch.nn.functional.softmax = lambda x, dim=None, dtype=None, **_: softmax(x, dim=dim)


def filled(model):
    """Weights of which each has an effect, in 32-bit floats."""
    generator = torch.Generator().manual_seed(20261126)
    # The weights of Gemma 3's norms are less 1.
    usual = 0.0 if "Gemma3" in type(model).__name__ else 1.0
    with torch.no_grad():
        for name, weight in model.named_parameters():
            noise = torch.randn(weight.shape, generator=generator)
            if "norm" in name.lower():
                weight.copy_((usual if name.endswith("weight") else 0.0) + 0.1 * noise)
            elif weight.dim() == 1:
                weight.copy_(0.1 * noise)
            elif "embedding" in name or "bias" in name:
                weight.copy_(0.7 * noise)
            else:
                weight.copy_(noise * 1.5 / math.sqrt(weight.shape[1]))
            # Where scores have no scale, the weights of norms have it.
            if "EmbeddingGemma2" in type(model).__name__ and "q_norm" in name:
                weight.mul_(0.25)
        for name, number in model.named_buffers():
            if name.endswith("layer_scalar"):
                number.copy_(0.8 + 0.1 * torch.randn(number.shape, generator=generator))
    return model.eval()


def write(folder, name, value):
    path = HOME / folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    text = value if isinstance(value, str) else json.dumps(value, indent=2) + "\n"
    path.write_text(text)


def save(folder, model, specials):
    """A model's weights and configuration, and words for WordPiece."""
    model.save_pretrained(HOME / folder)
    for extra in HOME.joinpath(folder).glob("generation_config.json"):
        extra.unlink()
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    words = specials + letters + ["##" + letter for letter in letters]
    words += [word for word in WORDS.split() if word not in words]
    words += [f"[unused{i}]" for i in range(SIZES["vocab_size"] - len(words))]
    write(folder, "vocab.txt", "\n".join(words) + "\n")
    return words


def ids_of(length, seed, padding):
    generator = torch.Generator().manual_seed(1000 * seed + length)
    high = SIZES["vocab_size"]
    ids = torch.randint(4, high, (length,), generator=generator).tolist()
    assert padding not in ids
    return ids


@contextlib.contextmanager
def doubled():
    """What asks for 32 bits gets 64."""
    narrow, method = torch.float, torch.Tensor.float
    torch.float, torch.Tensor.float = torch.float64, torch.Tensor.double
    try:
        yield
    finally:
        torch.float, torch.Tensor.float = narrow, method


def turned(model, **paces):
    """Has a model turn by these paces in 64 bits: a base, what all are multiplied by, and the floats
    of a head where these are others than the model's."""
    config = model.config
    even = config.hidden_size // config.num_attention_heads
    for name, (theta, scale, *own) in paces.items():
        size = own[0] if own else getattr(config, "head_dim", even)
        exponents = torch.arange(0, size, 2, dtype=torch.float64) / size
        setattr(model.rotary_emb, name, scale * theta**-exponents)
    return model


def hidden(model, ids):
    """The vectors of a text's tokens."""
    with torch.no_grad(), doubled():
        return model(input_ids=torch.tensor([ids])).last_hidden_state[0]


POOLINGS = {
    "mean": lambda x: x.mean(0),
    "cls": lambda x: x[0],
    "max": lambda x: x.max(0).values,
    "lasttoken": lambda x: x[-1],
}


def modules(folder, names, files):
    """modules.json, and the files of modules below."""
    listed = []
    for at, (kind, content) in enumerate(zip(names, files)):
        path = "" if at == 0 else f"{at}_{kind}"
        listed.append(
            {
                "idx": at,
                "name": str(at),
                "path": path,
                "type": f"sentence_transformers.models.{kind}",
            }
        )
        if content is not None:
            write(folder, f"{path}/config.json", content)
    write(folder, "modules.json", listed)


def embedder(
    folder,
    whole,
    encoder,
    specials,
    pooling,
    dense=(),
    normalizes=True,
    lengths=LENGTHS,
    paces={},
    change={},
):
    """A folder of sentence-transformers with texts' vectors."""
    save(folder, filled(whole), specials)
    config = json.loads((HOME / folder / "config.json").read_text())
    write(folder, "config.json", {**config, **change})
    model = turned(encoder.double(), **paces) if paces else encoder.double()
    size = getattr(encoder.config, "embedding_dim", SIZES["hidden_size"])
    names, files = ["Transformer", "Pooling"], [None]
    flags = {f"pooling_mode_{name}_tokens": name == pooling for name in ["mean", "max"]}
    flags["pooling_mode_cls_token"] = pooling == "cls"
    flags["pooling_mode_lasttoken"] = pooling == "lasttoken"
    files.append({"word_embedding_dimension": size, **flags, "include_prompt": True})
    layers = []
    for at, (outputs, has_bias, function) in enumerate(dense):
        layer = filled(torch.nn.Linear(size, outputs, bias=has_bias))
        path = HOME / folder / f"{2 + at}_Dense"
        path.mkdir(parents=True, exist_ok=True)
        state = {f"linear.{name}": x.contiguous() for name, x in layer.state_dict().items()}
        safetensors.torch.save_file(state, path / "model.safetensors")
        names.append("Dense")
        files.append(
            {
                "in_features": size,
                "out_features": outputs,
                "bias": has_bias,
                "activation_function": f"{type(function).__module__}.{type(function).__name__}",
            }
        )
        layers += [layer.double(), function]
        size = outputs
    if normalizes:
        names.append("Normalize")
        files.append(None)
    modules(folder, names, files)

    def vector(ids, cut=None):
        x = POOLINGS[pooling](hidden(model, ids))
        with torch.no_grad():
            for layer in layers:
                x = layer(x)
        x = x[:cut]
        return (x / x.norm() if normalizes else x).tolist()

    padding = getattr(model.config, "pad_token_id", None)
    texts = [ids_of(length, 1, padding) for length in lengths]
    cut = size // 3
    write(
        folder,
        "oracle.json",
        {
            "texts": [{"ids": ids, "vector": vector(ids)} for ids in texts],
            "dimensions": cut,
            "cut": [{"ids": ids, "vector": vector(ids, cut)} for ids in texts[-2:]],
        },
    )


class JinaV2(torch.nn.Module):
    """The second version of Jina's encoders, whose code transformers has not: BERT with a gated network
    (Shazeer, 2020) and biases that fall with the distance (Press and others, ALiBi, 2022)."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        size, inner = config.hidden_size, config.intermediate_size
        linear, norm = torch.nn.Linear, torch.nn.LayerNorm
        shapes = {"embeddings.word_embeddings": torch.nn.Embedding(config.vocab_size, size)}
        shapes["embeddings.token_type_embeddings"] = torch.nn.Embedding(2, size)
        shapes["embeddings.LayerNorm"] = norm(size)
        for layer in range(config.num_hidden_layers):
            of = f"encoder.layer.{layer}."
            for name in ["self.query", "self.key", "self.value", "output.dense"]:
                shapes[f"{of}attention.{name}"] = linear(size, size)
            shapes[of + "attention.output.LayerNorm"] = norm(size)
            shapes[of + "mlp.gated_layers"] = linear(size, 2 * inner, bias=False)
            shapes[of + "mlp.wo"] = linear(inner, size)
            shapes[of + "mlp.layernorm"] = norm(size)
        for name, part in shapes.items():
            *path, last = name.split(".")
            owner = self
            for step in path:
                if not hasattr(owner, step):
                    owner.add_module(step, torch.nn.Module())
                owner = getattr(owner, step)
            owner.add_module(last, part)
        for part in self.modules():
            if isinstance(part, norm):
                part.eps = config.layer_norm_eps

    def save_pretrained(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        safetensors.torch.save_file(self.state_dict(), folder / "model.safetensors")
        kinds = dict(position_embedding_type="alibi", feed_forward_type="geglu")
        config = {**self.config.to_dict(), **kinds, "architectures": ["JinaBertForMaskedLM"]}
        (folder / "config.json").write_text(json.dumps(config))

    def forward(self, input_ids):
        of = self.embeddings
        x = of.word_embeddings(input_ids) + of.token_type_embeddings.weight[0]
        x = of.LayerNorm(x)[0]
        heads = self.config.num_attention_heads
        places = torch.arange(len(x), dtype=x.dtype)
        far = (places[:, None] - places[None, :]).abs()
        # Of 6 heads the first 4 have the slopes of 4, and 2 have those that 8 heads have besides.
        slopes = [2.0 ** (-8 * i / 4) for i in range(1, 5)]
        slopes += [2.0 ** (-8 * i / 8) for i in range(1, 2 * (heads - 4), 2)]
        for layer in self.encoder.layer.children():
            attention = layer.attention
            split = lambda part: part(x).view(len(x), heads, -1).transpose(0, 1)
            q, k, v = [split(getattr(attention.self, name)) for name in ["query", "key", "value"]]
            scores = q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])
            scores = scores - torch.tensor(slopes, dtype=x.dtype)[:, None, None] * far
            seen = (softmax(scores, dim=-1) @ v).transpose(0, 1).reshape(len(x), -1)
            x = attention.output.LayerNorm(attention.output.dense(seen) + x)
            gate, inner = layer.mlp.gated_layers(x).chunk(2, dim=-1)
            fed = layer.mlp.wo(torch.nn.functional.gelu(gate) * inner)
            x = layer.mlp.layernorm(fed + x)
        return types.SimpleNamespace(last_hidden_state=x[None])


PAIRS = [
    ("where do cats sleep?", "the cat sat on a mat"),
    ("where do cats sleep?", "dogs sleep in fog, and cats sleep on the mat."),
    ("hello", ""),
    ("", "hello world"),
    ("the cat", "the cat"),
    ("a text and " * 8, "in the fog " * 12),
    ("a", "in the fog is a cat that ran " * 9),
]


def reranker(folder, model, specials, change, paces={}):
    """A folder of a cross-encoder with pairs' scores."""
    words = save(folder, filled(model), specials)
    config = json.loads((HOME / folder / "config.json").read_text())
    write(folder, "config.json", {**config, **change})
    limit = 40
    cls, sep = specials[0], specials[2] if "[PAD]" == specials[1] else specials[3]
    cls = "[CLS]"
    sep = "[SEP]"
    write(folder, "tokenizer_config.json", {"model_max_length": limit, "do_lower_case": True})
    split = tokenizers.BertWordPieceTokenizer(vocab={word: i for i, word in enumerate(words)})
    split.enable_truncation(limit, strategy="longest_first")
    model = model.double()
    turned(model.base_model, **paces)
    scored = []
    for query, document in PAIRS:
        encoded = split.encode(query, document)
        types = {}
        if getattr(model.config, "type_vocab_size", 0) > 1:
            types["token_type_ids"] = torch.tensor([encoded.type_ids])
        with torch.no_grad(), doubled():
            logit = model(input_ids=torch.tensor([encoded.ids]), **types).logits.item()
        scored.append(
            {
                "query": query,
                "document": document,
                "ids": encoded.ids,
                "types": encoded.type_ids,
                "logit": logit,
                "score": 1 / (1 + math.exp(-logit)),
            }
        )
    write(folder, "oracle.json", {"pairs": scored})


BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
# The places of <s>, <pad>, </s> and <unk>.
ROBERTA = ["[CLS]", "[PAD]", "[SEP]", "[UNK]"]


def main():
    shutil.rmtree(HOME, ignore_errors=True)
    eager = dict(attn_implementation="eager")
    bert = BertModel(BertConfig(**SIZES, hidden_act="gelu_new", **eager), add_pooling_layer=False)
    dense = [(40, True, torch.nn.Tanh()), (24, False, torch.nn.Identity())]
    embedder("bert-dense", bert, bert, BERT, "cls", dense)

    one_type = {**SIZES, "type_vocab_size": 1}
    roberta = RobertaConfig(**one_type, layer_norm_eps=1e-5, **eager)
    roberta = RobertaModel(roberta, add_pooling_layer=False)
    embedder("roberta", roberta, roberta, ROBERTA, "mean")

    distilbert = DistilBertForMaskedLM(
        DistilBertConfig(
            vocab_size=SIZES["vocab_size"],
            max_position_embeddings=64,
            n_layers=2,
            n_heads=4,
            dim=48,
            hidden_dim=80,
            activation="relu",
            **eager,
        )
    )
    embedder("distilbert", distilbert, distilbert.distilbert, BERT, "max", normalizes=False)

    sizes = {key: value for key, value in SIZES.items() if key != "type_vocab_size"}
    sizes["max_position_embeddings"] = 144
    mpnet = MPNetConfig(**sizes, layer_norm_eps=1e-5, **eager)
    mpnet = MPNetModel(mpnet, add_pooling_layer=False)
    embedder("mpnet", mpnet, mpnet, ROBERTA, "mean", lengths=[*LENGTHS, 100, 142])

    # Two layers that attend to 8 neighbors on each side, between two that attend to all.
    turns = {**sizes, "max_position_embeddings": 64, "intermediate_size": 56, **eager}
    specials = dict(bos_token_id=2, cls_token_id=2, eos_token_id=3, sep_token_id=3, pad_token_id=0)
    # A field that ModernBERT does not read, and that its public models have.
    unread = dict(position_embedding_type="absolute")
    modern = ModernBertConfig(
        **{**turns, "num_hidden_layers": 4}, **specials, local_attention=16, global_rope_theta=5e3, **unread
    )
    modern = ModernBertModel(modern)
    paces = dict(full_attention_inv_freq=(5e3, 1.0), sliding_attention_inv_freq=(1e4, 1.0))
    embedder("modernbert", modern, modern, BERT, "mean", paces=paces)

    nomic = NomicBertModel(NomicBertConfig(**turns, type_vocab_size=2), add_pooling_layer=False)
    embedder("nomic-bert", nomic, nomic, BERT, "mean", paces=dict(inv_freq=(1e3, 1.0)))

    # As Alibaba's folders have it, with texts that are twice as long as those it was trained with.
    gte = GteModel(GteConfig(**turns, type_vocab_size=1), add_pooling_layer=False)
    scaling = {"type": "ntk", "factor": 2.0}
    change = dict(model_type="new", rope_theta=2e4, rope_scaling=scaling, rope_parameters=None)
    paces = dict(inv_freq=(4e4, 2.0 ** (-2 / 12)))
    embedder("gte", gte, gte, ROBERTA, "cls", paces=paces, change=change)

    second = {**turns, "num_attention_heads": 6, "intermediate_size": 64}
    second = BertConfig(**second, type_vocab_size=2, hidden_act="gelu")
    second = JinaV2(second)
    embedder("jina-v2", second, second, BERT, "mean")

    jina = JinaEmbeddingsV3Config(**turns, type_vocab_size=1)
    jina = JinaEmbeddingsV3Model(jina, add_pooling_layer=False)
    embedder("jina-v3", jina, jina, ROBERTA, "mean", paces=dict(inv_freq=(2e4, 1.0)))

    decoder = {key: value for key, value in turns.items() if key != "pad_token_id"}
    decoder.update(num_attention_heads=4, num_key_value_heads=2, head_dim=20)
    qwen = Qwen3Model(Qwen3Config(**decoder, rope_parameters=dict(rope_type="default", rope_theta=1e6)))
    embedder("qwen3", qwen, qwen, BERT, "lasttoken", paces=dict(inv_freq=(1e6, 1.0)))

    # As EmbeddingGemma's folder has it: 8 neighbors on each side, one head of keys, two layers behind.
    decoder.update(num_attention_heads=3, num_key_value_heads=1, head_dim=32)
    decoder.update(query_pre_attn_scalar=40, sliding_window=16, pad_token_id=0)
    rope = dict(
        full_attention=dict(rope_type="linear", factor=2.0, rope_theta=5e4),
        sliding_attention=dict(rope_type="default", rope_theta=1e4),
    )
    paces = dict(full_attention_inv_freq=(5e4, 0.5), sliding_attention_inv_freq=(1e4, 1.0))
    kinds = ["sliding_attention", "sliding_attention", "full_attention"]
    gemma = Gemma3TextConfig(
        **{**decoder, "num_hidden_layers": 3},
        layer_types=kinds,
        rope_parameters=rope,
        use_bidirectional_attention=True,
    )
    gemma = Gemma3TextModel(gemma)
    dense = [(96, False, torch.nn.Identity()), (48, False, torch.nn.Identity())]
    embedder("gemma3", gemma, gemma, BERT, "mean", dense, paces=paces)

    # A decoder as it is, which attends to 15 tokens in front.
    change = dict(
        rope_parameters=None,
        rope_theta=5e4,
        rope_local_base_freq=1e4,
        rope_scaling=dict(rope_type="linear", factor=2.0),
        layer_types=None,
        sliding_window_pattern=2,
    )
    gemma = Gemma3TextConfig(**decoder, layer_types=kinds[1:], rope_parameters=rope)
    gemma = Gemma3TextModel(gemma)
    embedder("gemma3-causal", gemma, gemma, BERT, "lasttoken", paces=paces, change=change)

    # Four neighbors on each side with two heads of keys, all tokens with one head of larger ones.
    sizes = dict(num_attention_heads=4, num_key_value_heads=2, head_dim=16, sliding_window=4)
    sizes.update(global_head_dim=24, num_global_key_value_heads=1, layer_types=kinds)
    sizes.update(num_hidden_layers=3, hidden_size_per_layer_input=20, embedding_dim=64)
    second = EmbeddingGemma2TextConfig(
        vocab_size=SIZES["vocab_size"],
        hidden_size=SIZES["hidden_size"],
        intermediate_size=56,
        max_position_embeddings=64,
        **sizes,
    )
    second = EmbeddingGemma2Model(EmbeddingGemma2Config(text_config=second, **eager))
    paces = dict(
        full_attention_inv_freq=(1e6, 1.0, 24), sliding_attention_inv_freq=(1e4, 1.0, 16)
    )
    dense = [(40, False, torch.nn.Identity())]
    embedder("embedding-gemma2", second, second.language_model, BERT, "mean", dense, paces=paces)

    bert = BertForSequenceClassification(BertConfig(**SIZES, num_labels=1, **eager))
    reranker("reranker-bert", bert, BERT, {})
    roberta = XLMRobertaConfig(**one_type, layer_norm_eps=1e-5, num_labels=1, **eager)
    roberta = XLMRobertaForSequenceClassification(roberta)
    identity = "torch.nn.modules.linear.Identity"
    change = {"sentence_transformers": {"activation_fn": identity, "version": "5.0.0"}}
    reranker("reranker-xlm-roberta", roberta, ROBERTA, change)

    modern = ModernBertConfig(
        **turns, **specials, local_attention=16, classifier_pooling="mean", num_labels=1, **unread
    )
    paces = dict(full_attention_inv_freq=(1.6e5, 1.0), sliding_attention_inv_freq=(1e4, 1.0))
    modern = ModernBertForSequenceClassification(modern)
    reranker("reranker-modernbert", modern, BERT, change, paces)
    gte = GteForSequenceClassification(GteConfig(**turns, type_vocab_size=1, num_labels=1))
    reranker("reranker-gte", gte, ROBERTA, change, dict(inv_freq=(1.6e5, 1.0)))

    decoder = {key: value for key, value in turns.items() if key != "pad_token_id"}
    decoder.update(num_key_value_heads=2, head_dim=20, num_labels=1)
    rope = dict(rope_type="default", rope_theta=1e6)
    qwen = Qwen3ForSequenceClassification(Qwen3Config(**decoder, rope_parameters=rope))
    reranker("reranker-qwen3", qwen, BERT, {}, dict(inv_freq=(1e6, 1.0)))

    packages = [torch, transformers, tokenizers, safetensors]
    versions = {package.__name__: package.__version__ for package in packages}
    write("", "versions.json", {"python": platform.python_version(), **versions})


main()

"""Makes tiny models with random weights, and what transformers computes by them in float64.

    python -m venv /tmp/models && . /tmp/models/bin/activate
    pip install torch transformers tokenizers safetensors
    python tests/embed/make_models.py

writes tests/data/models anew, a folder for each model as sentence-transformers has it, with the
vectors of some texts, or the scores of some pairs, in oracle.json. The tests read these folders and
need no Python. What weights are made of is seeded, but other versions than those in versions.json
may number random floats in another way.

Weights are 32-bit floats that are computed with as 64-bit ones; the softmax too, which transformers
computes in 32 bits otherwise.
"""

import json
import math
import platform
import shutil
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
    MPNetConfig,
    MPNetModel,
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
    with torch.no_grad():
        for name, weight in model.named_parameters():
            noise = torch.randn(weight.shape, generator=generator)
            if "norm" in name.lower():
                weight.copy_((1.0 if name.endswith("weight") else 0.0) + 0.1 * noise)
            elif weight.dim() == 1:
                weight.copy_(0.1 * noise)
            elif "embedding" in name or "bias" in name:
                weight.copy_(0.7 * noise)
            else:
                weight.copy_(noise * 1.5 / math.sqrt(weight.shape[1]))
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


def hidden(model, ids):
    """The vectors of a text's tokens."""
    with torch.no_grad():
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


def embedder(folder, whole, encoder, specials, pooling, dense=(), normalizes=True, lengths=LENGTHS):
    """A folder of sentence-transformers with texts' vectors."""
    save(folder, filled(whole), specials)
    model = encoder.double()
    size = SIZES["hidden_size"]
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


PAIRS = [
    ("where do cats sleep?", "the cat sat on a mat"),
    ("where do cats sleep?", "dogs sleep in fog, and cats sleep on the mat."),
    ("hello", ""),
    ("", "hello world"),
    ("the cat", "the cat"),
    ("a text and " * 8, "in the fog " * 12),
    ("a", "in the fog is a cat that ran " * 9),
]


def reranker(folder, model, specials, change):
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
    scored = []
    for query, document in PAIRS:
        encoded = split.encode(query, document)
        types = encoded.type_ids if model.config.type_vocab_size > 1 else [0] * len(encoded.ids)
        with torch.no_grad():
            logit = model(
                input_ids=torch.tensor([encoded.ids]),
                token_type_ids=torch.tensor([types]),
            ).logits.item()
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

    bert = BertForSequenceClassification(BertConfig(**SIZES, num_labels=1, **eager))
    reranker("reranker-bert", bert, BERT, {})
    roberta = XLMRobertaConfig(**one_type, layer_norm_eps=1e-5, num_labels=1, **eager)
    roberta = XLMRobertaForSequenceClassification(roberta)
    identity = "torch.nn.modules.linear.Identity"
    change = {"sentence_transformers": {"activation_fn": identity, "version": "5.0.0"}}
    reranker("reranker-xlm-roberta", roberta, ROBERTA, change)

    packages = [torch, transformers, tokenizers, safetensors]
    versions = {package.__name__: package.__version__ for package in packages}
    write("", "versions.json", {"python": platform.python_version(), **versions})


main()

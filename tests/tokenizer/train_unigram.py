"""Trains a Unigram vocabulary and writes it as a `tokenizer.json`, converted as XLM-RoBERTa's is.

    pip install sentencepiece protobuf
    python tests/tokenizer/train_unigram.py --pieces 250000 --out models/unigram FOLDER...

Texts are all files below the folders that are UTF-8, up to a few hundred megabytes. Text of few
languages does not give 250,000 pieces: pieces that are missing are made of those that there are, two
and two, with lower and lower scores, and the script says how many. The same folders give the same
file.
"""

import argparse
import base64
import json
import pathlib
import random

MOST_BYTES = 300 << 20
MOST_OF_A_FILE = 8 << 20


def lines(folders):
    """Lines of all texts, in the order of the files' names."""
    total = 0
    for folder in folders:
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if not path.is_file() or path.is_symlink():
                continue
            try:
                text = path.read_bytes()[:MOST_OF_A_FILE].decode()
            except (UnicodeDecodeError, OSError):
                continue
            if "\0" in text:
                continue
            total += len(text)
            if total > MOST_BYTES:
                return
            yield from (line for line in text.splitlines() if 0 < len(line) < 4000)


def train(folders, pieces):
    """A model of at most so many pieces."""
    # Whoever only writes a file needs no SentencePiece.
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2

    model = pathlib.Path("/tmp") / "unigram"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=lines(folders),
        model_prefix=str(model),
        model_type="unigram",
        vocab_size=pieces,
        hard_vocab_limit=False,
        normalization_rule_name="nmt_nfkc",
        character_coverage=0.9999,
        input_sentence_size=1_000_000,
        shuffle_input_sentence=False,
        train_extremely_large_corpus=False,
        num_threads=2,
        minloglevel=1,
    )
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.with_suffix(".model").read_bytes())
    return proto


def padded(vocab, pieces):
    """The vocabulary with as many pieces as are wanted."""
    known = {piece for piece, _ in vocab}
    lowest = min(score for _, score in vocab)
    trained = [piece for piece, _ in vocab if len(piece) > 1]
    choice = random.Random(1)
    while len(vocab) < pieces:
        first, second = choice.choice(trained), choice.choice(trained).lstrip("▁")
        piece = first + second
        if second and piece not in known and len(piece) < 17:
            known.add(piece)
            vocab.append((piece, lowest - len(vocab) / pieces))
    return vocab


def trained_tokenizer(proto, pieces):
    """The file of what was trained."""
    trained = [(piece.piece, piece.score) for piece in proto.pieces][3:]
    print(f"{len(trained)} pieces are trained, {max(0, pieces - len(trained))} made")
    charsmap = base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode()
    return tokenizer(padded(trained, pieces), charsmap)


def tokenizer(pieces, charsmap):
    """The file, with the ids of fairseq: its four tokens first, and `<mask>` last."""
    special = [(token, 0.0) for token in ("<s>", "<pad>", "</s>", "<unk>")]
    vocab = special + pieces + [("<mask>", 0.0)]

    def around(*names):
        known = {"A": "Sequence", "B": "Sequence"}
        return [{known.get(name, "SpecialToken"): {"id": name, "type_id": 0}} for name in names]

    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": index,
                "content": token,
                "single_word": False,
                "lstrip": token == "<mask>",
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for index, (token, _) in enumerate(vocab)
            if index < 4 or token == "<mask>"
        ],
        "normalizer": {
            "type": "Precompiled",
            "precompiled_charsmap": charsmap,
        },
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "WhitespaceSplit"},
                {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
            ],
        },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": around("<s>", "A", "</s>"),
            "pair": around("<s>", "A", "</s>", "</s>", "B", "</s>"),
            "special_tokens": {
                token: {"id": token, "ids": [index], "tokens": [token]}
                for index, token in ((0, "<s>"), (2, "</s>"))
            },
        },
        "decoder": None,
        "model": {"type": "Unigram", "unk_id": 3, "vocab": vocab, "byte_fallback": False},
    }


def write(file, folder):
    """The folder with its `tokenizer.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(file, ensure_ascii=False, separators=(",", ":")))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pieces", type=int, default=250_000)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("folders", nargs="+")
    arguments = parser.parse_args()
    proto = train(arguments.folders, arguments.pieces)
    write(trained_tokenizer(proto, arguments.pieces), arguments.out)


if __name__ == "__main__":
    main()

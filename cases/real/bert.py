"""MiniLM-L6 (a BERT encoder) in plain NumPy, float64 throughout: tokeniser, weights reader, forward pass with capture.

Every matrix product goes through a `matmul` argument, so that a caller can change the order of summation and see
whether a result depends on it.
"""

import json
import math
import struct
import unicodedata

import numpy as np

HEADS = 12
LAYERS = 6
NORM_EPS = 1e-12


def read_safetensors(path):
    """All F32 tensors of a safetensors file, widened to float64 (exact)."""
    data = path.read_bytes()
    (header_bytes,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + header_bytes])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        begin, end = (8 + header_bytes + offset for offset in entry["data_offsets"])
        flat = np.frombuffer(data[begin:end], dtype="<f4")
        tensors[name] = flat.reshape(entry["shape"]).astype(np.float64)
    return tensors


def is_punctuation(char):
    """BERT's rule: every ASCII symbol counts, also those that Unicode does not call punctuation."""
    return 33 <= ord(char) <= 47 or 58 <= ord(char) <= 64 or 91 <= ord(char) <= 96 or 123 <= ord(char) <= 126 \
        or unicodedata.category(char).startswith("P")


def words_of(text):
    """Lower-cased, accents stripped, split at white space, punctuation marks alone (no CJK handling: texts are English)."""
    stripped = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(c) != "Mn")
    spaced = "".join(f" {c} " if is_punctuation(c) else c for c in stripped)
    return spaced.split()


def tokenize(text, vocabulary):
    """[CLS] + WordPiece ids (longest match first) + [SEP]."""
    ids = [vocabulary["[CLS]"]]
    for word in words_of(text):
        pieces, start = [], 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = ("##" if start else "") + word[start:end]
                if piece in vocabulary:
                    break
            else:
                pieces = [vocabulary["[UNK]"]]
                break
            pieces.append(vocabulary[piece])
            start = end
        ids += pieces
    return ids + [vocabulary["[SEP]"]]


def layer_norm(x, weights, name):
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + NORM_EPS) * weights[name + ".weight"] + weights[name + ".bias"]


def gelu(x):
    erf = np.array([math.erf(value) for value in (x / math.sqrt(2.0)).ravel()]).reshape(x.shape)
    return 0.5 * x * (1.0 + erf)


def split_heads(x):
    """[S, hidden] -> [heads, S, dim]."""
    return x.reshape(x.shape[0], HEADS, -1).transpose(1, 0, 2)


def forward(ids, weights, matmul=np.matmul):
    """Hidden states [S, hidden] after the last layer, and per layer the attention inputs {q, k, v}: [heads, S, dim]."""

    def linear(x, name):
        return matmul(x, weights[name + ".weight"].T) + weights[name + ".bias"]

    x = weights["embeddings.word_embeddings.weight"][ids]
    x = x + weights["embeddings.position_embeddings.weight"][: len(ids)]
    x = x + weights["embeddings.token_type_embeddings.weight"][0]
    x = layer_norm(x, weights, "embeddings.LayerNorm")
    captured = []
    for layer in range(LAYERS):
        prefix = f"encoder.layer.{layer}."
        q, k, v = (split_heads(linear(x, f"{prefix}attention.self.{part}")) for part in ("query", "key", "value"))
        captured.append({"q": q, "k": k, "v": v})
        logits = matmul(q, k.transpose(0, 2, 1)) / math.sqrt(q.shape[-1])
        p = np.exp(logits - logits.max(axis=-1, keepdims=True))
        context = matmul(p, v) / p.sum(axis=-1, keepdims=True)
        context = context.transpose(1, 0, 2).reshape(x.shape)
        x = layer_norm(x + linear(context, prefix + "attention.output.dense"), weights, prefix + "attention.output.LayerNorm")
        hidden = gelu(linear(x, prefix + "intermediate.dense"))
        x = layer_norm(x + linear(hidden, prefix + "output.dense"), weights, prefix + "output.LayerNorm")
    return x, captured


def sentence_embedding(text, vocabulary, weights):
    """The model's published sentence vector: mean over all tokens, then unit length."""
    mean = forward(tokenize(text, vocabulary), weights)[0].mean(axis=0)
    return mean / math.sqrt(float(mean @ mean))

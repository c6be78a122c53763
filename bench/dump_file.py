"""Dumps as `assay repro --dump` writes and `assay judge` reads them: safetensors files, torch tensors by role, a case line."""

import json
import struct

import torch

KINDS = {"BF16": torch.bfloat16, "F16": torch.float16, "F32": torch.float32, "U8": torch.uint8}
NAMES = {kind: name for name, kind in KINDS.items()}


def read_dump(path):
    """Tensors by role, on the host, and the case line."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = bytearray(file.read())
    tensors = {}
    for role, entry in header.items():
        if role == "__metadata__":
            continue
        kind, (begin, end) = KINDS[entry["dtype"]], entry["data_offsets"]
        count = (end - begin) // kind.itemsize  # frombuffer takes no empty tensor
        flat = torch.frombuffer(data, dtype=kind, count=count, offset=begin) if count else torch.empty(0, dtype=kind)
        tensors[role] = flat.reshape(entry["shape"])
    return tensors, header["__metadata__"]["case"]


def dump_bytes(tensors, metadata):
    """The file's bytes; tensors may lie on a device and in any order."""
    header, blobs, offset = {"__metadata__": metadata}, [], 0
    for role, tensor in tensors.items():
        blob = tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes()
        header[role] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(blobs)

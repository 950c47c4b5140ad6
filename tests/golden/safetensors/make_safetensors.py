#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes python.safetensors and unsupported.safetensors beside itself, for tests/unit/test_safetensors.c.

    python3 -m venv /tmp/safetensors && /tmp/safetensors/bin/pip install numpy==2.4.6 safetensors==0.8.0
    /tmp/safetensors/bin/python make_safetensors.py

With --check FILE it reads a file that test_safetensors left behind (HELIO_TEST_KEEP=FILE tests/unit/test_safetensors)
and says whether Python finds in it what it would have written itself.
"""
import pathlib
import sys
import zlib

import numpy as np
from safetensors import TensorSpec, deserialize, serialize_file

# Name, type as safetensors spells it, array. There is no bfloat16 in numpy: its bits are given.
TENSORS = [
    ("ids", "int64", np.array([-(2**63), -1, 0, 2**63 - 1], np.int64)),
    ("doubles", "float64", np.array([[0.1, -np.inf], [5e-324, 1.7976931348623157e308]], np.float64)),
    ("dense/bias", "float32", np.zeros((0, 3), np.float32)),
    ("dense/kernel", "float32", np.array([[1, 2, 3], [-0.0, np.inf, 1e-45]], np.float32)),
    ("scale", "float32", np.array(0.5, np.float32)),
    ("counts", "int32", np.array([[[-(2**31)], [2**31 - 1]]], np.int32)),
    ("brains", "bfloat16", np.array([0x3F80, 0xC000, 0x7F80], np.uint16)),
    ("halves", "float16", np.array([1, -2, 65504, 6e-8], np.float16)),
    ("Grüße \"日本\"\n", "uint8", np.array([0, 1, 254, 255, 7], np.uint8)),
    ("flags", "bool", np.array([True, False, True], np.bool_)),
]
METADATA = {"helio_crc32": "0x00000000", "format": "pt \\ \"ü\""}


def specs(tensors):
    return {
        name: TensorSpec(dtype=dtype, shape=array.shape, data_ptr=array.ctypes.data, data_len=array.nbytes)
        for name, dtype, array in tensors
    }


def write(name, tensors, metadata):
    path = pathlib.Path(__file__).parent / name
    serialize_file(specs(tensors), path, metadata=metadata)
    path.chmod(0o644)  # the library keeps its files private
    return path


def write_with_checksum(name, tensors, metadata):
    """The checksum is that of the file in which its digits are zeros."""
    before = b'{"__metadata__":{"helio_crc32":"0x'
    while not (path := write(name, tensors, metadata)).read_bytes()[8:].startswith(before):
        pass  # the library puts the pairs of the metadata in a random order
    data = path.read_bytes()
    at = 8 + len(before)
    assert data[at : at + 8] == b"00000000"
    path.write_bytes(data[:at] + b"%08x" % zlib.crc32(data) + data[at + 8 :])


def check(path):
    found = dict(deserialize(pathlib.Path(path).read_bytes()))
    assert set(found) == {name for name, _, _ in TENSORS}, sorted(found)
    for name, _, array in TENSORS:
        assert tuple(found[name]["shape"]) == array.shape, name
        assert bytes(found[name]["data"]) == array.tobytes(), name
    print(f"{path}: Python finds the same {len(found)} tensors")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--check"]:
        check(sys.argv[2])
    else:
        write_with_checksum("python.safetensors", TENSORS, METADATA)
        write("unsupported.safetensors", [("small", "int8", np.array([1, -1], np.int8))], None)

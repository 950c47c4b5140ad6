#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes checkpoint-000000000042.safetensors beside itself, for tests/unit/test_checkpoints.c: a file of Python's
safetensors library with the checksum that Python's zlib computes.

    python3 -m venv /tmp/safetensors && /tmp/safetensors/bin/pip install numpy==2.4.6 safetensors==0.8.0
    /tmp/safetensors/bin/python make_checkpoint.py

With --check FOLDER it reads the last checkpoint that test_checkpoints left there (HELIO_TEST_KEEP=FOLDER
tests/unit/test_checkpoints) by that library, and says whether its checksum is zlib's and its contents are these.
"""
import pathlib
import re
import sys
import zlib

import numpy as np
from safetensors import TensorSpec, safe_open, serialize_file

KEY = b'"helio_crc32":"0x'
TENSORS = {
    "step": np.array(42, np.int64),
    "dense/kernel": (np.arange(6, dtype=np.float32).reshape(2, 3) - 2) / 4,
    "done": np.array([True, False, True], np.bool_),
}


def checksum(data):
    """Of a file, with the digits of the checksum in it taken for zeros; and where those are."""
    at = data.index(KEY) + len(KEY)
    return zlib.crc32(data[:at] + b"00000000" + data[at + 8 :]), at


def write(path):
    specs = {
        name: TensorSpec(dtype=array.dtype.name, shape=array.shape, data_ptr=array.ctypes.data, data_len=array.nbytes)
        for name, array in TENSORS.items()
    }
    serialize_file(specs, path, metadata={"helio_crc32": "0x00000000"})
    data = path.read_bytes()
    value, at = checksum(data)
    path.write_bytes(data[:at] + b"%08x" % value + data[at + 8 :])
    path.chmod(0o644)  # the library keeps its files private


def check(folder):
    path = max(pathlib.Path(folder).glob("checkpoint-*.safetensors"))
    data = path.read_bytes()
    value, at = checksum(data)
    assert data[at : at + 8] == b"%08x" % value, (data[at : at + 8], hex(value))
    with safe_open(path, framework="np") as file:
        assert re.fullmatch("0x[0-9a-f]{8}", file.metadata()["helio_crc32"])
        assert set(file.keys()) == set(TENSORS), file.keys()
        for name, array in TENSORS.items():
            found = file.get_tensor(name)
            assert found.dtype == array.dtype and found.shape == array.shape and (found == array).all(), name
    print(f"{path.name}: Python finds the same {len(TENSORS)} tensors and the checksum 0x{value:08x}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--check"]:
        check(sys.argv[2])
    else:
        write(pathlib.Path(__file__).parent / "checkpoint-000000000042.safetensors")

# SPDX-License-Identifier: Apache-2.0
"""What all scripts of this folder share: random numbers, and the writer and reader of the files."""

import importlib.metadata
import json
import pathlib
import struct
import zlib

import numpy as np
import safetensors
import safetensors.numpy

HERE = pathlib.Path(__file__).resolve().parent
TYPES = {"float32": "F32", "float64": "F64", "int32": "I32", "int64": "I64"}
PACKAGES = ("tensorflow-cpu", "keras", "torch", "numpy", "safetensors")


def random(name):
    """A generator of its own for each case, so that a new case does not change the others."""
    return np.random.default_rng([20261117, zlib.crc32(name.encode())])


def normal(rng, *shape, scale=1.0):
    return (scale * rng.standard_normal(shape)).astype("float32")


UNUSED = ("quantization_config", "registered_name", "module", "use_ema", "ema_momentum", "ema_overwrite_frequency",
          "loss_scale_factor", "renorm", "renorm_clipping", "renorm_momentum", "synchronized", "rms_scaling", "sparse",
          "ragged", "optional")  # fmt: skip


def plain(config, drop=()):
    """A Keras configuration with all that the tests do not need left out: see README.md."""
    if isinstance(config, (list, tuple)):
        return [plain(value) for value in config]
    if isinstance(config, (np.floating, np.integer)):
        return config.item()
    if not isinstance(config, dict):
        return config
    if "class_name" in config and "config" in config:
        if config["class_name"] == "DTypePolicy":
            return config["config"]["name"]
        kept = {"class_name": config["class_name"], "config": plain(config["config"])}
        if "inbound_nodes" in config:
            kept["inbound_nodes"] = plain(config["inbound_nodes"])
        return kept
    return {
        key: plain(value)
        for key, value in config.items()
        if key not in drop and not key.endswith(("_initializer", "_constraint")) and key not in UNUSED
    }


class Writer:
    """Collects the cases of one category and writes them as <category>.safetensors."""

    def __init__(self, category, packages=PACKAGES):
        self.category = category
        self.packages = packages
        self.cases = {}
        self.tensors = {}

    def case(self, name, description):
        assert name not in self.cases, name
        assert "/" not in name, name
        self.cases[name] = description

    def tensor(self, name, value):
        value = np.array(value)  # a copy: what TensorFlow hands out may change later
        assert name not in self.tensors, name
        assert value.dtype.name in TYPES, (name, value.dtype)
        assert np.isfinite(value).all(), name
        self.tensors[name] = value

    def write(self):
        versions = {package: importlib.metadata.version(package).split("+")[0] for package in self.packages}
        metadata = {"versions": compact(versions), "order": compact(list(self.cases))}
        metadata |= {name: compact(description) for name, description in self.cases.items()}
        path = HERE / f"{self.category}.safetensors"
        write_safetensors(path, self.tensors, metadata)
        check(path, self.tensors, metadata)
        print(f"{path.name}: {len(self.cases)} cases, {len(self.tensors)} tensors, {path.stat().st_size} bytes")


def compact(value):
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def write_safetensors(path, tensors, metadata):
    """The safetensors package writes the metadata in an order that changes from run to run, so this is done here."""
    ordered = sorted(tensors, key=lambda name: (-tensors[name].itemsize, name))  # keeps each tensor aligned
    header = {"__metadata__": metadata}
    offset = 0
    for name in ordered:
        array = tensors[name]
        end = offset + array.nbytes
        header[name] = {"dtype": TYPES[array.dtype.name], "shape": list(array.shape), "data_offsets": [offset, end]}
        offset = end
    text = compact(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in ordered:
            array = tensors[name]
            file.write(array.astype(array.dtype.newbyteorder("<")).tobytes())


def check(path, tensors, metadata):
    """The safetensors package reads what was written."""
    with safetensors.safe_open(path, framework="numpy") as file:
        assert file.metadata() == metadata
    read = safetensors.numpy.load_file(path)
    assert sorted(read) == sorted(tensors)
    for name, array in tensors.items():
        assert read[name].dtype == array.dtype and np.array_equal(read[name], array), name


def load(category):
    """(cases, tensors) of a file that was written."""
    path = HERE / f"{category}.safetensors"
    with safetensors.safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
    cases = {name: json.loads(metadata[name]) for name in json.loads(metadata["order"])}
    return cases, safetensors.numpy.load_file(path)

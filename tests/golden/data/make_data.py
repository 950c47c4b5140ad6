#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the files beside itself with the real numpy and Keras, for tests/unit/test_readers.c, test_sequences.c and
test_load_data.c.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install numpy==2.4.6 keras==3.15.1 tensorflow safetensors ml_dtypes
    /tmp/venv/bin/python make_data.py [FOLDER]

FOLDER has mnist/*.gz and reuters/reuters.npz, by default ../../../../shared/data; with it, and with Debian's package
dataset-fashion-mnist, real.txt is written anew, else it stays. Keras' load_data() runs unchanged, but for get_file(),
which finds the files here instead of fetching them.
"""
import csv
import gzip
import io
import os
import pathlib
import pickle
import struct
import sys
import zipfile
import zlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import keras.src.datasets.fashion_mnist as fashion_mnist
import keras.src.datasets.imdb as imdb
import keras.src.datasets.reuters as reuters
import ml_dtypes
import numpy as np
from safetensors import TensorSpec, serialize_file

HERE = pathlib.Path(__file__).parent
NPY = np.lib.format

TYPES = {
    "float32": np.float32,
    "float64": np.float64,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "int32": np.int32,
    "int64": np.int64,
    "uint8": np.uint8,
    "bool": np.bool_,
}


# ---- arrays ----


def example(name, shape):
    """Numbers that differ, some of them negative or with a fraction where the type has such."""
    count = int(np.prod(shape))
    numbers = np.arange(count) * 7 % 23 - (0 if name in ("uint8", "bool") else 9)
    if "float" in name:
        numbers = numbers / 4 + 0.125
    return np.asarray(numbers % 2 if name == "bool" else numbers, TYPES[name]).reshape(shape)


def example_arrays():
    arrays = {}
    for name in TYPES:
        for axes, shape in {"0": (), "1": (7,), "3": (2, 3, 5), "none": (0, 4), "8": (1, 2, 1, 3, 1, 2, 1, 1)}.items():
            array = example(name, shape)
            arrays[f"{name} {axes}"] = array
            if len(shape) > 1:
                arrays[f"{name} {axes} fortran"] = np.asfortranarray(array)
            if array.itemsize > 1 and name != "bfloat16":
                arrays[f"{name} {axes} big"] = array.astype(array.dtype.newbyteorder(">"))
                if len(shape) > 1:
                    arrays[f"{name} {axes} big fortran"] = np.asfortranarray(arrays[f"{name} {axes} big"])
    arrays["special"] = np.array([0.0, -0.0, np.inf, -np.inf, 5e-324, 1.7976931348623157e308, 0.1])
    arrays["large"] = np.array([-(2**63), 2**63 - 1, 0], np.int64)
    return arrays


def write_expected(name, arrays):
    native = {key: np.array(a.astype(a.dtype.newbyteorder("=")), order="C") for key, a in arrays.items()}
    specs = {
        key: TensorSpec(dtype=a.dtype.name, shape=a.shape, data_ptr=a.ctypes.data, data_len=a.nbytes)
        for key, a in native.items()
    }
    serialize_file(specs, HERE / name)
    (HERE / name).chmod(0o644)


def write_arrays():
    arrays = example_arrays()
    write_expected("expected.safetensors", arrays)
    np.savez(HERE / "stored.npz", **arrays)
    np.savez_compressed(HERE / "deflated.npz", **arrays)
    np.save(HERE / "float32.npy", example("float32", (2, 3, 5)))
    np.save(HERE / "fortran.npy", np.asfortranarray(example("float32", (2, 3, 5))))
    np.save(HERE / "uint8.npy", example("uint8", (2, 3, 5)))
    for version in (1, 2, 3):
        with open(HERE / f"version{version}.npy", "wb") as file:
            NPY.write_array(file, example("int64", (7,)), version=(version, 0))
    unsupported = {"int16": np.arange(3, dtype=np.int16), "complex": np.zeros(2, np.complex64), "text": np.array(["a"]),
                   "records": np.zeros(2, [("a", "<f4"), ("b", "<i4")])}
    np.savez(HERE / "unsupported.npz", **unsupported)


def write_zip64():
    """An archive whose end has a ZIP64 record, and whose members say their sizes in one, as those over 4 GiB do."""
    data = io.BytesIO()
    np.save(data, example("uint8", (7,)))
    body, name = data.getvalue(), b"x.npy"
    crc, most = zlib.crc32(body), 0xFFFFFFFF
    local = struct.pack("<4sHHHHHIIIHH", b"PK\3\4", 45, 0, 0, 0, 0, crc, most, most, len(name), 20) + name
    local += struct.pack("<HHQQ", 1, 16, len(body), len(body))
    entry = struct.pack("<4sHHHHHHIII", b"PK\1\2", 45, 45, 0, 0, 0, 0, crc, most, most)
    entry += struct.pack("<HHHHHII", len(name), 28, 0, 0, 0, 0, most)
    entry += name + struct.pack("<HHQQQ", 1, 24, len(body), len(body), 0)
    begin = len(local) + len(body)
    end64 = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, len(entry), begin)
    place = struct.pack("<4sIQI", b"PK\6\7", 0, begin + len(entry), 1)
    end = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, most, most, 0)
    (HERE / "zip64.npz").write_bytes(local + body + entry + end64 + place + end)
    with zipfile.ZipFile(HERE / "zip64.npz") as archive:  # Python agrees
        assert archive.read("x.npy") == body


def write_idx():
    """The types of IDX, which is big-endian."""
    codes = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
    for code, kind in codes.items():
        array = (np.arange(6) * 7 - 9 * (kind != "u1")).reshape(2, 3).astype(kind)
        body = struct.pack(">BBBBII", 0, 0, code, 2, 2, 3) + array.tobytes()
        (HERE / f"type{code:02X}.idx").write_bytes(body)
        if code in (0x08, 0x0E):
            (HERE / f"type{code:02X}.idx.gz").write_bytes(gzip.compress(body, mtime=0))


# ---- lists in pickles ----


def lists(count, longest, words, seed):
    random = np.random.RandomState(seed)
    result = np.empty(count, dtype=object)
    for i in range(count):
        result[i] = [int(w) for w in random.randint(1, words, random.randint(1, longest + 1))]
    return result


class Python2(pickle._Pickler):
    """Strings and flags as Python 2 wrote them, in which bytes and text were the same, and numbers from 1 on."""

    dispatch = dict(pickle._Pickler.dispatch)

    def save_text(self, text):
        data = text if isinstance(text, bytes) else text.encode()
        self.write(b"U" + bytes([len(data)]) + data)

    def save_flag(self, flag):
        self.write(b"K" + bytes([flag]))

    dispatch[bytes] = dispatch[str] = save_text
    dispatch[bool] = save_flag

    def memoize(self, obj):
        self.memo[id(obj)] = len(self.memo) + 1, obj
        self.write(self.put(len(self.memo)))


def object_member(array, body):
    data = io.BytesIO()
    NPY.write_array_header_1_0(data, {"descr": "|O", "fortran_order": False, "shape": array.shape})
    return data.getvalue() + body


def write_pickles():
    """Lists of no, one, few and more than a thousand integers, of one to five bytes; and more than a thousand lists."""
    few = np.empty(6, dtype=object)
    few[:] = [[], [1], [255, 256, 65535, 65536], list(range(1001)), [-1, -(2**31), 2**31 - 1], []]
    many = np.empty(1003, dtype=object)
    many[:] = [[i] * (i % 3) for i in range(1003)]
    none = np.empty(0, dtype=object)
    members = {}
    for name, array in {"few": few, "many": many, "none": none}.items():
        for protocol in (3, 4, 5):
            members[f"{name} {protocol}"] = object_member(array, pickle.dumps(array, protocol))
        old = io.BytesIO()
        Python2(old, 2).dump(array)
        members[f"{name} 2"] = object_member(array, old.getvalue().replace(b"numpy._core", b"numpy.core"))
        body = pickle.dumps(array, 3).replace(b"numpy._core", b"numpy.core")
        members[f"{name} old"] = object_member(array, body)
    three = np.empty(3, dtype=object)
    three[:] = [[7], [], [1, 300, 70000]]
    for protocol in (3, 4, 5):
        (HERE / f"lists{protocol}.pickle").write_bytes(pickle.dumps(three, protocol))
    with open(HERE / "lists2.pickle", "wb") as file:
        Python2(file, 2).dump(three)
    with zipfile.ZipFile(HERE / "pickles.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in members.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), body, zipfile.ZIP_DEFLATED)
    refused = {
        "numpy integers": np.array([[np.int64(1)], [2, 3]], dtype=object),
        "floats": np.array([[1.5], [2, 3]], dtype=object),
        "texts": np.array([["a"], [2, 3]], dtype=object),
        "flags": np.array([[True], [2, 3]], dtype=object),
        "long": np.array([[2**31], [2, 3]], dtype=object),
        "deep": np.array([[[1]], [2, 3]], dtype=object),
        "tuples": np.array([(1,), (2, 3)], dtype=object),
        "integers": np.array([1, 2], dtype=object),
        "dicts": np.array([{1: 2}, [1]], dtype=object),
    }
    twice = np.empty(2, dtype=object)
    twice[0] = twice[1] = [1, 2]
    refused["twice"] = twice
    refused["square"] = np.empty((2, 2), dtype=object)
    for i in range(4):
        refused["square"][i // 2, i % 2] = [i]
    np.savez(HERE / "refused.npz", **refused)
    with zipfile.ZipFile(HERE / "refused.npz", "a") as archive:  # what bytes are in Python 3's protocol 2
        archive.writestr(zipfile.ZipInfo("codecs.npy"), object_member(few, pickle.dumps(few, 2)))


# ---- Keras' load_data ----

CASES = [
    {},
    {"seed": 0}, {"seed": 1}, {"seed": 42}, {"seed": 2**32 - 1},
    {"num_words": 30}, {"num_words": 1}, {"num_words": 1000},
    {"skip_top": 10}, {"skip_top": 10, "num_words": 40, "seed": 7},
    {"maxlen": 8}, {"maxlen": 8, "start_char": None}, {"maxlen": 3, "num_words": 20},
    {"start_char": None}, {"start_char": None, "index_from": 0}, {"start_char": 0}, {"start_char": 9},
    {"oov_char": None}, {"oov_char": None, "num_words": 30, "skip_top": 5}, {"oov_char": 0, "num_words": 30},
    {"index_from": 0}, {"index_from": 10, "num_words": 25},
    {"start_char": None, "oov_char": None, "index_from": 0, "num_words": 30, "maxlen": 9, "seed": 3},
]
SPLITS = [{"test_split": s} for s in (0.0, 0.1, 0.25, 0.5, 0.9, 1.0)] + [{"test_split": 0.3, "maxlen": 7, "seed": 5}]
DEFAULTS = {"num_words": None, "skip_top": 0, "maxlen": None, "test_split": 0.2, "seed": 113, "start_char": 1,
            "oov_char": 2, "index_from": 3}


def find_here(path):
    return lambda fname=None, *rest, **named: str(path)


def write_cases(name, module, path, cases):
    module.get_file = find_here(path)
    with open(HERE / f"{name}.txt", "w") as file:
        for case in cases:
            given = {**DEFAULTS, **case}
            print("case", *("-" if given[key] is None else given[key] for key in DEFAULTS), file=file)
            for part, (x, y) in zip(("train", "test"), module.load_data(path=str(path), **case)):
                for words, label in zip(x, y):
                    print(part, label, *words, file=file)


def write_sets():
    labels = np.random.RandomState(9).randint(0, 46, 40)
    np.savez(HERE / "reuters.npz", x=lists(40, 12, 60, 1), y=labels)
    np.savez_compressed(HERE / "imdb.npz", x_train=lists(23, 12, 60, 2), y_train=labels[:23] % 2,
                        x_test=lists(17, 12, 70, 3), y_test=labels[23:] % 2)
    write_cases("reuters", reuters, HERE / "reuters.npz", CASES + SPLITS)
    write_cases("imdb", imdb, HERE / "imdb.npz", CASES)
    images = np.random.RandomState(4).randint(0, 256, (5, 4, 3)).astype(np.uint8)
    np.savez(HERE / "mnist.npz", x_train=images[:3], y_train=np.array([1, 2, 3], np.uint8), x_test=images[3:],
             y_test=np.array([4, 5], np.uint8))


def write_padding():
    sequences = [[1, 2, 3], [], [4], [5, 6, 7, 8, 9], [-1, 300]]
    cases = [{}, {"maxlen": 3}, {"maxlen": 1}, {"maxlen": 7}]
    cases += [{"maxlen": 3, "padding": p, "truncating": t} for p in ("pre", "post") for t in ("pre", "post")]
    cases += [{"padding": "post"}, {"value": -1}, {"maxlen": 4, "value": 2.75}]
    cases += [{"maxlen": 4, "value": 7, "padding": "post"}]
    cases += [{"maxlen": 4, "value": 2.75, "dtype": d} for d in ("float32", "float64", "float16", "int64", "bool")]
    with open(HERE / "padding.txt", "w") as file:
        for sequence in sequences:
            print("sequence", *sequence, file=file)
        for case in cases:
            rows = keras.utils.pad_sequences(sequences, **case)
            behind = [int(case.get(key) == "post") for key in ("padding", "truncating")]
            given = case.get("maxlen", 0), *behind, case.get("value", 0)
            print("case", *given, rows.dtype.name, rows.shape[1], file=file)
            for row in rows:
                print("row", *(float(v) for v in row), file=file)


def write_table():
    rows = [["id", "price", "name"]]
    rows += [[1, 1.5, "Anna"], [2, "", 'Bo, "B"'], [-3, float("inf"), "two\nlines"], [4, 2e-3, ""]]
    with open(HERE / "table.csv", "w", newline="") as file:
        csv.writer(file).writerows(rows)


def write_shuffles():
    with open(HERE / "shuffles.txt", "w") as file:
        for seed in (0, 1, 42, 113, 12345, 2**31, 2**32 - 1):
            for count in (0, 1, 2, 3, 10, 624, 625, 1000, 11228, 25000, 70000):
                order = np.arange(count, dtype=np.int64)
                np.random.RandomState(seed).shuffle(order)
                print(seed, count, zlib.crc32(order.tobytes()), file=file)


# ---- the real sets ----


def text_sum(x):
    """Of each text's length and words, as 32-bit integers."""
    return zlib.crc32(b"".join(np.array([len(words), *words], np.int32).tobytes() for words in x))


def write_real(folder):
    debian = pathlib.Path("/usr/share/datasets/fashion-mnist")
    if not (folder / "reuters/reuters.npz").exists() or not debian.exists():
        print(f"{folder} or {debian} is not there: real.txt stays as it is")
        return
    with open(HERE / "real.txt", "w") as file:
        reuters.get_file = find_here(folder / "reuters/reuters.npz")
        for num_words, maxlen, seed in ((0, 0, 113), (10000, 0, 113), (1000, 200, 7)):
            parts = reuters.load_data(num_words=num_words or None, maxlen=maxlen or None, seed=seed)
            sums = [f"{len(x)} {text_sum(x)} {zlib.crc32(y.astype(np.int64).tobytes())}" for x, y in parts]
            print("reuters", num_words, maxlen, seed, *sums, file=file)
        # Keras reads IDX files for Fashion-MNIST only; MNIST's are of the same form.
        for name, place in (("mnist", folder / "mnist"), ("fashion-mnist", debian)):
            fashion_mnist.get_file = lambda fname=None, place=place, **named: str(place / fname)
            parts = fashion_mnist.load_data()
            print(name, *(f"{len(x)} {zlib.crc32(x.tobytes())} {zlib.crc32(y.tobytes())}" for x, y in parts), file=file)


if __name__ == "__main__":
    write_arrays()
    write_zip64()
    write_idx()
    write_pickles()
    write_sets()
    write_padding()
    write_shuffles()
    write_table()
    write_real(pathlib.Path(sys.argv[1]) if sys.argv[1:] else HERE / "../../../../shared/data")

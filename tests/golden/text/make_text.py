#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes cases.bin beside itself: arrays and what numpy's str() makes of them, for tests/unit/test_text.c.

    python3 -m venv /tmp/text && /tmp/text/bin/pip install numpy==2.4.6 ml_dtypes==0.6.0
    /tmp/text/bin/python make_text.py

A line with the versions, a line with the number of cases, then for each case a line

    type rank extent ... stored bytes

where type is the value in helio/types.h, stored the number of elements kept (an array of more elements repeats them,
so that large arrays stay small here) and bytes the length of the text; then the elements, little-endian, and the text.
The last line of the file is "end".
"""
import pathlib

import ml_dtypes
import numpy as np

TYPES = {
    np.dtype("float32"): 1,
    np.dtype("float64"): 2,
    np.dtype("float16"): 3,
    np.dtype(ml_dtypes.bfloat16): 4,
    np.dtype("int32"): 5,
    np.dtype("int64"): 6,
    np.dtype("uint8"): 7,
    np.dtype("bool"): 8,
}
FLOATS = [dtype for dtype in TYPES if TYPES[dtype] <= 4]
INTEGERS = [dtype for dtype in TYPES if 5 <= TYPES[dtype] <= 7]
SPECIALS = [np.nan, np.inf, -np.inf, 0.0, -0.0]

random = np.random.default_rng(20261116)
cases = []


def add(values, dtype, shape=None):
    stored = np.asarray(values).astype(dtype).reshape(-1)
    if shape is None:
        shape = np.shape(values)
    count = int(np.prod(shape, dtype=np.int64))
    array = np.resize(stored, count).reshape(shape)
    stored = stored[:count]
    text = str(array).encode()
    fields = [TYPES[stored.dtype], len(shape), *shape, stored.size, len(text)]
    little = stored.view(f"u{stored.dtype.itemsize}").astype(f"<u{stored.dtype.itemsize}")
    cases.append(" ".join(map(str, fields)).encode() + b"\n" + little.tobytes() + text + b"\n")


def bits(dtype, count):
    """Any bit pattern: all magnitudes, numbers with few leading bits, infinities, not-a-number."""
    return np.frombuffer(random.bytes(count * dtype.itemsize), dtype)


def from_the_guides():
    add([[22, 28], [49, 64]], "float32")
    add([[44, 56], [98, 128]], "float32")
    add([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "float32")
    add([[0.0, 1.0], [2.5, -3.25]], "float32")
    add(3.0, "float32")
    add(7, "int32")


def scalars():
    numbers = SPECIALS + [1, -1, 0.1, 1 / 3, 100, 999.5, 1000, 65504, 999999.9, 1e6, 12345678.9, 1e8, 123456789.125]
    numbers += [1e15, 9999999999999998, 1e16, 1.5e300, 1e-4, 9.9e-5, 1e-5, 6e-8, 5e-324, 1.1754944e-38, 2.0**-44, 2.0**89]
    numbers += [1.2e6, 2.0**-14, 2.0**-1022, 9007199254740993.0, 0.3, 2.5, 123456.5]
    for dtype in FLOATS:
        for number in numbers:
            add(number, dtype)
        for number in bits(dtype, 12):
            add(number, dtype)
    for dtype in INTEGERS:
        for number in (0, 9, np.iinfo(dtype).min, np.iinfo(dtype).max):
            add(number, dtype)
    add(True, "bool")
    add(False, "bool")


def float_columns():
    for dtype in FLOATS:
        for number in SPECIALS:
            add([number], dtype)
            add([number, 1.5], dtype)
        add(SPECIALS, dtype)
        add([np.nan, np.inf], dtype)
        add([1e-30, np.nan, -np.inf], dtype)
        add([1, 10, 100, 1000], dtype)
        add([1, 1000.2], dtype)
        add([1, 1000.3], dtype)
        add([1, 1000.5], dtype)
        add([0.900390625, 900.5], dtype)
        add([0.9052734375, 905.5], dtype)
        add([1e-4, 0.01], dtype)
        add([9.9e-5], dtype)
        for border in (1e3, 1e6, 1e8):
            add([border], dtype)
            add([border * (1 - 2**-9), -border / 3], dtype)
        for power in (-300, -40, -7, -1, 0, 2, 5, 12, 37, 300):
            add(random.normal(size=5) * 10.0**power, dtype)
            add(2.0 ** random.integers(-4, 5, 4) * 10.0**power, dtype)
        for decimals in range(9):
            add(np.round(random.uniform(-99, 99, 6), decimals), dtype)
        for _ in range(6):
            add(bits(dtype, 3), dtype)


def shapes():
    every = [(0,), (0, 3), (3, 0), (2, 0, 4), (1,), (1, 1), (1, 1, 1, 1, 1, 1, 1, 1), (5, 1), (1, 5), (2, 3, 2)]
    every += [(2, 2, 2, 2), (2, 1, 2, 1, 2), (1, 2, 1, 2, 1, 2), (2, 1, 1, 2, 1, 1, 2), (2, 1, 2, 1, 1, 1, 2, 2)]
    for dtype in TYPES:
        for shape in every:
            add(random.integers(-9, 12, 16) % 7, dtype, shape)
    for rank in range(1, 9):
        add(random.normal(size=23), "float32", (1,) * (rank - 1) + (23,))
        add(random.integers(0, 2, 31), "bool", (1,) * (rank - 1) + (31,))


def wide_rows():
    for dtype in FLOATS:
        add(random.normal(size=17) * 30, dtype, (2, 17))
        add(10.0 ** random.uniform(-7, 7, 19), dtype)
        add(np.where(random.random(40) < 0.3, np.nan, np.arange(40) / 4), dtype)
    for dtype in INTEGERS:
        for shift in range(0, 8 * dtype.itemsize, 5):
            add(bits(dtype, 11) >> shift, dtype, (11 + shift,))
    for count in range(34, 41):
        add([7], "uint8", (count,))
        add([7], "uint8", (2, count))
    add(random.integers(0, 2, 60), "bool")


def summaries():
    every = [(1000,), (1001,), (7, 143), (6, 167), (500, 3), (3, 500), (10, 10, 10), (10, 10, 11), (2, 7, 80), (7, 6, 5, 6)]
    every += [(1, 1, 1, 1, 1, 1, 1, 1001), (7, 1, 7, 1, 7, 1, 7)]
    for dtype in TYPES:
        for shape in every[1:3] if TYPES[dtype] not in (1, 5) else every:
            add(random.normal(size=13) * 40 + 60, dtype, shape)
    add(np.arange(2000), "int64")
    # The large number is not among those shown, so it must not change how the others look.
    add([1.5] * 500 + [1e30] + [2.5] * 500, "float32")
    add([5] * 500 + [-123456] + [7] * 500, "int32")
    add([0, 1, 2, 3, 4], "uint8", (3, 4, 2, 5, 3, 4))


def main():
    for group in (from_the_guides, scalars, float_columns, shapes, wide_rows, summaries):
        with np.errstate(all="ignore"):
            group()
    head = f"numpy {np.__version__} ml_dtypes {ml_dtypes.__version__}\n{len(cases)}\n"
    path = pathlib.Path(__file__).with_name("cases.bin")
    path.write_bytes(head.encode() + b"".join(cases) + b"end\n")
    print(f"{path}: {len(cases)} cases, {path.stat().st_size} bytes")


main()

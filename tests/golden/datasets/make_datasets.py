#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes pipelines.txt and epochs.txt beside itself with the real tf.data, for tests/unit/test_datasets.c.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install tensorflow==2.21.0
    /tmp/venv/bin/python make_datasets.py

A pipeline is written as words that act on a stack of datasets ("range 7, batch 3, repeat 2"), which this script and
tests/unit/pipelines.h both carry out. A line of pipelines.txt is PIPELINE => CARDINALITY : ELEMENTS, where an element
is its parts with '|' between them and a part is its shape and its numbers, "2x3:0,1,2,3,4,5"; "..." stands for more than
LIMIT elements and "error" for an iteration that fails. A line of epochs.txt is PIPELINE => A B C D: the first of four
epochs that had the same order as this one; "repeat" before it means that the epochs are those of one iterator.
"""
import os
import pathlib
import random

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf

HERE = pathlib.Path(__file__).parent
LIMIT = 24
Dataset = tf.data.Dataset


def generated(count, ragged):
    def run():
        for i in range(count):
            yield np.arange(i, i + 1 + i * 5 % 4, dtype=np.int64) if ragged else np.int64(i)

    return Dataset.from_generator(run, output_signature=tf.TensorSpec([None] if ragged else [], tf.int64))


def slices(count):
    x = np.arange(count * 6, dtype=np.int64).reshape(count, 2, 3)
    return Dataset.from_tensor_slices((x, np.arange(count, dtype=np.int64) + 100))


def ragged_pair(count):
    def run():
        for i in range(count):
            yield np.full((1 + i % 3, 2 + i % 2), i + 1, np.int64), np.int64(i)

    signature = (tf.TensorSpec([None, None], tf.int64), tf.TensorSpec([], tf.int64))
    return Dataset.from_generator(run, output_signature=signature)


def mapped(*parts):
    result = tuple(part * 2 + 1 for part in parts)
    return result if len(result) > 1 else result[0]


def act(stack, words):
    name, numbers = words[0], [int(word) for word in words[1:]]
    if name in ("range", "gen", "ragged", "slices", "pairs"):
        make = {
            "range": Dataset.range,
            "gen": lambda n: generated(n, False),
            "ragged": lambda n: generated(n, True),
            "slices": slices,
            "pairs": ragged_pair,
        }
        stack.append(make[name](*numbers))
        return
    if name == "zip":
        count = numbers[0]
        parts = stack[-count:]
        del stack[-count:]
        stack.append(Dataset.zip(*parts).map(lambda *p: tuple(tf.nest.flatten(p))))
        return
    if name == "concat":
        second = stack.pop()
        stack.append(stack.pop().concatenate(second))
        return
    dataset = stack.pop()
    transforms = {
        "batch": lambda n: dataset.batch(n),
        "batch_drop": lambda n: dataset.batch(n, drop_remainder=True),
        "padded": lambda n: dataset.padded_batch(n),
        "padded_drop": lambda n: dataset.padded_batch(n, drop_remainder=True),
        "padded_to": lambda n, extent, value: dataset.padded_batch(
            n, padded_shapes=[extent], padding_values=np.int64(value)
        ),
        "padded_pair": lambda n, a, b, value: dataset.padded_batch(
            n, padded_shapes=([a, b], []), padding_values=(np.int64(value), np.int64(0))
        ),
        "take": lambda n: dataset.take(n),
        "skip": lambda n: dataset.skip(n),
        "shard": lambda n, i: dataset.shard(n, i),
        "repeat": lambda n: dataset.repeat(n),
        "cache": lambda: dataset.cache(),
        "prefetch": lambda n: dataset.prefetch(n),
        "map": lambda: dataset.map(mapped),
        "map_parallel": lambda n: dataset.map(mapped, num_parallel_calls=n, deterministic=True),
        "shuffle": lambda n, seed: dataset.shuffle(n, seed=seed),
        "shuffle_same": lambda n, seed: dataset.shuffle(n, seed=seed, reshuffle_each_iteration=False),
    }
    stack.append(transforms[name](*numbers))


def build(pipeline):
    stack = []
    for step in pipeline.split(", "):
        act(stack, step.split())
    assert len(stack) == 1, pipeline
    return stack[0]


def text_of(element):
    parts = element if isinstance(element, tuple) else (element,)
    texts = []
    for part in parts:
        array = part.numpy()
        texts.append("x".join(map(str, array.shape)) + ":" + ",".join(str(int(v)) for v in array.ravel()))
    return "|".join(texts)


def describe(pipeline):
    dataset = build(pipeline)
    texts = []
    try:
        for element in dataset:
            if len(texts) == LIMIT:
                texts.append("...")
                break
            texts.append(text_of(element))
    except (tf.errors.InvalidArgumentError, tf.errors.DataLossError):
        texts.append("error")
    return f"{pipeline} => {int(dataset.cardinality())} : {' '.join(texts)}".rstrip()


# ---- pipelines ----

BY_HAND = """
range 0
range 1
range 7
gen 0
gen 4
slices 4
slices 0
range 7, batch 3
range 7, batch_drop 3
range 6, batch 3
range 2, batch 5
range 2, batch_drop 5
range 0, batch 3
slices 5, batch 2
slices 5, batch 2, batch 2
slices 4, batch_drop 2, batch 2, batch 2
range 7, batch 2, batch 2
gen 7, batch 3
gen 7, batch_drop 3
range 5, repeat 0
range 5, repeat 1
range 5, repeat 3
range 5, repeat -1
range 0, repeat -1
range 0, repeat 5
gen 0, repeat -1
gen 3, repeat -1
gen 3, repeat 2
range 3, repeat -1, repeat 2
range 3, repeat -1, take 5
range 3, repeat -1, take -1
range 3, repeat -1, take 5, repeat 2
range 3, repeat 2, repeat 3
range 3, repeat -1, skip 2
range 3, repeat 2, skip 2
range 3, repeat -1, skip -1
range 3, repeat -1, batch 4
range 3, repeat -1, shard 2 1
range 5, take 0
range 5, take 3
range 5, take 9
range 5, take -1
gen 5, take 0
gen 5, take 3
gen 5, take -1
range 5, skip 0
range 5, skip 2
range 5, skip 9
range 5, skip -1
gen 5, skip 2
gen 5, skip 9
gen 5, skip -1
range 10, shard 3 0
range 10, shard 3 1
range 10, shard 3 2
range 2, shard 3 2
gen 10, shard 4 3
range 10, shard 2 1, shard 2 0
range 10, batch 3, shard 2 1
range 5, range 3, zip 2
range 5, range 3, repeat -1, zip 2
range 5, repeat -1, range 3, repeat -1, zip 2
gen 5, range 3, zip 2
gen 2, range 3, zip 2
slices 3, range 5, zip 2
range 4, slices 3, zip 2, batch 2
range 4, range 5, skip 1, range 6, skip 2, zip 3, batch 3
range 4, batch 2, range 4, zip 2
range 3, range 2, concat
range 3, range 2, concat, batch 2
range 3, gen 2, concat
range 3, repeat -1, range 2, concat
range 3, range 2, repeat -1, concat
gen 3, range 2, repeat -1, concat
range 2, repeat -1, gen 2, concat
range 0, range 0, concat
slices 3, slices 2, concat, batch 4
slices 3, slices 2, concat, skip 1, batch 2, repeat 2
range 4, range 3, concat, shard 2 1, repeat 2, batch 3
range 6, map
slices 3, map, batch 2
slices 3, batch 2, map
range 6, map, batch 4, map
gen 5, map, take 3, repeat 2
range 9, map_parallel 3
gen 9, map_parallel 4, batch 2
slices 6, map_parallel 2, batch 4, prefetch 2
range 6, cache
range 6, cache, repeat 3
range 6, cache, take 2, repeat 3
gen 6, cache, repeat 2
gen 6, batch 4, cache, repeat 2
gen 6, cache, take 2, repeat 2
range 4, map, cache, repeat 2, batch 3
range 6, prefetch 2
range 6, prefetch 1, repeat 2
range 6, prefetch 3, take 2, repeat 2
range 6, batch 4, prefetch 2, prefetch 1
gen 6, prefetch 2, batch 4
ragged 6
ragged 6, batch 2
ragged 2, repeat 2, batch 4
ragged 6, padded 2
ragged 6, padded 4
ragged 6, padded_drop 4
ragged 6, padded 9
ragged 6, padded 3, repeat 2
ragged 6, padded_to 3 5 -1
ragged 6, padded_to 3 -1 7
ragged 6, padded_to 3 3 0
pairs 5, padded 2
pairs 5, padded_pair 3 -1 -1 9
pairs 5, padded_pair 3 4 -1 -5
pairs 5, padded_pair 2 3 3 0
pairs 5, padded_pair 3 2 3 0
ragged 5, map, padded 3
slices 4, padded 3
range 4, padded 3
range 40, skip 3, shard 3 1, batch 2, take 5, repeat 2, skip 1
""".strip().splitlines()


def random_pipeline(draw):
    """Sources, then transforms with small numbers; some have a second source that joins in."""
    number = lambda low, high: draw.randint(low, high)
    source = lambda: draw.choice([f"range {number(0, 13)}", f"gen {number(0, 9)}", f"slices {number(0, 9)}"])
    steps = [source()]
    for _ in range(number(2, 6)):
        steps += draw.choice(
            [
                lambda: [f"batch {number(1, 4)}"],
                lambda: [f"batch_drop {number(1, 4)}"],
                lambda: [f"take {number(-1, 8)}"],
                lambda: [f"skip {number(-1, 4)}"],
                lambda: [f"shard {(n := number(1, 3))} {number(0, n - 1)}"],
                lambda: [f"repeat {number(-1, 3)}"],
                lambda: ["cache"],
                lambda: [f"prefetch {number(1, 3)}"],
                lambda: ["map"],
                lambda: [f"map_parallel {number(2, 3)}"],
                lambda: [source(), "zip 2"],
                lambda: [source(), f"skip {number(0, 3)}", "concat"],
            ]
        )()
    return ", ".join(steps)


def random_lines(count):
    draw = random.Random(1815)
    lines = {}
    while len(lines) < count:
        pipeline = random_pipeline(draw)
        if "repeat -1" in pipeline and "cache" in pipeline[pipeline.index("repeat -1") :]:
            continue  # an endless cache grows for ever
        if "repeat -1" in pipeline and "skip -1" in pipeline[pipeline.index("repeat -1") :]:
            continue  # nothing of what never ends: tf.data looks for its end
        try:
            lines[pipeline] = describe(pipeline)
        except (TypeError, ValueError):
            pass  # datasets that tf.data does not join
    return list(lines.values())


# ---- epochs ----

EPOCHS = """
range 30, shuffle 30 5
range 30, shuffle 7 5
range 30, shuffle_same 30 5
range 30, shuffle 30 5, cache
range 30, cache, shuffle 30 5
range 30, shuffle 30 5, batch 4, cache
range 30, cache, shuffle 30 5, batch 4
range 30, shuffle 30 5, cache, shuffle 30 6
range 30, shuffle 30 5, map, cache
range 30, map, cache, shuffle 30 5
gen 30, shuffle 30 5
gen 30, shuffle 30 5, cache
gen 30, cache, shuffle 30 5
gen 30, shuffle_same 8 5, batch 3
repeat range 30, shuffle 30 5
repeat range 30, shuffle_same 30 5
repeat range 30, shuffle 30 5, cache
repeat range 30, cache, shuffle 30 5
repeat gen 30, shuffle 30 5, cache
repeat gen 30, cache, shuffle 30 5
""".strip().splitlines()


def epochs_of(line):
    if not line.startswith("repeat "):
        dataset = build(line)
        return [[text_of(element) for element in dataset] for _ in range(4)]
    elements = [text_of(element) for element in build(line[len("repeat ") :] + ", repeat 4")]
    length = len(elements) // 4
    return [elements[i * length : (i + 1) * length] for i in range(4)]


def main():
    with open(HERE / "pipelines.txt", "w") as file:
        for line in [describe(pipeline) for pipeline in BY_HAND] + random_lines(400):
            print(line, file=file)
    with open(HERE / "epochs.txt", "w") as file:
        for line in EPOCHS:
            epochs = epochs_of(line)
            print(line, "=>", *(epochs.index(epoch) for epoch in epochs), file=file)


main()

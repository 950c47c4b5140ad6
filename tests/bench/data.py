#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares `helio bench data` with the same pipeline in tf.data, on this machine, alternating.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install tensorflow
    /tmp/venv/bin/python tests/bench/data.py [--helio PROGRAM] [--rounds N] [--least RATIO]

Both take 60,000 images of 28 x 28 bytes with labels, shuffle all of them, make batches of 4096, scale to float32 from 0
to 1 and prefetch. tf.data gets its own choice of parallelism (AUTOTUNE) and is measured in two orders of transforms,
batch before map as here and map before batch; the faster one counts. Prints both rates of each round and the median of
their ratios. The exit status is 1 if that is below --least (5), 77 if TensorFlow is not installed.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

SAMPLES, SIDE, BATCH, EPOCHS = 60000, 28, 4096, 5


def arguments():
    default = pathlib.Path(__file__).resolve().parents[2] / "build" / "tools" / "helio"
    parser = argparse.ArgumentParser(description="helio bench data against tf.data")
    parser.add_argument("--helio", default=str(default), help="the program (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="how often both are measured (%(default)s)")
    parser.add_argument("--least", type=float, default=5.0, help="the least ratio that will do (%(default)s)")
    return parser.parse_args()


def helio_rate(program):
    run = subprocess.run([program, "bench", "data", "--json"], check=True, capture_output=True, text=True)
    result = json.loads(run.stdout)
    assert result["samples"] == SAMPLES and result["batch"] == BATCH
    return result["samples_per_second"]


def pipelines(tf, np):
    random = np.random.default_rng(1)
    images = random.integers(0, 256, (SAMPLES, SIDE, SIDE), np.uint8)
    labels = random.integers(0, 10, SAMPLES).astype(np.uint8)
    scale = lambda x, y: (tf.cast(x, tf.float32) * (1 / 255), y)
    shuffled = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(SAMPLES)
    auto = tf.data.AUTOTUNE
    return {
        "batch, map": shuffled.batch(BATCH).map(scale, num_parallel_calls=auto).prefetch(auto),
        "map, batch": shuffled.map(scale, num_parallel_calls=auto).batch(BATCH).prefetch(auto),
    }


def tensorflow_rate(datasets):
    """The faster order's median over epochs, the first of which is not counted."""
    rates = {}
    for name, dataset in datasets.items():
        epochs = []
        for _ in range(EPOCHS + 1):
            start = time.perf_counter()
            count = sum(int(x.shape[0]) for x, _ in dataset)
            assert count == SAMPLES
            epochs.append(SAMPLES / (time.perf_counter() - start))
        rates[name] = statistics.median(epochs[1:])
    return max(rates.items(), key=lambda item: item[1])


def main():
    options = arguments()
    try:
        import numpy as np
        import tensorflow as tf
    except ImportError as error:
        print(f"TensorFlow is not installed for {sys.executable}: {error}")
        return 77
    datasets = pipelines(tf, np)
    ratios = []
    for i in range(options.rounds):
        ours = helio_rate(options.helio)
        name, theirs = tensorflow_rate(datasets)
        ratios.append(ours / theirs)
        print(f"round {i + 1}: helio {ours:,.0f} samples/s, tf.data {theirs:,.0f} ({name}), ratio {ratios[-1]:.2f}")
    ratio = statistics.median(ratios)
    print(f"median ratio {ratio:.2f} (at least {options.least:g} is wanted), TensorFlow {tf.__version__}")
    return 0 if ratio >= options.least else 1


sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes splits.txt: how TensorFlow cuts the batches of range(SAMPLES).batch(SIZE) among replicas.

    python3 tests/golden/strategy/make_splits.py        # needs tensorflow (2.21), CPU is enough

A line is "REPLICAS SAMPLES SIZE keep|drop => STEPS". Steps are divided by "/", the pieces of a step, one for each
replica, by a space: "FIRST-LAST" sample, or "." for none.
"""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import tensorflow as tf

REPLICAS = range(1, 6)
SAMPLES = range(18)
SIZES = (1, 2, 3, 4, 5, 6, 8, 11, 17)


def piece(values):
    values = [int(value) for value in values]
    if not values:
        return "."
    assert values == list(range(values[0], values[-1] + 1)), values
    return f"{values[0]}-{values[-1]}"


def steps(strategy, samples, size, drop):
    dataset = tf.data.Dataset.range(samples).batch(size, drop_remainder=drop)
    for batch in strategy.experimental_distribute_dataset(dataset):
        yield " ".join(piece(local.numpy()) for local in strategy.experimental_local_results(batch))


def main():
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * max(REPLICAS))
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "splits.txt")
    with open(path, "w", encoding="ascii") as out:
        for replicas in REPLICAS:
            strategy = tf.distribute.MirroredStrategy([f"cpu:{i}" for i in range(replicas)])
            for samples in SAMPLES:
                for size in SIZES:
                    for drop in (False, True):
                        cut = "/".join(steps(strategy, samples, size, drop))
                        out.write(f"{replicas} {samples} {size} {'drop' if drop else 'keep'} => {cut}\n")


if __name__ == "__main__":
    main()

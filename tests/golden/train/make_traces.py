#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes traces.txt beside itself, for tests/unit/test_traces.c: the loss of each of 40 training steps by TensorFlow, and
what its evaluate() says of the samples for testing behind them; the first steps of each optimizer; and traces/, small sets
of data to train on.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install tensorflow-cpu==2.21.0 keras==3.15.1 numpy==2.4.6
    /tmp/venv/bin/python make_traces.py [FOLDER]

FOLDER has mnist/*.gz and reuters/reuters.npz, by default ../../../../shared/data; Fashion-MNIST is that of Debian's package
dataset-fashion-mnist. Everything is trained three times, without oneDNN, with it, and in float64, in processes of their own
with one thread. The traces are those without, which are the same on every machine of a kind. How far TensorFlow is from
itself stands in the file as well: the test's tolerances follow from that. It takes about ten minutes.

traces/ has the form of the real sets, so that both are read and trained by the same code: the first 1,280 images for
training (40 batches of 32; larger batches begin anew when the samples end, and 512 does not divide them) and 100 for testing;
the first 1,600 texts, of which load_data() makes 1,280 and 320. Words of the texts are numbered anew as they come, so that
a small vocabulary is enough, and the texts cannot be read any more.
"""
import gzip
import itertools
import json
import math
import os
import pathlib
import struct
import subprocess
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import keras
import keras.src.datasets.fashion_mnist as fashion_mnist
import keras.src.datasets.reuters as reuters
import numpy as np
import tensorflow as tf
from keras import layers

HERE = pathlib.Path(__file__).resolve().parent
SMALL = HERE / "traces"
DEBIAN = pathlib.Path("/usr/share/datasets")
NAMES = ("mnist", "fashion-mnist", "reuters")
BATCHES = (512, 256, 32)
STEPS = 40
OPTIMIZERS = ("SGD", "Adam", "AdamW", "Nadam", "RMSprop", "Adagrad")
LENGTH = 300  # of texts


# ---- small sets ----


def copy_idx(source, target, count):
    data = gzip.decompress(source.read_bytes())
    rank = data[3]
    shape = struct.unpack(f">{rank}I", data[4 : 4 + 4 * rank])
    kept = data[4 + 4 * rank :][: count * math.prod(shape[1:])]
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(data[:4] + struct.pack(f">{rank}I", count, *shape[1:]) + kept)


def copy_reuters(source, target, count):
    with np.load(source, allow_pickle=True) as file:
        texts, labels = file["x"][:count], file["y"][:count]
    numbers = {}
    for word in itertools.chain(*texts):
        numbers.setdefault(word, len(numbers) + 1)
    renumbered = np.empty(count, object)
    renumbered[:] = [[numbers[word] for word in text] for text in texts]
    target.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(target, x=renumbered, y=labels)


def write_small(folder):
    for name, source in (("mnist", folder), ("fashion-mnist", DEBIAN)):
        for part, count in (("train", 1280), ("t10k", 100)):
            for kind in ("images-idx3", "labels-idx1"):
                file = f"{name}/{part}-{kind}-ubyte.gz"
                copy_idx(source / file, SMALL / file, count)
    copy_reuters(folder / "reuters/reuters.npz", SMALL / "reuters/reuters.npz", 1600)


# ---- samples and models ----


def load_reuters(folder):
    reuters.get_file = lambda *given, **named: str(folder / "reuters/reuters.npz")
    parts = reuters.load_data()
    words = 1 + max(max(text) for x, _ in parts for text in x)
    return [(keras.utils.pad_sequences(x, LENGTH), y) for x, y in parts], words


def load_images(folder, name):
    """Keras reads IDX files for Fashion-MNIST only; MNIST's are of the same form."""
    fashion_mnist.get_file = lambda fname=None, **named: str(folder / name / fname)
    return [((x / 255).astype(keras.config.floatx())[..., np.newaxis], y) for x, y in fashion_mnist.load_data()]


def image_model():
    return keras.Sequential([
        keras.Input((28, 28, 1)),
        layers.Conv2D(16, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(32, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dense(10, activation="softmax"),
    ])  # fmt: skip


def text_model(words):
    return keras.Sequential([
        keras.Input((LENGTH,), dtype="int32"),
        layers.Embedding(words, 7),
        layers.Conv1D(64, 5, activation="relu"),
        layers.MaxPooling1D(2),
        layers.Conv1D(32, 3, activation="relu"),
        layers.MaxPooling1D(2),
        layers.Flatten(),
        layers.Dense(46, activation="softmax"),
    ])  # fmt: skip


def prepare(folder, name):
    """The parts of the set, and a function that makes its model."""
    if name == "reuters":
        parts, words = load_reuters(folder)
        return parts, lambda: text_model(words)
    return load_images(DEBIAN if name == "fashion-mnist" and folder != SMALL else folder, name), image_model


def start_values(weights):
    """Biases are 0, the others uniform numbers between Keras' usual limits, drawn one behind the other as next_random()
    of tests/unit/support.h does; exact, so that both sides have the same."""
    state = 1
    for weight in weights:
        if len(weight.shape) == 1:
            yield np.zeros(weight.shape, "float32")
            continue
        *window, before, behind = weight.shape
        limit = 0.05 if "embedding" in weight.path else math.sqrt(6 / (math.prod(window) * (before + behind)))
        values = np.empty(weight.shape, "float64")
        for i in range(values.size):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            values.flat[i] = state >> 33
        yield ((values / 2**30 - 1) * limit).astype("float32")


# ---- training ----


class Trace(keras.callbacks.Callback):
    """Losses of steps; what Keras tells without the reset is their mean."""

    def __init__(self):
        super().__init__()
        self.losses = []

    def on_train_batch_begin(self, batch, logs=None):
        self.model.reset_metrics()

    def on_train_batch_end(self, batch, logs=None):
        self.losses.append(float(logs["loss"]))


def train(parts, build, start, optimizer, batch):
    (x, y), (test_x, test_y) = parts
    model = build()
    model.set_weights(start)
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(), metrics=["accuracy"])
    trace = Trace()
    batches = tf.data.Dataset.from_tensor_slices((x, y)).batch(batch).repeat()
    model.fit(batches, steps_per_epoch=STEPS, callbacks=[trace], verbose=0)
    return trace.losses + model.evaluate(test_x, test_y, batch, verbose=0)


def train_all(folder):
    """{"small mnist 512": losses, loss and accuracy of the evaluation}"""
    found = {}
    for form, place in (("small", SMALL), ("real", folder)):
        for name in NAMES:
            parts, build = prepare(place, name)
            start = list(start_values(build().weights))
            for batch in BATCHES:
                optimizer = keras.optimizers.Nadam() if name == "reuters" else keras.optimizers.Adam()
                found[f"{form} {name} {batch}"] = train(parts, build, start, optimizer, batch)
                print(form, name, batch, found[f"{form} {name} {batch}"][-3:], file=sys.stderr)
    return found


def first_updates():
    """{"Adam float32": what each of ten steps by a gradient of 1 makes of a weight that was 0}"""
    found = {}
    for name, kind in itertools.product(OPTIMIZERS, ("float32", "float64")):
        optimizer = keras.optimizers.get(name)
        weight = keras.Variable(np.zeros(1), dtype=kind)
        values = found[f"{name} {kind}"] = []
        for _ in range(10):
            optimizer.apply_gradients([(tf.ones(1, kind), weight)])
            values.append(weight.numpy().item())
    return found


def train_apart(folder, onednn="0", floats="float32"):
    command = [sys.executable, "-B", __file__, "--train", str(folder)]
    environment = os.environ | {"TF_ENABLE_ONEDNN_OPTS": onednn, "TRACE_FLOATS": floats}
    return json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout)


def difference(a, b):
    return max(abs(p - q) for p, q in zip(a, b)) / max(map(abs, b))


def spread(others, traces):
    """Of the losses of steps, and of the loss and the accuracy of the evaluation."""
    for key, trace in traces.items():
        cuts = slice(0, STEPS), slice(STEPS, STEPS + 1), slice(STEPS + 1, STEPS + 2)
        yield key, [difference(others[key][cut], trace[cut]) for cut in cuts]


def write_lines(file, title, numbers, before="", digits=9):
    print("#", title, file=file)
    for key, values in numbers:
        print(before + key, *(f"{value:.{digits}g}" for value in values), file=file)


def print_spread():
    print(*(line for line in open(HERE / "traces.txt") if line.startswith(("onednn", "float64"))), sep="", end="")


def write_traces(traces, with_onednn, in_float64):
    measure = "max|a-b| / max|b| of the losses of steps, and of the loss and the accuracy of the evaluation"
    with open(HERE / "traces.txt", "w") as file:
        print(f"# TensorFlow {tf.__version__}, Keras {keras.__version__}, numpy {np.__version__}", file=file)
        title = "form, set, batch size, loss of each step, loss and accuracy of the evaluation behind them"
        write_lines(file, title, traces.items())
        title = f"TensorFlow with oneDNN against these: {measure}"
        write_lines(file, title, spread(with_onednn, traces), "onednn ", 2)
        title = f"TensorFlow in float64 against these: {measure}"
        write_lines(file, title, spread(in_float64, traces), "float64 ", 2)
        title = "optimizer, type, a weight that was 0 behind each of ten steps with a gradient of 1"
        write_lines(file, title, first_updates().items(), "update ")


def main():
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    only_train = sys.argv[1:2] == ["--train"]
    given = sys.argv[2:] if only_train else sys.argv[1:]
    folder = pathlib.Path(given[0] if given else HERE / "../../../../shared/data").resolve()
    if only_train:
        keras.config.set_floatx(os.environ["TRACE_FLOATS"])
        json.dump(train_all(folder), sys.stdout)
        return
    write_small(folder)
    write_traces(train_apart(folder), train_apart(folder, onednn="1"), train_apart(folder, floats="float64"))
    print_spread()


if __name__ == "__main__":
    main()

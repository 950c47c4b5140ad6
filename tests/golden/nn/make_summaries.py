# SPDX-License-Identifier: Apache-2.0
"""Writes summaries.json: what model.summary() of Keras prints. See make_all.py for how to run it."""

import json

import golden
import golden_keras  # before Keras

import keras
import numpy as np
from keras import layers

DEFAULT_LENGTH = 76  # min(88 or 108, columns - 4), with the 80 columns that are assumed where there is no terminal


def reuters():
    return keras.Sequential([
        keras.Input((300,)),
        layers.Embedding(30982, 7),
        layers.Conv1D(64, 5, activation="relu"),
        layers.MaxPooling1D(2),
        layers.Conv1D(32, 3, activation="relu"),
        layers.MaxPooling1D(2),
        layers.Flatten(),
        layers.Dense(46, activation="softmax"),
    ])  # fmt: skip


def mnist():
    return keras.Sequential([
        keras.Input((28, 28, 1)),
        layers.Conv2D(16, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(32, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dense(10),
    ])  # fmt: skip


def linear():
    x = keras.Input((1,))
    return keras.Model(x, layers.Dense(1)(x))


def shared():
    a, b = keras.Input((5,)), keras.Input((5,))
    layer = layers.Dense(4, activation="tanh")
    left, right = layer(a), layer(b)
    first = layers.Dense(2)(layers.Concatenate()([left, right]))
    second = layers.Dense(1, activation="sigmoid")(layers.Add()([left, right]))
    return keras.Model([a, b], [first, second])


def normalized():
    return keras.Sequential([
        keras.Input((8, 8, 3)),
        layers.Conv2D(4, 3, use_bias=False),
        layers.BatchNormalization(),
        layers.ReLU(),
        layers.GlobalAveragePooling2D(),
        layers.Dense(2),
    ])  # fmt: skip


def nested():
    """All names that Keras would count across both models are given, as ours count within each."""
    inner = keras.Sequential([keras.Input((6,)), layers.Dense(5), layers.Dense(4)], name="encoder")
    return keras.Sequential([keras.Input((6,)), inner, layers.Dense(3, name="head")], name="classifier")


def nested_functional():
    inner = keras.Sequential([keras.Input((6,)), layers.Dense(5), layers.Dense(4)], name="encoder")
    a, b = keras.Input((6,), name="left"), keras.Input((6,), name="right")
    merged = layers.Average()([inner(a), inner(b)])
    return keras.Model([a, b], layers.Dense(1, name="head")(merged), name="siamese")


def long_name():
    return keras.Sequential([
        keras.Input((3,)),
        layers.Dense(2, name="a_layer_with_a_name_that_is_much_longer_than_its_column"),
        layers.Dense(1, name="projection_to_one"),
    ])  # fmt: skip


def trained():
    model = keras.Sequential([keras.Input((3,)), layers.Dense(2), layers.Dense(1)])
    model.compile(optimizer="adam", loss="mse")
    model.train_on_batch(np.zeros((2, 3)), np.zeros((2, 1)))
    return model


def frozen():
    return keras.Sequential([keras.Input((3,)), layers.Dense(2, trainable=False), layers.Dense(1)])


def text(model, **arguments):
    lines = []
    model.summary(print_fn=lambda line, line_break=None: lines.append(line), **arguments)
    return "".join(lines)


def main():
    cases = {}
    builders = reuters, mnist, linear, shared, normalized, nested, nested_functional, long_name, trained, frozen
    for build in builders:
        keras.backend.clear_session()
        model = build()
        case = {
            "class_name": type(model).__name__,
            "config": golden.plain(model.get_config()),
            "default_line_length": DEFAULT_LENGTH,
            "default": text(model),
            "80": text(model, line_length=80),
        }
        assert case["default"] == text(model, line_length=DEFAULT_LENGTH)
        if build in (nested, nested_functional):
            case["expand_nested"] = text(model, expand_nested=True)
        if build in (normalized, frozen):
            case["show_trainable"] = text(model, show_trainable=True)
        cases[build.__name__] = case
    path = golden.HERE / "summaries.json"
    content = {"versions": {"keras": keras.__version__}, "order": list(cases), "cases": cases}
    path.write_text(json.dumps(content, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{path.name}: {len(cases)} models, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()

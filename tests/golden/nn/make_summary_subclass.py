# SPDX-License-Identifier: Apache-2.0
"""Writes summary_subclass.json: what model.summary() of Keras prints of models that get their shapes from a call, of
graphs that summaries.json lacks, of names that are long or not ASCII, and in lines of other lengths. Run it as
make_all.py runs the others."""
import json
import os

import golden
import golden_keras  # before Keras

import keras
import numpy as np
from keras import layers

LENGTHS = 24, 40, 61, 120


class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.convolution = layers.Conv2D(4, 3, activation="relu")
        self.pooling = layers.MaxPooling2D()
        self.normalization = layers.BatchNormalization()
        self.flatten = layers.Flatten()
        self.dropout = layers.Dropout(0.5)
        self.encoder = keras.Sequential([layers.Dense(6), layers.Dense(3)], name="encoder")
        self.merge = layers.Add()
        self.head = layers.Dense(2, name="head")

    def call(self, x):
        x = self.normalization(self.pooling(self.convolution(x)))
        x = self.encoder(self.dropout(self.flatten(x)))
        return self.head(self.merge([x, x]))


def subclass():
    model = Net()
    model(np.zeros((4, 8, 8, 1), "float32"))
    model(np.zeros((6, 8, 8, 1), "float32"))
    return model


def show_all_shapes(model):
    """Keras knows the shapes only of layers that have a build function and prints "?" for the others; here it is told
    the shapes of their first call."""
    model.pooling._build_shapes_dict = {"input_shape": (4, 6, 6, 4)}
    model.dropout._build_shapes_dict = {"input_shape": (4, 36)}
    return model


def deferred():
    model = keras.Sequential([layers.Dense(3), layers.Flatten(), layers.Dense(2)])
    model(np.zeros((4, 5), "float32"))
    model(np.zeros((7, 5), "float32"))
    return model


def built():
    model = keras.Sequential([layers.Dense(3), layers.Dense(2)])
    model.build((None, 5))
    return model


def several_outputs():
    a, b = keras.Input((6,), name="a"), keras.Input((6,), name="b")
    hidden = layers.Dense(5)(a)
    inner = keras.Model(a, [layers.Dense(2)(hidden), layers.Dense(3)(hidden)], name="inner")
    first, second = inner(b)
    third = inner(b)[1]
    return keras.Model(b, layers.Concatenate()([second, first, third]), name="outer")


def chain_of_several():
    a, b = keras.Input((6,), name="a"), keras.Input((6,), name="b")
    inner = keras.Model(a, [layers.Dense(2)(a), layers.Dense(3)(a)], name="inner")
    return keras.Model(b, layers.Dense(1, name="head")(inner(b)[1]), name="chain")


def reversed_order():
    """The use of a layer counts, not the order in which its results are needed; an input is not used at all."""
    a, b, unused = keras.Input((5,), name="a"), keras.Input((5,), name="b"), keras.Input((2,), name="unused")
    layer = layers.Dense(4)
    left, right = layer(a), layer(b)
    return keras.Model([unused, a, b], layers.Concatenate()([right, left]), name="reversed")


def second_graph():
    """A layer was used in another graph before, and with other shapes."""
    a, b = keras.Input((9, 2), name="a"), keras.Input((None, 2), name="b")
    layer = layers.Conv1D(3, 2)
    keras.Model(a, layer(a))
    return keras.Model([a, b], [layers.GlobalMaxPooling1D()(layer(a)), layer(b)], name="second")


def twice():
    a = keras.Input((5,), name="a")
    layer = layers.Dense(5)
    return keras.Model(a, layer(layer(a)), name="twice")


def outputs_on_the_way():
    a = keras.Input((5,), name="a")
    hidden = layers.Dense(3)(a)
    return keras.Model(a, [hidden, layers.Dense(2)(hidden)], name="way")


def words():
    names = "плотный слой", "層層層層層層層層層層層層層層層層層層", "x層層層層層層層層層層層層層層層層層層", "e\u0301te\u0301", \
        "many words so that there is one line after the other to be filled with them"  # fmt: skip
    return keras.Sequential([keras.Input((3,)), *(layers.Dense(3, name=name) for name in names)], name="модель")


def long_title():
    return keras.Sequential([keras.Input((3,)), layers.Dense(2)], name="two words " + 20 * "and_one_that_is_long")


def large():
    return keras.Sequential([keras.Input((1023,)), layers.Dense(1024), layers.Dense(1)])


def half():
    return keras.Sequential([keras.Input((1023,)), layers.Dense(5, dtype="float16"), layers.Dense(3, dtype="float64")])


def shared():
    """As in make_summaries.py."""
    a, b = keras.Input((5,)), keras.Input((5,))
    layer = layers.Dense(4, activation="tanh")
    left, right = layer(a), layer(b)
    first = layers.Dense(2)(layers.Concatenate()([left, right]))
    second = layers.Dense(1, activation="sigmoid")(layers.Add()([left, right]))
    return keras.Model([a, b], [first, second])


def text(model, **arguments):
    lines = []
    os.environ["COLUMNS"] = str(max(80, arguments.get("line_length", 0)))  # lines longer than the terminal would be cut
    model.summary(print_fn=lambda line, line_break=None: lines.append(line), **arguments)
    return "".join(lines)


def main():
    cases = {}
    builders = (subclass, deferred, built, several_outputs, chain_of_several, reversed_order, second_graph, twice,
                outputs_on_the_way, words, long_title, large, half, shared)  # fmt: skip
    for build in builders:
        keras.backend.clear_session()
        model = build()
        case = {"0": text(model)}
        if build == subclass:
            case = {"unchanged": case["0"], "0": text(show_all_shapes(model))}
        if build in (words, shared):
            case |= {str(length): text(model, line_length=length) for length in LENGTHS}
        cases[build.__name__] = case
    path = golden.HERE / "summary_subclass.json"
    content = {"versions": {"keras": keras.__version__}, "cases": cases}
    path.write_text(json.dumps(content, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{path.name}: {len(cases)} models, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()

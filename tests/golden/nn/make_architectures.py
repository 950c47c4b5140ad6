# SPDX-License-Identifier: Apache-2.0
"""Writes architectures.safetensors: what model.to_json() of Keras 3 gives for models of all forms, with their
summaries, weights and predictions. See make_all.py for how to run it."""

import golden
import golden_keras  # before Keras

import keras
import numpy as np
from keras import initializers, layers, regularizers

from make_summaries import text


def mnist():
    return keras.Sequential([
        keras.Input((12, 12, 1)),
        layers.Conv2D(4, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(8, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dropout(0.4),
        layers.Dense(10, activation="softmax"),
    ])  # fmt: skip


def reuters():
    return keras.Sequential([
        keras.Input((20,)),
        layers.Embedding(30, 7),
        layers.Conv1D(8, 5, activation="relu"),
        layers.GlobalMaxPooling1D(),
        layers.Dropout(0.5),
        layers.Dense(5, activation="softmax"),
    ])  # fmt: skip


def normalized():
    return keras.Sequential([
        keras.Input((6, 6, 2)),
        layers.Conv2D(3, 3, use_bias=False, padding="same"),
        layers.BatchNormalization(momentum=0.9),
        layers.ReLU(),
        layers.GlobalAveragePooling2D(),
        layers.Dense(2),
    ], name="with_statistics")  # fmt: skip


def skip():
    """Two inputs, and one that goes past the layers between."""
    a, b = keras.Input((6,), name="left"), keras.Input((4,), name="right")
    wide = layers.Dense(5, activation="relu")(layers.Concatenate()([a, b]))
    deep = layers.Dense(5, activation="tanh")(wide)
    return keras.Model([a, b], layers.Dense(3)(layers.Add()([wide, deep])), name="skipping")


def shared():
    a, b = keras.Input((5,)), keras.Input((5,))
    layer = layers.Dense(4, activation="tanh")
    left, right = layer(a), layer(b)
    first = layers.Dense(2)(layers.Concatenate()([left, right]))
    second = layers.Dense(1, activation="sigmoid")(layers.Average()([left, right]))
    return keras.Model([a, b], [first, second])


def two_outputs():
    """Compiled, of which nothing is read."""
    x = keras.Input((5,))
    common = layers.Dense(4, activation="relu", name="common")(x)
    outputs = layers.Dense(3, activation="softmax", name="kind")(common), layers.Dense(1, name="price")(common)
    model = keras.Model(x, list(outputs))
    model.compile(optimizer=keras.optimizers.SGD(0.1), loss=["sparse_categorical_crossentropy", "mse"])
    return model


def nested():
    """A sequential and a functional model, each used twice; outputs that come from them."""
    encoder = keras.Sequential([keras.Input((5,)), layers.Dense(4), layers.Dense(3)], name="encoder")
    inner = keras.Input((3,))
    both = keras.Model(inner, [layers.Dense(3, name="first")(inner), layers.Dense(2, name="second")(inner)], name="both")
    a, b = keras.Input((5,), name="a"), keras.Input((5,), name="b")
    u, v = both(encoder(a))
    w, x = both(encoder(b))
    return keras.Model([a, b], [layers.Add()([u, w]), x, v, encoder(a)], name="outer")


def nested_sequence():
    """Models in a sequential one; the first of them learns its shape from the model around it."""
    x = keras.Input((3,))
    last = keras.Model(x, layers.Dense(2)(layers.Dense(3, activation="relu")(x)), name="last")
    return keras.Sequential([keras.Input((4,)), keras.Sequential([layers.Dense(3)], name="begin"), last])


def repeated():
    """A layer that is used before and behind another, which is used twice as well."""
    x = keras.Input((3,))
    a, b = layers.Dense(3, name="a"), layers.Dense(3, activation="tanh", name="b")
    return keras.Model(x, a(b(a(b(x)))))


def listed():
    """One input and one output, but in lists."""
    x = keras.Input((3,), dtype="float64")
    return keras.Model([x], [layers.Dense(2)(x)])


def options():
    l1, both = regularizers.L1(0.5), regularizers.L1L2(l1=0.125, l2=2.0)
    he, constant = initializers.HeNormal(seed=3), initializers.Constant(0.25)
    return keras.Sequential([
        keras.Input((7,), dtype="float64"),
        layers.Dense(4, dtype="float64", kernel_regularizer=both, bias_initializer=constant, trainable=False),
        layers.LayerNormalization(epsilon=0.01, dtype="float64"),
        layers.Dense(3, use_bias=False, kernel_initializer=he, kernel_regularizer=l1, name="narrow", dtype="float64"),
        layers.Dropout(0.25, seed=5, dtype="float64"),
    ], name="options")  # fmt: skip


def frozen():
    model = keras.Sequential([keras.Input((3,)), layers.Dense(2), layers.BatchNormalization()])
    model.trainable = False
    return model


def numbers():
    """Integers that only move before they are looked up."""
    x = keras.Input((2, 3), dtype="int32", name="words")
    y = layers.Embedding(9, 2)(layers.Reshape((2, 3))(layers.Flatten()(layers.Permute((2, 1))(x))))
    return keras.Model(x, layers.Dense(2)(layers.Flatten()(y)))


def called():
    """Shapes come from a first call, with its batch."""
    model = keras.Sequential([layers.Dense(3), keras.Sequential([layers.Dense(2)], name="inner")])
    model(np.zeros((2, 4), "float32"))
    return model


def every_layer():
    """All classes that we have, for what Keras notes of them."""
    image, words = keras.Input((4, 4, 2), name="image"), keras.Input((6,), dtype="int32", name="words")
    x = layers.DepthwiseConv2D(2)(layers.ZeroPadding2D(1)(layers.Rescaling(0.5, offset=0.25)(image)))
    x = layers.Conv2D(4, 2)(layers.UpSampling2D(2)(layers.AveragePooling2D(2)(layers.LayerNormalization()(x))))
    x = layers.BatchNormalization()(layers.MaxPooling2D(1)(layers.Activation("tanh")(x)))
    x = layers.Multiply()([layers.GlobalMaxPooling2D()(x), layers.GlobalAveragePooling2D()(x)])
    y = layers.Conv1D(4, 2, padding="causal")(layers.Embedding(8, 4)(words))
    y = layers.Reshape((3, 4))(layers.AveragePooling1D(2)(layers.Permute((1, 2))(layers.MaxPooling1D(1)(y))))
    y = layers.Average()([layers.GlobalAveragePooling1D()(y), layers.GlobalMaxPooling1D()(y)])
    z = layers.Concatenate()([layers.Add()([x, y]), layers.ReLU(max_value=6.0)(x), layers.Flatten()(y)])
    return keras.Model([image, words], layers.Softmax()(layers.Dense(3)(layers.Dropout(0.5)(z))))


def names(model, prefix=""):
    """The weights' names with those of the models around them, in the order in which layers are listed."""
    for layer in model.layers:
        if isinstance(layer, keras.Model):
            yield from names(layer, f"{prefix}{layer.name}/")
        else:
            yield from ((f"{prefix}{layer.name}/{weight.name}", weight) for weight in layer.weights)


def fill(name, model, writer):
    """Random numbers for the weights, in such a range that predictions stay near 1."""
    rng = golden.random(name)
    written = list(names(model))
    assert [id(weight) for _, weight in written] == [id(weight) for weight in model.weights], name
    for path, weight in written:
        value = golden.normal(rng, *weight.shape, scale=0.4).astype(weight.dtype)
        weight.assign(np.abs(value) + 0.5 if path.endswith("moving_variance") else value)
        writer.tensor(f"{name}/weight/{path}", weight.numpy())
    return [path for path, _ in written]


def value_for(rng, tensor, model):
    shape = (2,) + tuple(tensor.shape[1:])
    looked_up = any(isinstance(layer, layers.Embedding) for layer in model.layers)
    if looked_up and len(tensor.shape) < 4:
        return rng.integers(0, 8, shape).astype("int32")
    return golden.normal(rng, *shape).astype(tensor.dtype)


def predict(name, model, writer):
    rng = golden.random(name + " input")
    inputs = [value_for(rng, tensor, model) for tensor in model.inputs]
    outputs = model(inputs if len(inputs) > 1 or name == "listed" else inputs[0], training=False)
    outputs = outputs if isinstance(outputs, list) else [outputs]
    for i, value in enumerate(inputs):
        writer.tensor(f"{name}/input/{i}", value)
    for i, value in enumerate(outputs):
        writer.tensor(f"{name}/output/{i}", golden_keras.numbers(value))
    return {"input_count": len(inputs), "output_count": len(outputs)}


def main():
    writer = golden.Writer("architectures", ("tensorflow-cpu", "keras", "numpy", "safetensors"))
    builders = (mnist, reuters, normalized, skip, shared, two_outputs, nested, nested_sequence, repeated, listed,
                options, frozen, numbers, called, every_layer)  # fmt: skip
    for build in builders:
        keras.backend.clear_session()
        name, model = build.__name__, build()
        architecture = model.to_json()
        again = keras.models.model_from_json(architecture).to_json()
        assert again == architecture or build is frozen, name  # a Sequential forgets that it is
        description = {"json": architecture, "summary": text(model), "weights": fill(name, model, writer)}
        writer.case(name, description | predict(name, model, writer))
    keras.backend.clear_session()
    deferred = keras.Sequential([layers.Dense(3), layers.Dense(2, activation="relu")])
    writer.case("deferred", {"json": deferred.to_json()})
    writer.write()


if __name__ == "__main__":
    main()

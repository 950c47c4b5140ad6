# SPDX-License-Identifier: Apache-2.0
"""Writes old_architectures.safetensors: what model.to_json() of Keras 2 gives, with weights and predictions. See
make_all.py for how to run it."""

import golden
import golden_keras  # before TensorFlow

import numpy as np
import tf_keras as keras
from tf_keras import layers


def reuters():
    return keras.Sequential([
        layers.Embedding(30, 7, input_length=20),
        layers.Conv1D(8, 5, activation="relu", kernel_regularizer="l2"),
        layers.GlobalMaxPooling1D(),
        layers.BatchNormalization(),
        layers.Dropout(0.5),
        layers.Dense(5, activation="softmax"),
    ])  # fmt: skip


def nested():
    """As in make_architectures.py. Uses of both models are counted from 1."""
    encoder = keras.Sequential([keras.Input((5,)), layers.Dense(4), layers.Dense(3)], name="encoder")
    inner = keras.Input((3,))
    both = keras.Model(inner, [layers.Dense(3, name="first")(inner), layers.Dense(2, name="second")(inner)], name="both")
    a, b = keras.Input((5,), name="a"), keras.Input((5,), name="b")
    u, v = both(encoder(a))
    w, x = both(encoder(b))
    return keras.Model([a, b], [layers.Add()([u, layers.Dropout(0.5)(w)]), x, v, encoder(a)], name="outer")


def names(model, prefix=""):
    for layer in model.layers:
        if isinstance(layer, keras.Model):
            yield from names(layer, f"{prefix}{layer.name}/")
        else:
            local = ((weight.name.split("/")[-1].split(":")[0], weight) for weight in layer.weights)
            yield from ((f"{prefix}{layer.name}/{name}", weight) for name, weight in local)


def fill(name, model, writer):
    rng = golden.random("old " + name)
    written = list(names(model))
    for path, weight in written:
        value = golden.normal(rng, *weight.shape, scale=0.4)
        weight.assign(np.abs(value) + 0.5 if path.endswith("moving_variance") else value)
        writer.tensor(f"{name}/weight/{path}", weight.numpy())
    return [path for path, _ in written]


def predict(name, model, writer):
    rng = golden.random("old " + name + " input")
    if name == "reuters":
        inputs = [rng.integers(0, 30, (2, 20)).astype("int32")]
    else:
        inputs = [golden.normal(rng, 2, *tensor.shape[1:]) for tensor in model.inputs]
    outputs = model(inputs if len(inputs) > 1 else inputs[0], training=False)
    outputs = outputs if isinstance(outputs, list) else [outputs]
    for i, value in enumerate(inputs):
        writer.tensor(f"{name}/input/{i}", value)
    for i, value in enumerate(outputs):
        writer.tensor(f"{name}/output/{i}", golden_keras.numbers(value))
    return {"input_count": len(inputs), "output_count": len(outputs)}


def main():
    writer = golden.Writer("old_architectures", ("tensorflow-cpu", "tf_keras", "numpy", "safetensors"))
    for build in (reuters, nested):
        keras.backend.clear_session()
        name, model = build.__name__, build()
        description = {"json": model.to_json(), "weights": fill(name, model, writer)}
        writer.case(name, description | predict(name, model, writer))
    writer.write()


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Writes training.safetensors: ten training steps of whole models, by Keras. See make_all.py for how to run it."""

import golden
from golden import normal, plain
from golden_keras import numbers  # before Keras and TensorFlow

import keras
import numpy as np
import tensorflow as tf
from keras import layers, losses, optimizers, regularizers

writer = golden.Writer("training")
STEPS = 10
BATCHES = 2  # step s uses batch s modulo this


def linear():
    x = keras.Input((1,))
    return keras.Model(x, layers.Dense(1)(x))


def mnist():
    return keras.Sequential([
        keras.Input((12, 12, 1)),
        layers.Conv2D(4, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(8, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dense(10, activation="softmax"),
    ])  # fmt: skip


def reuters():
    return keras.Sequential([
        keras.Input((40,), dtype="int32"),
        layers.Embedding(50, 7),
        layers.Conv1D(8, 5, activation="relu"),
        layers.MaxPooling1D(2),
        layers.Conv1D(6, 3, activation="relu"),
        layers.MaxPooling1D(2),
        layers.Flatten(),
        layers.Dense(5, activation="softmax"),
    ])  # fmt: skip


def shared():
    a, b = keras.Input((5,)), keras.Input((5,))
    layer = layers.Dense(4, activation="tanh")
    left, right = layer(a), layer(b)
    first = layers.Dense(2)(layers.Concatenate()([left, right]))
    second = layers.Dense(1, activation="sigmoid")(layers.Add()([left, right]))
    return keras.Model([a, b], [first, second])


def normalized():
    return keras.Sequential([
        keras.Input((6,)),
        layers.Dense(8, use_bias=False, kernel_regularizer=regularizers.L2(0.01)),
        layers.BatchNormalization(momentum=0.9),
        layers.Activation("relu"),
        layers.Dense(5, kernel_regularizer=regularizers.L1L2(0.002, 0.01), bias_regularizer=regularizers.L2(0.1)),
        layers.LayerNormalization(),
        layers.Dense(3, activation="softmax"),
    ])  # fmt: skip


def weighted():
    return keras.Sequential([keras.Input((4,)), layers.Dense(5, activation="tanh"), layers.Dense(1)])


def start_value(rng, weight):
    if weight.name in ("gamma", "moving_variance"):
        return rng.uniform(0.5, 1.5, weight.shape).astype("float32")
    scale = 0.1 if len(weight.shape) < 2 else 1 / np.sqrt(np.prod(weight.shape[:-1]))
    return normal(rng, *weight.shape, scale=0.5 if weight.name == "embeddings" else scale)


def combined(gradient):
    """A dense gradient: rows that come several times are added up before the optimizer sees them."""
    return tf.convert_to_tensor(gradient)


def total_loss(model, functions, outputs, ys, weights):
    outputs = outputs if isinstance(outputs, list) else [outputs]
    value = sum(f(y, output, weights) for f, y, output in zip(functions, ys, outputs))
    return value + sum(model.losses)


def train(build, optimizer, functions, start, batches, change=combined):
    """Trains by hand; losses are those before each step's update."""
    keras.backend.clear_session()
    model = build()
    model.set_weights(start)
    optimizer = optimizer()
    optimizer.build(model.trainable_variables)
    history = []
    for step in range(STEPS):
        xs, ys, weights = batches[step % BATCHES]
        with tf.GradientTape() as tape:
            outputs = model(list(xs) if len(xs) > 1 else xs[0], training=True)
            loss = total_loss(model, functions, outputs, ys, weights)
        gradients = tape.gradient(loss, [v.value for v in model.trainable_variables])
        if step == 0:
            first = [numbers(gradient) for gradient in gradients]
            first_outputs = [numbers(y) for y in (outputs if isinstance(outputs, list) else [outputs])]
        optimizer.apply_gradients(zip([change(gradient) for gradient in gradients], model.trainable_variables))
        history.append(float(loss))
    return {"model": model, "optimizer": optimizer, "loss": np.float32(history), "gradients": first,
            "outputs": first_outputs, "end": model.get_weights()}  # fmt: skip


def train_by_keras(build, optimizer, functions, start, batches):
    """The same by train_on_batch, to show that the loop above is what Keras does."""
    keras.backend.clear_session()
    model = build()
    model.set_weights(start)
    model.compile(optimizer(), functions if len(functions) > 1 else functions[0], jit_compile=False)
    for step in range(STEPS):
        xs, ys, weights = batches[step % BATCHES]
        model.train_on_batch(list(xs) if len(xs) > 1 else xs[0], list(ys) if len(ys) > 1 else ys[0], weights)
    return model.get_weights()


def shaken(rng, start):
    return [(value * (1 + rng.uniform(-3e-7, 3e-7, value.shape))).astype("float32") for value in start]


def local(weight):
    """ "dense/kernel"; Keras puts the name of a sequential model before it."""
    return "/".join(weight.path.split("/")[-2:])


def equal(first, second, tolerance):
    return all(np.allclose(a, b, rtol=tolerance, atol=tolerance) for a, b in zip(first, second))


def add(name, build, optimizer, functions, batch):
    """`batch(rng)` gives (inputs, labels, sample weights or None)."""
    rng = golden.random(name)
    keras.backend.clear_session()
    start = [start_value(rng, weight) for weight in build().weights]
    batches = [batch(rng) for _ in range(BATCHES)]
    result = train(build, optimizer, functions, start, batches)
    raw = train(build, optimizer, functions, start, batches, change=lambda gradient: gradient)
    assert equal(raw["end"], train_by_keras(build, optimizer, functions, start, batches), 1e-5), name
    for _ in range(3):  # the numbers do not hang on rounding
        assert equal(train(build, optimizer, functions, shaken(rng, start), batches)["end"], result["end"], 1e-5), name
    raw_equal = equal(raw["end"], result["end"], 1e-6)

    model = result["model"]
    names = [local(weight) for weight in model.weights]
    trainable = [local(weight) for weight in model.trainable_weights]
    xs, ys, weights = batches[0]
    description = {
        "class_name": type(model).__name__,
        "config": plain(model.get_config()),
        "optimizer": {
            "class_name": type(result["optimizer"]).__name__,
            "config": plain(result["optimizer"].get_config()),
        },
        "losses": [{"class_name": type(f).__name__, "config": plain(f.get_config())} for f in functions],
        "steps": STEPS,
        "batches": BATCHES,
        "input_count": len(xs),
        "output_count": len(ys),
        "sample_weight": weights is not None,
        "weights": names,
        "trainable": trainable,
        "raw_equal": raw_equal,
    }
    writer.case(name, description)
    for i, (xs, ys, weights) in enumerate(batches):
        for role, values in (("input", xs), ("y_true", ys)):
            for j, value in enumerate(values):
                writer.tensor(f"{name}/batch/{i}/{role}/{j}", value)
        if weights is not None:
            writer.tensor(f"{name}/batch/{i}/sample_weight", weights)
    for role, values in (("start", start), ("end", result["end"])):
        for weight, value in zip(names, values):
            writer.tensor(f"{name}/{role}/{weight}", value)
    for weight, value in zip(trainable, result["gradients"]):
        writer.tensor(f"{name}/gradient/{weight}", value)
    for i, value in enumerate(result["outputs"]):
        writer.tensor(f"{name}/first_output/{i}", value)
    writer.tensor(f"{name}/loss", result["loss"])
    if not raw_equal:
        writer.tensor(f"{name}/raw_loss", raw["loss"])
        for weight, value in zip(names, raw["end"]):
            writer.tensor(f"{name}/raw_end/{weight}", value)


def line_batch(rng):
    x = normal(rng, 5, 1)
    return (x,), (3 * x + 2 + normal(rng, 5, 1, scale=0.1),), None


def image_batch(rng):
    return (rng.uniform(0, 1, (6, 12, 12, 1)).astype("float32"),), (rng.integers(0, 10, 6).astype("int32"),), None


def word_batch(rng):
    return (rng.integers(0, 50, (4, 40)).astype("int32"),), (rng.integers(0, 5, 4).astype("int32"),), None


def pair_batch(rng):
    inputs = normal(rng, 4, 5), normal(rng, 4, 5)
    return inputs, (normal(rng, 4, 2), rng.integers(0, 2, (4, 1)).astype("float32")), None


def one_hot_batch(rng):
    return (normal(rng, 7, 6),), (np.eye(3, dtype="float32")[rng.integers(0, 3, 7)],), None


def weighted_batch(rng):
    return (normal(rng, 5, 4),), (normal(rng, 5, 1),), rng.uniform(0.2, 2, 5).astype("float32")


def main():
    mse, bce = losses.MeanSquaredError(), losses.BinaryCrossentropy()
    sparse, categorical = losses.SparseCategoricalCrossentropy(), losses.CategoricalCrossentropy()
    add("linear", linear, lambda: optimizers.SGD(0.2), [mse], line_batch)
    add("mnist", mnist, optimizers.Adam, [sparse], image_batch)
    add("reuters", reuters, optimizers.Nadam, [sparse], word_batch)
    add("shared", shared, lambda: optimizers.Adam(0.01), [mse, bce], pair_batch)
    add("normalized", normalized, lambda: optimizers.RMSprop(0.01), [categorical], one_hot_batch)
    add("weighted", weighted, lambda: optimizers.SGD(0.05, momentum=0.9), [mse], weighted_batch)
    writer.write()


if __name__ == "__main__":
    main()

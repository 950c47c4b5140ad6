# SPDX-License-Identifier: Apache-2.0
"""Writes losses.safetensors: every loss and its gradient, by Keras. See make_all.py for how to run it."""

import warnings

import golden
from golden import normal, plain
from golden_keras import numbers  # before Keras and TensorFlow

import keras
import numpy as np
import tensorflow as tf
from keras import losses

writer = golden.Writer("losses")
REDUCTIONS = ("none", "sum", "sum_over_batch_size", "mean_with_sample_weight")


def store(name, loss, kind, tensors, **extra):
    config = plain(loss.get_config() | loss._fn_kwargs)  # Keras leaves Huber's delta and the cosine's axis out
    if config["reduction"] is None:
        config["reduction"] = "none"
    writer.case(name, {"class_name": type(loss).__name__, "config": config, "kind": kind, **extra})
    for role, value in tensors.items():
        if value is not None:
            writer.tensor(f"{name}/{role}", value)


def add(name, loss, y_true, y_pred, sample_weight=None):
    """The loss on given predictions; `gradient` is that of the value's sum by y_pred."""
    variable = tf.Variable(y_pred)  # has no memory of an activation
    with tf.GradientTape() as tape:
        value = loss(y_true, variable, sample_weight)
        total = tf.reduce_sum(value)
    gradient = numbers(tape.gradient(total, variable))
    tensors = {"y_true": y_true, "y_pred": y_pred, "sample_weight": sample_weight}
    store(name, loss, "direct", tensors | {"value": numbers(value), "gradient": gradient})


def add_activated(name, loss, activation, y_true, logits, sample_weight=None, **extra):
    """The loss on a model's output, whose last layer is the activation; `gradient` is by the logits. Keras finds the
    logits and uses the stable form, whether or not from_logits is set."""
    keras.backend.clear_session()
    model = keras.Sequential([keras.Input(logits.shape[1:]), keras.layers.Activation(activation)])

    def both(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y_pred = model(x)
            value = loss(y_true, y_pred, sample_weight)
            total = tf.reduce_sum(value)
        return y_pred, value, tape.gradient(total, x)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y_pred, value, gradient = [numbers(x) for x in both(tf.constant(logits))]
    warned = any("received `from_logits=True`" in str(w.message) for w in caught)
    assert warned == loss.get_config()["from_logits"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = tf.function(both)(tf.constant(logits))
    for eager, graph in zip((y_pred, value, gradient), traced):
        np.testing.assert_allclose(eager, numbers(graph), rtol=1e-6, atol=1e-7, err_msg=name)
    tensors = {"y_true": y_true, "logits": logits, "y_pred": y_pred, "sample_weight": sample_weight}
    store(name, loss, activation, tensors | {"value": value, "gradient": gradient}, warns=warned, **extra)


def add_twice(name, loss, activation, y_true, logits, sample_weight=None):
    """As TensorFlow 2.3 read from_logits=True on such an output: as if the probabilities were logits."""
    assert loss.get_config()["from_logits"]
    x = tf.constant(logits)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y_pred = getattr(tf.nn, activation)(x)  # TensorFlow's own, which Keras does not see through
        assert not hasattr(y_pred, "_keras_logits")
        value = loss(y_true, y_pred, sample_weight)
        total = tf.reduce_sum(value)
    gradient = numbers(tape.gradient(total, x))
    tensors = {"y_true": y_true, "logits": logits, "y_pred": numbers(y_pred), "sample_weight": sample_weight}
    store(name, loss, f"{activation}_twice", tensors | {"value": numbers(value), "gradient": gradient})


def add_crossed(name, loss, activation, y_true, logits):
    """A sigmoid before a categorical loss, or a softmax before the binary one: Keras takes the logits all the same and
    computes another loss than the one asked for. `plain_value` and `plain_gradient` are the ones asked for."""
    add_activated(name, loss, activation, y_true, logits, optional=True)
    writer.cases[name]["kind"] = f"{activation}_crossed"
    x = tf.constant(logits)
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = loss(y_true, getattr(tf.nn, activation)(x))
        total = tf.reduce_sum(value)
    assert abs(float(total) - writer.tensors[f"{name}/value"].sum()) > 0.01
    writer.tensor(f"{name}/plain_value", numbers(value))
    writer.tensor(f"{name}/plain_gradient", numbers(tape.gradient(total, x)))


def probabilities(rng, *shape):
    e = np.exp(rng.standard_normal(shape))
    return (e / e.sum(-1, keepdims=True)).astype("float32")


def unit(rng, *shape):
    return rng.uniform(0.05, 0.95, shape).astype("float32")


def bits(rng, *shape):
    return rng.integers(0, 2, shape).astype("float32")


def one_hot(rng, count, *shape):
    return np.eye(count, dtype="float32")[rng.integers(0, count, shape)]


def weights(rng, *shape):
    return rng.uniform(0.2, 2.0, shape).astype("float32")


def add_reductions(name, make, y_true, y_pred, sample_weight):
    """All reductions, with and without sample weights."""
    for reduction in REDUCTIONS:
        add(f"{name}_{reduction}", make(reduction=reduction), y_true, y_pred)
        add(f"{name}_{reduction}_weighted", make(reduction=reduction), y_true, y_pred, sample_weight)


def add_errors():
    for name, make in (("mse", losses.MeanSquaredError), ("mae", losses.MeanAbsoluteError), ("huber", losses.Huber)):
        rng = golden.random(name)
        add_reductions(name, make, normal(rng, 4, 3), normal(rng, 4, 3), weights(rng, 4))
        rank3 = normal(rng, 2, 3, 4), normal(rng, 2, 3, 4)
        add(f"{name}_rank3", make(), *rank3)
        add(f"{name}_rank3_weighted", make(), *rank3, weights(rng, 2, 3))
        add(f"{name}_rank3_weighted_mean", make(reduction="mean_with_sample_weight"), *rank3, weights(rng, 2, 3))
        add(f"{name}_one_column", make(), normal(rng, 5), normal(rng, 5, 1))
        add(f"{name}_one_column_weighted", make(), normal(rng, 5), normal(rng, 5, 1), weights(rng, 5))
        add(f"{name}_rank1", make(), normal(rng, 5), normal(rng, 5))
        column = weights(rng, 4, 1)
        add(f"{name}_weight_column", make(), normal(rng, 4, 3), normal(rng, 4, 3), column)
    rng = golden.random("huber deltas")
    for delta in (0.4, 2.5):
        add(f"huber_delta_{delta}", losses.Huber(delta=delta), normal(rng, 3, 5), normal(rng, 3, 5, scale=2))


def add_binary():
    make = losses.BinaryCrossentropy
    rng = golden.random("binary")
    add_reductions("binary", make, bits(rng, 4, 3), unit(rng, 4, 3), weights(rng, 4))
    for smoothing in (0.0, 0.15):
        end = "_smoothed" if smoothing else ""
        add(f"binary_probabilities{end}", make(label_smoothing=smoothing), bits(rng, 5, 1), unit(rng, 5, 1))
        logits = make(from_logits=True, label_smoothing=smoothing)
        add(f"binary_logits{end}", logits, bits(rng, 4, 3), normal(rng, 4, 3, scale=3))
        for flag in (False, True):
            loss = make(from_logits=flag, label_smoothing=smoothing)
            read = "_from_logits" if flag else ""
            add_activated(f"binary_sigmoid{read}{end}", loss, "sigmoid", bits(rng, 4, 3), normal(rng, 4, 3, scale=3))
    add("binary_soft_labels", make(), unit(rng, 4, 3), unit(rng, 4, 3))
    add("binary_one_column", make(), bits(rng, 5), unit(rng, 5, 1))
    add("binary_rank3", make(from_logits=True), bits(rng, 2, 3, 2), normal(rng, 2, 3, 2), weights(rng, 2, 3))
    add("binary_clipped", make(), np.float32([[0, 1], [0, 1], [1, 0]]), np.float32([[0, 1], [1, 0], [0.25, 1e-9]]))
    extreme = np.float32([[50, -50, 50], [-50, 0.5, 30]])
    labels = np.float32([[0, 1, 1], [0, 1, 0]])
    add("binary_logits_extreme", make(from_logits=True), labels, extreme)
    add_activated("binary_sigmoid_extreme", make(), "sigmoid", labels, extreme)
    add_activated("binary_sigmoid_extreme_from_logits", make(from_logits=True), "sigmoid", labels, extreme)
    y_true, logits, weight = bits(rng, 4, 3), normal(rng, 4, 3, scale=3), weights(rng, 4)
    for reduction in REDUCTIONS:
        add_activated(f"binary_sigmoid_{reduction}", make(reduction=reduction), "sigmoid", y_true, logits, weight)
    add_twice("binary_sigmoid_twice", make(from_logits=True), "sigmoid", y_true, logits)
    add_twice("binary_sigmoid_twice_extreme", make(from_logits=True), "sigmoid", labels, extreme)


def add_categorical():
    make = losses.CategoricalCrossentropy
    rng = golden.random("categorical")
    add_reductions("categorical", make, one_hot(rng, 5, 4), probabilities(rng, 4, 5), weights(rng, 4))
    for smoothing in (0.0, 0.2):
        end = "_smoothed" if smoothing else ""
        add(
            f"categorical_probabilities{end}",
            make(label_smoothing=smoothing),
            one_hot(rng, 3, 4),
            probabilities(rng, 4, 3),
        )
        logits = make(from_logits=True, label_smoothing=smoothing)
        add(f"categorical_logits{end}", logits, one_hot(rng, 5, 4), normal(rng, 4, 5, scale=3))
        for flag in (False, True):
            loss = make(from_logits=flag, label_smoothing=smoothing)
            read = "_from_logits" if flag else ""
            y_true, logits = one_hot(rng, 5, 4), normal(rng, 4, 5, scale=3)
            add_activated(f"categorical_softmax{read}{end}", loss, "softmax", y_true, logits)
    add("categorical_soft_labels", make(), probabilities(rng, 4, 5), probabilities(rng, 4, 5))
    add("categorical_not_normalized", make(), one_hot(rng, 5, 4), unit(rng, 4, 5))
    add("categorical_rank3", make(), one_hot(rng, 4, 2, 3), probabilities(rng, 2, 3, 4), weights(rng, 2, 3))
    add("categorical_rank3_logits", make(from_logits=True), one_hot(rng, 4, 2, 3), normal(rng, 2, 3, 4))
    add("categorical_clipped", make(), np.float32([[1, 0, 0], [0, 1, 0]]), np.float32([[0, 1, 0], [0, 1, 0]]))
    extreme = np.float32([[50, -50, 0, 1], [-50, 50, 50, -50], [0, 0, 50, -50]])
    labels = np.eye(4, dtype="float32")[[1, 1, 3]]
    add("categorical_logits_extreme", make(from_logits=True), labels, extreme)
    add_activated("categorical_softmax_extreme", make(), "softmax", labels, extreme)
    add_activated("categorical_softmax_extreme_from_logits", make(from_logits=True), "softmax", labels, extreme)
    y_true, logits, weight = one_hot(rng, 5, 4), normal(rng, 4, 5, scale=3), weights(rng, 4)
    for reduction in REDUCTIONS:
        add_activated(f"categorical_softmax_{reduction}", make(reduction=reduction), "softmax", y_true, logits, weight)
    add_twice("categorical_softmax_twice", make(from_logits=True), "softmax", y_true, logits)
    add_twice("categorical_softmax_twice_extreme", make(from_logits=True), "softmax", labels, extreme)


def add_sparse():
    make = losses.SparseCategoricalCrossentropy
    rng = golden.random("sparse")
    classes = lambda count, *shape: rng.integers(0, count, shape).astype("int32")
    add_reductions("sparse", make, classes(5, 4), probabilities(rng, 4, 5), weights(rng, 4))
    add("sparse_column", make(), classes(5, 4, 1), probabilities(rng, 4, 5))
    add("sparse_not_normalized", make(), classes(5, 4), unit(rng, 4, 5))
    add("sparse_logits", make(from_logits=True), classes(5, 4), normal(rng, 4, 5, scale=3))
    add("sparse_rank3", make(), classes(4, 2, 3), probabilities(rng, 2, 3, 4))
    add("sparse_rank3_weighted", make(), classes(4, 2, 3), probabilities(rng, 2, 3, 4), weights(rng, 2, 3))
    add("sparse_rank3_logits", make(from_logits=True), classes(4, 2, 3), normal(rng, 2, 3, 4), weights(rng, 2, 3))
    add("sparse_clipped", make(), np.int32([0, 1]), np.float32([[0, 1, 0], [0, 1, 0]]))
    for flag in (False, True):
        read = "_from_logits" if flag else ""
        add_activated(
            f"sparse_softmax{read}", make(from_logits=flag), "softmax", classes(5, 4), normal(rng, 4, 5, scale=3)
        )
        y_true, logits = classes(4, 2, 3), normal(rng, 2, 3, 4)
        add_activated(
            f"sparse_softmax_rank3{read}", make(from_logits=flag), "softmax", y_true, logits, weights(rng, 2, 3)
        )
    ignored = np.int32([0, 3, 1, 3, 2])
    y_pred, weight = probabilities(rng, 5, 4), weights(rng, 5)
    for reduction in REDUCTIONS:
        loss = make(ignore_class=3, reduction=reduction)
        add(f"sparse_ignore_{reduction}", loss, ignored, y_pred)
        add(f"sparse_ignore_{reduction}_weighted", loss, ignored, y_pred, weight)
    negative = np.int32([[0, -1, 1], [-1, 2, 3]])
    add("sparse_ignore_negative", make(ignore_class=-1, from_logits=True), negative, normal(rng, 2, 3, 4))
    extreme = np.float32([[50, -50, 0, 1], [-50, 50, 50, -50], [0, 0, 50, -50]])
    labels = np.int32([1, 1, 3])
    add("sparse_logits_extreme", make(from_logits=True), labels, extreme)
    add_activated("sparse_softmax_extreme", make(), "softmax", labels, extreme)
    add_activated("sparse_softmax_extreme_from_logits", make(from_logits=True), "softmax", labels, extreme)
    y_true, logits, weight = classes(5, 4), normal(rng, 4, 5, scale=3), weights(rng, 4)
    for reduction in REDUCTIONS:
        add_activated(f"sparse_softmax_{reduction}", make(reduction=reduction), "softmax", y_true, logits, weight)
    add_twice("sparse_softmax_twice", make(from_logits=True), "softmax", y_true, logits)
    add_twice("sparse_softmax_twice_weighted", make(from_logits=True), "softmax", y_true, logits, weight)
    add_twice("sparse_softmax_twice_extreme", make(from_logits=True), "softmax", labels, extreme)


def add_others():
    rng = golden.random("others")
    y_true, y_pred = probabilities(rng, 4, 5), probabilities(rng, 4, 5)
    add_reductions("kl_divergence", losses.KLDivergence, y_true, y_pred, weights(rng, 4))
    zeros = y_true.copy(), y_pred.copy()
    zeros[0][0, 1] = zeros[1][1, 2] = zeros[0][2, 0] = zeros[1][2, 0] = 0
    add("kl_divergence_zeros", losses.KLDivergence(), *zeros)
    add("kl_divergence_rank3", losses.KLDivergence(), probabilities(rng, 2, 3, 4), probabilities(rng, 2, 3, 4))
    add_reductions("cosine", losses.CosineSimilarity, normal(rng, 4, 5), normal(rng, 4, 5), weights(rng, 4))
    add("cosine_axis1", losses.CosineSimilarity(axis=1), normal(rng, 2, 4, 3), normal(rng, 2, 4, 3))
    add("cosine_rank3", losses.CosineSimilarity(), normal(rng, 2, 4, 3), normal(rng, 2, 4, 3), weights(rng, 2, 4))


def main():
    add_errors()
    add_binary()
    add_categorical()
    add_sparse()
    add_others()
    rng = golden.random("crossed")
    y_true, logits = one_hot(rng, 3, 4), normal(rng, 4, 3)
    add_crossed("crossed_sigmoid_categorical", losses.CategoricalCrossentropy(), "sigmoid", y_true, logits)
    add_crossed("crossed_softmax_binary", losses.BinaryCrossentropy(), "softmax", y_true, logits)
    writer.write()


if __name__ == "__main__":
    main()

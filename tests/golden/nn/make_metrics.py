# SPDX-License-Identifier: Apache-2.0
"""Writes metrics.safetensors: every metric over three updates, by Keras. See make_all.py for how to run it."""

import golden
from golden import normal, plain
from golden_keras import numbers  # before Keras and TensorFlow

import keras
import numpy as np
from keras import metrics
from keras.src.trainers import compile_utils  # where "accuracy" is resolved; it has no public name

writer = golden.Writer("metrics")
UPDATES = 3


def add(name, metric, make, weight=None, ties=False):
    """`make(rng)` gives what update_state takes, `weight(rng)` the sample weights."""
    rng = golden.random(name)
    description = {"class_name": type(metric).__name__, "config": plain(metric.get_config()), "kind": "updates"}
    writer.case(name, description | {"updates": UPDATES, "name": metric.name, "ties": ties})
    for i in range(UPDATES):
        arguments = make(rng)
        roles = ("values",) if len(arguments) == 1 else ("y_true", "y_pred")
        sample_weight = weight(rng) if weight else None
        metric.update_state(*arguments, sample_weight=sample_weight)
        for role, value in zip(roles, arguments):
            writer.tensor(f"{name}/update/{i}/{role}", value)
        if sample_weight is not None:
            writer.tensor(f"{name}/update/{i}/sample_weight", sample_weight)
        writer.tensor(f"{name}/result/{i}", numbers(metric.result()))
    metric.reset_state()
    writer.tensor(f"{name}/result_after_reset", numbers(metric.result()))
    keras.backend.clear_session()  # so that the next one is "precision" again, not "precision_1"


def weights(*shape):
    return lambda rng: rng.uniform(0.2, 2.0, shape).astype("float32")


def both(name, make_metric, make, *shape):
    """Without and with sample weights of the shape."""
    add(name, make_metric(), make)
    add(f"{name}_weighted", make_metric(), make, weights(*shape))


def scores(rng, *shape):
    """In (0, 1), different in every place and never at a threshold."""
    count = np.prod(shape)
    return ((rng.permutation(count) + 0.37) / count).reshape(shape).astype("float32")


def classes(rng, count, *shape):
    return rng.integers(0, count, shape).astype("int32")


def bits(rng, *shape):
    return rng.integers(0, 2, shape).astype("float32")


def one_hot(rng, count, *shape):
    return np.eye(count, dtype="float32")[classes(rng, count, *shape)]


def add_means():
    for name, make in (("mean", metrics.Mean), ("sum", metrics.Sum)):
        both(name, make, lambda rng: (normal(rng, 4),), 4)
        both(f"{name}_rank2", make, lambda rng: (normal(rng, 4, 3),), 4, 3)
        add(f"{name}_scalar", make(name="test_loss"), lambda rng: (np.float32(rng.standard_normal()),))
        add(f"{name}_weight_per_row", make(), lambda rng: (normal(rng, 4, 3),), weights(4, 1))
    for name, make in (("mse", metrics.MeanSquaredError), ("mae", metrics.MeanAbsoluteError)):
        both(name, make, lambda rng: (normal(rng, 4, 3), normal(rng, 4, 3)), 4)
        both(f"{name}_rank3", make, lambda rng: (normal(rng, 2, 3, 2), normal(rng, 2, 3, 2)), 2, 3)
        both(f"{name}_one_column", make, lambda rng: (normal(rng, 5), normal(rng, 5, 1)), 5)


def add_accuracies():
    both("accuracy", metrics.Accuracy, lambda rng: (classes(rng, 3, 6), classes(rng, 3, 6)), 6)
    rank2 = lambda rng: (classes(rng, 2, 4, 3).astype("float32"), classes(rng, 2, 4, 3).astype("float32"))
    both("accuracy_rank2", metrics.Accuracy, rank2, 4)
    binary = lambda rng: (bits(rng, 5, 3), scores(rng, 5, 3))
    both("binary_accuracy", metrics.BinaryAccuracy, binary, 5)
    both("binary_accuracy_threshold", lambda: metrics.BinaryAccuracy(threshold=0.3), binary, 5)
    both("binary_accuracy_one_column", metrics.BinaryAccuracy, lambda rng: (bits(rng, 5), scores(rng, 5, 1)), 5)
    edge = lambda rng: (np.float32([[0], [1], [0], [1]]), np.float32([[0.5], [0.5], [0.25], [0.75]]))
    add("binary_accuracy_edge", metrics.BinaryAccuracy(), edge, ties=True)
    both("categorical_accuracy", metrics.CategoricalAccuracy, lambda rng: (one_hot(rng, 3, 6), scores(rng, 6, 3)), 6)
    rank3 = lambda rng: (one_hot(rng, 3, 2, 4), scores(rng, 2, 4, 3))
    both("categorical_accuracy_rank3", metrics.CategoricalAccuracy, rank3, 2, 4)
    tied = lambda rng: (np.eye(3, dtype="float32"), np.float32([[1, 1, 0], [1, 1, 0], [2, 3, 3]]))
    add("categorical_accuracy_ties", metrics.CategoricalAccuracy(), tied, ties=True)
    sparse = metrics.SparseCategoricalAccuracy
    both("sparse_categorical_accuracy", sparse, lambda rng: (classes(rng, 3, 6), scores(rng, 6, 3)), 6)
    both("sparse_categorical_accuracy_column", sparse, lambda rng: (classes(rng, 3, 6, 1), scores(rng, 6, 3)), 6)
    both("sparse_categorical_accuracy_rank3", sparse, lambda rng: (classes(rng, 3, 2, 4), scores(rng, 2, 4, 3)), 2, 4)
    tied = lambda rng: (np.int32([0, 1, 2]), np.float32([[1, 1, 0], [1, 1, 0], [2, 3, 3]]))
    add("sparse_categorical_accuracy_ties", sparse(), tied, ties=True)
    add(
        "sparse_categorical_accuracy_named",
        sparse(name="accuracy"),
        lambda rng: (classes(rng, 3, 6), scores(rng, 6, 3)),
    )


def add_top_k():
    tied = np.float32([[3, 2, 2, 2, 1, 0, 0], [1, 1, 1, 1, 1, 1, 1], [0, 1, 2, 3, 4, 4, 4], [5, 5, 5, 4, 4, 4, 1]])
    labels = np.int32([3, 6, 6, 5])
    one, sparse = metrics.TopKCategoricalAccuracy, metrics.SparseTopKCategoricalAccuracy
    both("top_k_categorical_accuracy", one, lambda rng: (one_hot(rng, 9, 6), scores(rng, 6, 9)), 6)
    both("sparse_top_k_categorical_accuracy", sparse, lambda rng: (classes(rng, 9, 6), scores(rng, 6, 9)), 6)
    for k in (1, 2, 3):
        add(f"top_k_categorical_accuracy_k{k}", one(k=k), lambda rng: (one_hot(rng, 5, 6), scores(rng, 6, 5)))
        add(f"sparse_top_k_categorical_accuracy_k{k}", sparse(k=k), lambda rng: (classes(rng, 5, 6), scores(rng, 6, 5)))
        ties = lambda rng: (np.eye(7, dtype="float32")[labels], tied)
        add(f"top_k_categorical_accuracy_k{k}_ties", one(k=k), ties, ties=True)
        add(f"sparse_top_k_categorical_accuracy_k{k}_ties", sparse(k=k), lambda rng: (labels, tied), ties=True)
    add("sparse_top_k_categorical_accuracy_ties", sparse(), lambda rng: (labels, tied), ties=True)
    many = lambda rng: (classes(rng, 3, 4), scores(rng, 4, 3))
    add("sparse_top_k_categorical_accuracy_k_above_classes", sparse(k=5), many)
    column = lambda rng: (classes(rng, 9, 6, 1), scores(rng, 6, 9))
    add("sparse_top_k_categorical_accuracy_column", sparse(k=2), column)
    rank3 = lambda rng: (classes(rng, 5, 2, 3), scores(rng, 2, 3, 5))
    both("sparse_top_k_categorical_accuracy_rank3", lambda: sparse(k=2), rank3, 2, 3)


def add_precision():
    binary = lambda rng: (bits(rng, 8), scores(rng, 8))
    for name, make in (("precision", metrics.Precision), ("recall", metrics.Recall)):
        both(name, make, binary, 8)
        both(f"{name}_rank2", make, lambda rng: (bits(rng, 4, 3), scores(rng, 4, 3)), 4, 1)
        both(f"{name}_threshold", lambda: make(thresholds=0.3), binary, 8)
        both(f"{name}_thresholds", lambda: make(thresholds=[0.2, 0.5, 0.8]), binary, 8)
        none = lambda rng: (np.zeros(4, "float32"), np.zeros(4, "float32"))
        add(f"{name}_none", make(), none)
        edge = lambda rng: (np.float32([1, 0, 1, 0]), np.float32([0.5, 0.5, 0.75, 0.25]))
        add(f"{name}_edge", make(), edge, ties=True)
        add(f"{name}_class_id", make(class_id=1), lambda rng: (one_hot(rng, 3, 6), scores(rng, 6, 3)))
        add(f"{name}_top_k", make(top_k=2), lambda rng: (one_hot(rng, 5, 6), scores(rng, 6, 5)))


def add_choices():
    """Which metric "accuracy" becomes. Keras looks at the shapes alone, not at the loss."""
    table = [
        ("binary_crossentropy", (4, 1), (4, 1)),
        ("binary_crossentropy", (4,), (4, 1)),
        ("binary_crossentropy", (4, 3), (4, 3)),
        ("categorical_crossentropy", (4, 3), (4, 3)),
        ("categorical_crossentropy", (4, 5, 3), (4, 5, 3)),
        ("sparse_categorical_crossentropy", (4,), (4, 3)),
        ("sparse_categorical_crossentropy", (4, 1), (4, 3)),
        ("sparse_categorical_crossentropy", (4, 5), (4, 5, 3)),
        ("sparse_categorical_crossentropy", (4, 5, 1), (4, 5, 3)),
        ("sparse_categorical_crossentropy", (4, 1), (4, 1)),
        ("mean_squared_error", (4, 1), (4, 1)),
        ("mean_squared_error", (4,), (4, 1)),
        ("mean_squared_error", (4, 3), (4, 3)),
        ("mean_squared_error", (4,), (4,)),
        ("mean_squared_error", (4, 5, 1), (4, 5, 1)),
    ]
    for i, (loss, true_shape, predicted_shape) in enumerate(table):
        sparse = loss.startswith("sparse")
        y_true = np.zeros(true_shape, "int32" if sparse else "float32")
        y_pred = np.full(predicted_shape, 0.5, "float32")
        chosen = compile_utils.get_metric("accuracy", y_true, y_pred)
        assert trained_choice(loss, y_true, y_pred) in (None, type(chosen).__name__), (loss, true_shape)
        description = {"kind": "accuracy_choice", "loss": loss, "y_true_shape": true_shape}
        description |= {"y_pred_shape": predicted_shape, "chosen": type(chosen).__name__, "name": chosen.name}
        writer.case(f"accuracy_choice_{i}", description)


def trained_choice(loss, y_true, y_pred):
    """What a compiled model chose, None for shapes that a layer cannot give."""
    if y_pred.ndim < 2:
        return None
    keras.backend.clear_session()
    model = keras.Sequential([keras.Input(y_pred.shape[1:]), keras.layers.Activation("linear")])
    model.compile(loss=loss, metrics=["accuracy"])
    model.test_on_batch(y_pred, y_true)
    return type(model._compile_metrics._flat_metrics[0].metrics[0]).__name__


def main():
    add_means()
    add_accuracies()
    add_top_k()
    add_precision()
    add_choices()
    writer.write()


if __name__ == "__main__":
    main()

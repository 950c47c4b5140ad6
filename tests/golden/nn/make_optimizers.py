# SPDX-License-Identifier: Apache-2.0
"""Writes optimizers.safetensors (ten steps of every optimizer) and schedules.safetensors, by Keras. See make_all.py for
how to run it."""

import golden
from golden import normal, plain
from golden_keras import numbers  # before Keras and TensorFlow

import keras
import numpy as np
import tensorflow as tf
from keras import optimizers
from keras.optimizers import schedules

writer = golden.Writer("optimizers")
STEPS = 10
SHAPES = {"kernel": (3, 4), "bias": (4,)}
ROWS = {"embeddings": (7, 3)}
SCALES = [1, 0.1, 3, 0.02, 1, 5, 0.5, 1, 0.3, 2]  # of the gradients: some are clipped and some are not


def slots(optimizer):
    """(name, variable) of the optimizer's state but for the step and the learning rate."""
    result = []
    for variable in optimizer.variables:
        name = variable.path.split("/")[-1]
        if name in ("iteration", "learning_rate"):
            continue
        nameless = variable is getattr(optimizer, "_u_product", None)
        result.append(("u_product" if nameless else name, variable))
    return result


def run(make, start, gradients):
    """Values after each step, the learning rate of each, and the optimizer as it is at the end."""
    keras.backend.clear_session()
    optimizer = make()
    variables = [keras.Variable(value, name=name) for name, value in start.items()]
    optimizer.build(variables)
    after, rates = [], []
    for step in gradients:
        rates.append(numbers(optimizer.learning_rate))
        optimizer.apply_gradients(zip(step, variables))
        after.append([numbers(variable) for variable in variables])
    return after, np.float32(rates), optimizer


def add(name, make, scale=1.0):
    rng = golden.random(name)
    start = {variable: normal(rng, *shape) for variable, shape in SHAPES.items()}
    gradients = [[normal(rng, *shape, scale=scale * s) for shape in SHAPES.values()] for s in SCALES]
    after, rates, optimizer = run(make, start, [[tf.constant(g) for g in step] for step in gradients])
    store(name, optimizer, start, after, rates, rows=False)
    for step, values in enumerate(gradients):
        for i, value in enumerate(values):
            writer.tensor(f"{name}/gradient/{step}/{i}", value)


def store(name, optimizer, start, after, rates, **extra):
    state = slots(optimizer)
    description = {
        "class_name": type(optimizer).__name__,
        "config": plain(optimizer.get_config()),
        "steps": STEPS,
        "variables": list(start),
        "slots": [slot for slot, _ in state],
        "iterations": int(optimizer._iterations.numpy()),
    }
    writer.case(name, description | extra)
    for i, value in enumerate(start.values()):
        writer.tensor(f"{name}/start/{i}", value)
    for step, values in enumerate(after):
        for i, value in enumerate(values):
            writer.tensor(f"{name}/after/{step}/{i}", value)
    writer.tensor(f"{name}/learning_rate", rates)
    for slot, variable in state:
        writer.tensor(f"{name}/slot/{slot}", numbers(variable))


def add_rows(name, make):
    """Gradients by rows, with rows that come twice. `after` is what follows from the rows added up, which is what the
    dense gradient gives and what PyTorch and Keras 2 do; `raw_after` is what Keras 3 makes of the rows as they came: it
    squares and clips each of those that belong together by itself."""
    rng = golden.random(name)
    start = {variable: normal(rng, *shape) for variable, shape in ROWS.items()}
    (shape,) = ROWS.values()
    raw, combined, dense = [], [], []
    for step, scale in enumerate(SCALES):
        indices = rng.integers(0, shape[0], 5).astype("int32")
        indices[3] = indices[0]
        values = normal(rng, 5, shape[1], scale=scale)
        unique, place = np.unique(indices, return_inverse=True)
        sums = np.zeros((len(unique), shape[1]), "float32")
        np.add.at(sums, place, values)
        raw.append([rows_of(values, indices, shape)])
        combined.append([rows_of(sums, unique, shape)])
        dense.append([tf.convert_to_tensor(combined[-1][0])])
        writer.tensor(f"{name}/gradient/{step}/0/values", values)
        writer.tensor(f"{name}/gradient/{step}/0/indices", indices)
    after, rates, optimizer = run(make, start, combined)
    for a, b in zip(after, run(make, start, dense)[0]):
        np.testing.assert_allclose(a[0], b[0], rtol=1e-6, atol=1e-7)
    raw_after = run(make, start, raw)[0]
    equal = np.allclose(after[-1][0], raw_after[-1][0], rtol=1e-5, atol=1e-6)
    store(name, optimizer, start, after, rates, rows=True, raw_equal=equal)
    if not equal:
        writer.tensor(f"{name}/raw_after/{STEPS - 1}/0", raw_after[-1][0])


def rows_of(values, indices, shape):
    return tf.IndexedSlices(tf.constant(values), tf.constant(indices), tf.constant(shape))


def add_sgd():
    make = optimizers.SGD
    add("sgd", make)
    add("sgd_rate", lambda: make(0.3))
    add("sgd_momentum", lambda: make(0.1, momentum=0.9))
    add("sgd_nesterov", lambda: make(0.1, momentum=0.8, nesterov=True))
    add("sgd_weight_decay", lambda: make(0.1, momentum=0.9, weight_decay=0.05))
    add("sgd_clipvalue", lambda: make(0.1, clipvalue=0.5))
    add("sgd_clipnorm", lambda: make(0.1, clipnorm=1.2))
    add("sgd_clipnorm_tiny", lambda: make(1e4, clipnorm=5e-6), scale=1e-5)
    add("sgd_global_clipnorm", lambda: make(0.1, global_clipnorm=1.5))
    add("sgd_accumulation", lambda: make(0.1, momentum=0.9, gradient_accumulation_steps=3))
    for name, arguments in (
        ("", {}),
        ("_momentum", {"momentum": 0.9}),
        ("_nesterov", {"momentum": 0.9, "nesterov": True}),
    ):
        add_rows(f"sgd{name}_rows", lambda: make(0.1, **arguments))
    add_rows("sgd_clipvalue_rows", lambda: make(0.1, clipvalue=0.5))
    add_rows("sgd_clipnorm_rows", lambda: make(0.1, clipnorm=1.2))
    add_rows("sgd_global_clipnorm_rows", lambda: make(0.1, global_clipnorm=1.2))
    add_rows("sgd_accumulation_rows", lambda: make(0.1, gradient_accumulation_steps=3))


def add_adaptive():
    table = {
        "adam": (optimizers.Adam, {"beta_1": 0.8, "beta_2": 0.95, "epsilon": 0.01}),
        "adamw": (optimizers.AdamW, {"beta_1": 0.8, "beta_2": 0.95, "epsilon": 0.01, "weight_decay": 0.03}),
        "nadam": (optimizers.Nadam, {"beta_1": 0.8, "beta_2": 0.95, "epsilon": 0.01}),
        "rmsprop": (optimizers.RMSprop, {"rho": 0.8, "epsilon": 0.01}),
        "adagrad": (optimizers.Adagrad, {"initial_accumulator_value": 0.3, "epsilon": 0.01}),
    }
    for name, (make, odd) in table.items():
        add(name, make)
        add(f"{name}_odd", lambda: make(0.02, **odd))
        add(f"{name}_tiny", lambda: make(0.02), scale=1e-6)  # gradients near epsilon
        add(f"{name}_accumulation", lambda: make(0.02, gradient_accumulation_steps=3))
        if name != "adamw":
            add(f"{name}_weight_decay", lambda: make(0.02, weight_decay=0.05))
        add_rows(f"{name}_rows", lambda: make(0.02))
    add("adam_clipvalue", lambda: optimizers.Adam(0.02, clipvalue=0.4))
    add("nadam_clipnorm", lambda: optimizers.Nadam(0.02, clipnorm=0.8))
    add("adam_global_clipnorm", lambda: optimizers.Adam(0.02, global_clipnorm=0.9))
    add("adamw_clipvalue_accumulation", lambda: optimizers.AdamW(0.02, clipvalue=0.4, gradient_accumulation_steps=3))
    add("adam_amsgrad", lambda: optimizers.Adam(0.02, beta_2=0.8, amsgrad=True))
    writer.cases["adam_amsgrad"]["optional"] = True
    add("rmsprop_momentum", lambda: optimizers.RMSprop(0.01, momentum=0.9))
    add("rmsprop_centered", lambda: optimizers.RMSprop(0.01, centered=True))
    add(
        "rmsprop_centered_momentum",
        lambda: optimizers.RMSprop(0.01, rho=0.7, momentum=0.5, epsilon=0.01, centered=True),
    )
    add_rows("rmsprop_momentum_rows", lambda: optimizers.RMSprop(0.01, momentum=0.9))
    add_rows("rmsprop_centered_rows", lambda: optimizers.RMSprop(0.01, centered=True))


def add_scheduled():
    exponential = lambda: schedules.ExponentialDecay(0.1, decay_steps=4, decay_rate=0.5)
    cosine = lambda: schedules.CosineDecay(0.01, decay_steps=6, warmup_target=0.1, warmup_steps=3)
    add("sgd_exponential", lambda: optimizers.SGD(exponential(), momentum=0.9))
    add("sgd_piecewise", lambda: optimizers.SGD(schedules.PiecewiseConstantDecay([2, 6], [0.2, 0.05, 0.01])))
    add("adam_cosine", lambda: optimizers.Adam(cosine()))
    add("adamw_exponential", lambda: optimizers.AdamW(exponential(), weight_decay=0.05))
    add("nadam_polynomial", lambda: optimizers.Nadam(schedules.PolynomialDecay(0.1, decay_steps=7, power=2.0)))
    add("sgd_exponential_accumulation", lambda: optimizers.SGD(exponential(), gradient_accumulation_steps=3))


def add_schedules(writer):
    table = {
        "exponential": schedules.ExponentialDecay(0.1, decay_steps=10, decay_rate=0.9),
        "exponential_staircase": schedules.ExponentialDecay(0.05, decay_steps=7, decay_rate=0.5, staircase=True),
        "piecewise": schedules.PiecewiseConstantDecay([5, 12], [1.0, 0.5, 0.1]),
        "piecewise_one": schedules.PiecewiseConstantDecay([10], [0.01, 0.003]),
        "cosine": schedules.CosineDecay(0.1, decay_steps=20),
        "cosine_alpha": schedules.CosineDecay(0.1, decay_steps=15, alpha=0.2),
        "cosine_warmup": schedules.CosineDecay(0.0, decay_steps=12, warmup_target=0.1, warmup_steps=6),
        "cosine_warmup_alpha": schedules.CosineDecay(
            0.02, decay_steps=10, alpha=0.1, warmup_target=0.3, warmup_steps=4
        ),
        "polynomial": schedules.PolynomialDecay(0.1, decay_steps=10),
        "polynomial_square": schedules.PolynomialDecay(0.1, decay_steps=12, end_learning_rate=0.01, power=2.0),
        "polynomial_root": schedules.PolynomialDecay(0.1, decay_steps=12, end_learning_rate=0.01, power=0.5),
        "polynomial_cycle": schedules.PolynomialDecay(0.1, decay_steps=6, end_learning_rate=0.01, cycle=True),
    }
    steps = np.concatenate([np.arange(26), [40, 100, 1000]]).astype("int64")
    for name, schedule in table.items():
        values = np.float32([numbers(schedule(tf.constant(step))) for step in steps])
        writer.case(
            name, {"class_name": type(schedule).__name__, "config": plain(schedule.get_config(), drop=("name",))}
        )
        writer.tensor(f"{name}/steps", steps)
        writer.tensor(f"{name}/values", values)
    rate = optimizers.SGD(0.25)
    writer.case("constant", {"class_name": "constant", "config": {"learning_rate": 0.25}})
    writer.tensor("constant/steps", steps)
    writer.tensor("constant/values", np.full(steps.shape, numbers(rate.learning_rate), "float32"))


def main():
    add_sgd()
    add_adaptive()
    add_scheduled()
    writer.write()
    schedule_writer = golden.Writer("schedules")
    add_schedules(schedule_writer)
    schedule_writer.write()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes callbacks.jsonl beside itself: what Keras' callbacks decide, for tests/unit/test_callbacks.c.

    python3 -m venv /tmp/callbacks && /tmp/callbacks/bin/pip install tensorflow==2.21.0 tensorboard==2.21.0
    /tmp/callbacks/bin/python make_callbacks.py

A line is a case, a JSON object whose "case" says which callback it is about; the first names the versions. Values are
those of a monitored name, epoch by epoch; null: that epoch has none. What JSON has no number for is a text, "nan".
"""
import json
import math
import os
import pathlib
import sys
import tempfile
import warnings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
warnings.simplefilter("ignore")

import keras
import numpy as np
import tensorflow as tf
from keras import callbacks
from keras.src.callbacks import terminate_on_nan

HERE = pathlib.Path(__file__).parent
NAN, INF = math.nan, math.inf
cases = []


def add(case, **parts):
    def plain(value):
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)
        if isinstance(value, (list, tuple)):
            return [plain(one) for one in value]
        if isinstance(value, dict):
            return {name: plain(one) for name, one in value.items()}
        return value

    cases.append(json.dumps(plain({"case": case, **parts})))


class Model(keras.Sequential):
    """One weight; tells where it would be saved."""

    def save(self, filepath, **_):
        self.saved.append(os.path.basename(filepath))

    save_weights = save


def model_with(learning_rate=0.1, metrics=("accuracy",)):
    model = Model([keras.Input((1,)), keras.layers.Dense(1, use_bias=False)])
    model.compile(keras.optimizers.SGD(learning_rate), "mse", metrics=list(metrics))
    model.train_on_batch(np.ones((1, 1)), np.ones((1, 1)))
    model.saved = []
    return model


def logs_of(monitor, value):
    logs = {"loss": 1.0, "accuracy": 0.5}
    return logs if value is None else {**logs, monitor: value}


def drive(callback, model, monitor, values, each=lambda: None):
    """A training whose epochs end with these values; how many it had."""
    callback.set_model(model)
    model.stop_training = False
    callback.on_train_begin()
    epochs = 0
    for epoch, value in enumerate(values):
        model.set_weights([np.full((1, 1), float(epoch))])
        callback.on_epoch_begin(epoch)
        callback.on_epoch_end(epoch, logs_of(monitor, value))
        each()
        epochs += 1
        if model.stop_training:
            break
    callback.on_train_end()
    return epochs


FALLING = [1.0, 0.8, 0.6, 0.7, 0.65, 0.61, 0.5, 0.55, 0.56, 0.57, 0.58, 0.59]
RISING = [0.1, 0.4, 0.3, 0.35, 0.5, 0.49, 0.48, 0.47, 0.46, 0.6]
LEVEL = [0.5] * 8
ODD = [
    [NAN, 0.5, 0.4, 0.3],
    [0.5, NAN, NAN, 0.4, NAN, NAN, NAN],
    [INF, INF, 0.5, -INF, 0.1, 0.1],
    [None, None, 0.5, None, 0.6, 0.7, None, 0.8],
    [0.3, 0.2, 0.1, 0.1 - 1e-9, 0.1 - 2e-9, 0.1 - 1e-7, 0.1 + 1e-7],
    [0.7, 0.8, 0.7 + 0.1, 0.9, 0.8, 0.8],
    [3e38, 1e38, 1e30, 1e-46, 1e-50, -1e-50],
    [0.5],
    [0.5, 0.6],
]


def early_stopping():
    def one(values, monitor="val_loss", **options):
        model = model_with()
        callback = callbacks.EarlyStopping(monitor, restore_best_weights=True, **options)
        epochs = drive(callback, model, monitor, values)
        restored = float(np.ravel(model.get_weights()[0])[0])
        add("early_stopping", monitor=monitor, options=options, values=values, epochs=epochs, restored=int(restored))

    for values in (FALLING, RISING, LEVEL, *ODD):
        for patience in (0, 1, 2, 4):
            one(values, patience=patience)
        one(values, mode="max", patience=2)
    one(RISING, "val_accuracy", patience=2)
    one(RISING, "accuracy", patience=1)
    one(RISING, "val_accuracy", mode="min", patience=2)
    for delta in (0.0, 0.05, 0.1, 0.2, -0.1, 1.0):
        one(FALLING, min_delta=delta, patience=2)
        one(RISING, "val_accuracy", min_delta=delta, patience=2)
        one(ODD[5], mode="max", min_delta=delta, patience=1)
    for baseline in (0.05, 0.55, 0.6, 0.7, 2.0):
        one(FALLING, baseline=baseline, patience=3)
        one(FALLING, baseline=baseline, patience=3, min_delta=0.1)
        one(RISING, "val_accuracy", baseline=baseline, patience=3)
    for start in (0, 1, 3, 5, 100):
        one(FALLING, start_from_epoch=start, patience=1)
        one(FALLING, start_from_epoch=start, patience=2, baseline=0.55)


def reduce_on_plateau():
    def one(values, monitor="val_loss", learning_rate=0.1, **options):
        model, rates = model_with(learning_rate), []
        callback = callbacks.ReduceLROnPlateau(monitor, **options)
        drive(callback, model, monitor, values, lambda: rates.append(float(model.optimizer.learning_rate)))
        add("reduce_on_plateau", monitor=monitor, options=options, values=values, rate=learning_rate, rates=rates)

    for values in (FALLING, RISING, LEVEL, *ODD):
        for patience in (1, 2, 4):
            one(values, patience=patience)
        one(values, mode="max", patience=2, factor=0.5)
    one(RISING * 3, "val_accuracy")
    one(LEVEL * 3)
    one(LEVEL * 3, factor=0.9, patience=3)
    for cooldown in (0, 1, 2, 5):
        one(LEVEL * 2, patience=1, cooldown=cooldown, factor=0.5)
        one(FALLING * 2, patience=2, cooldown=cooldown, factor=0.5)
    for least in (0.0, 0.01, 0.03, 0.1, 0.5):
        one(LEVEL * 2, patience=1, min_lr=least, cooldown=1)
        one(LEVEL * 2, patience=1, min_lr=least, factor=0.0)
    for delta in (0.0, 0.01, 0.2):
        one(FALLING, patience=1, min_delta=delta, factor=0.5)


def model_checkpoint():
    def one(values, monitor="val_loss", path="{epoch:02d}.keras", **options):
        model = model_with()
        drive(callbacks.ModelCheckpoint(path, monitor, **options), model, monitor, values)
        add("model_checkpoint", monitor=monitor, path=path, options=options, values=values, saved=model.saved)

    for values in (FALLING, RISING, LEVEL, *ODD):
        one(values)
        one(values, save_best_only=True)
        one(values, mode="max", save_best_only=True)
    one(RISING, "val_accuracy", save_best_only=True)
    one(FALLING, path="e{epoch}-{val_loss:.2f}-{loss:.1e}.weights.h5", save_best_only=True, save_weights_only=True)
    for threshold in (0.05, 0.6, 0.65, 5.0):
        one(FALLING, save_best_only=True, initial_value_threshold=threshold)
        one(RISING, "val_accuracy", save_best_only=True, initial_value_threshold=threshold)


def steps_checkpoint():
    """Saved by steps: an epoch's values are those behind each of its batches."""

    def one(epochs, save_freq, path="{epoch}-{batch:02d}.keras", **options):
        model = model_with()
        callback = callbacks.ModelCheckpoint(path, "loss", save_freq=save_freq, **options)
        callback.set_model(model)
        callback._set_monitor_op()  # Keras forgets it before the first epoch's end
        callback.on_train_begin()
        for epoch, values in enumerate(epochs):
            callback.on_epoch_begin(epoch)
            for batch, value in enumerate(values):
                callback.on_train_batch_end(batch, {"loss": value})
            callback.on_epoch_end(epoch, {"loss": values[-1]})
        add("steps_checkpoint", path=path, options={"every_steps": save_freq, **options}, values=epochs, saved=model.saved)

    epochs = [[5.0, 4.0, 3.0], [3.5, 2.0, 2.5], [1.0, 1.5, 0.5]]
    for every in (1, 2, 3, 4, 9, 10):
        one(epochs, every)
        one(epochs, every, save_best_only=True)
    one(epochs, 2, path="{batch}-{loss:07.3f}.keras")


def csv_logger():
    def one(*runs, **options):
        """Each run is a list of what epochs have measured; all but the first append."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "log.csv")
            for number, run in enumerate(runs):
                logger = callbacks.CSVLogger(path, append=number > 0, **options)
                logger.set_model(model_with())
                logger.on_train_begin()
                for epoch, logs in enumerate(run):
                    logger.on_epoch_end(epoch, dict(logs))
                logger.on_train_end()
            text = pathlib.Path(path).read_text().replace("\r\n", "\n")
        add("csv_logger", runs=runs, options=options, text=text)

    full = [{"loss": 0.5, "accuracy": 0.25, "val_loss": 1 / 3, "val_accuracy": 2 / 3}, {"loss": 1e-5, "accuracy": 1.0}]
    late = [{"loss": 0.5, "accuracy": 0.25}, {"loss": 0.125, "accuracy": 1e22, "val_loss": 1e16, "val_accuracy": 0.1}]
    one(full)
    one(late)
    one(late, separator=";")
    one(full, full)
    one([{"loss": NAN}, {"loss": INF}, {"loss": -INF}, {"loss": -0.0}, {"loss": 123456789.125}])
    one([{"loss": 1.0, "a,b": 2.0, 'say "x"': 3.0, "val_z": 4.0, "Ü": 5.0}])
    one([{"loss": 0.1, "other": 3.0}, {"loss": 0.2}, {"loss": 0.3, "new": 4.0}])


def templates():
    logs = {"loss": 0.123456789, "val_loss": -12.5, "accuracy": 1.0, "a b": 1e-7, "nan": NAN, "inf": INF, "big": 1e22}

    def one(path, epoch=3):
        try:
            text = path.format(epoch=epoch, **logs)
        except (KeyError, ValueError, IndexError):
            text = None
        add("template", path=path, epoch=epoch, result=text)

    add("template_logs", logs=logs)

    for path in ("plain", "{epoch}", "{epoch:d}", "{epoch:02d}", "{epoch:5d}|", "{epoch:05d}", "{epoch:.2f}", "{epoch:g}"):
        one(path)
        one(path, 12345678)
    for name in logs:
        for form in ("", ":f", ":.2f", ":.0f", ":8.3f", ":08.3f", ":e", ":.1e", ":012.4e", ":g", ":.3g", ":10", ":010", ":99.99f"):
            one("{" + name + form + "}")
    for path in ("{{", "}}", "{{epoch}}", "{{{epoch}}}", "a{{b}}c{epoch}d", "{epoch}{epoch}", "{epoch}/{loss:.1f}/x", "ü{epoch}ü"):
        one(path)
    for path in ("{", "}", "{epoch", "epoch}", "{epoch}}", "{{epoch}", "{}", "{nosuch}", "{:d}", "{epoch:q}", "{loss:d}", "{epoch:.f}"):
        one(path)


def terminate():
    said = []
    terminate_on_nan.io_utils.print_msg = said.append
    for values in ([1.0, 2.0], [1.0, NAN, 2.0], [INF], [1.0, -INF], [NAN, NAN], [1e38, 3e38, 1.0]):
        callback, model = callbacks.TerminateOnNaN(), model_with()
        callback.set_model(model)
        model.stop_training = False
        said.clear()
        batches = 0
        for batch, loss in enumerate(values):
            batches += 1
            callback.on_train_batch_end(batch, {"loss": loss})
            if model.stop_training:
                break
        add("terminate_on_nan", values=values, batches=batches, message=said[0] if said else None)


def scheduler():
    model, rates = model_with(0.1), []
    callback = callbacks.LearningRateScheduler(lambda epoch, rate: rate if epoch < 2 else rate * 0.5 + 0.01 * epoch)
    drive(callback, model, "val_loss", [1.0] * 6, lambda: rates.append(float(model.optimizer.learning_rate)))
    add("scheduler", rate=0.1, rates=rates)


def directions():
    names = ["accuracy", "binary_accuracy", "categorical_accuracy", "sparse_categorical_accuracy"]
    names += ["top_k_categorical_accuracy", "sparse_top_k_categorical_accuracy", "mean_squared_error"]
    names += ["mean_absolute_error", "binary_crossentropy", "categorical_crossentropy"]
    names += ["sparse_categorical_crossentropy", "kl_divergence"]
    objects = {name: keras.metrics.get(name) for name in names}
    objects["accuracy"] = keras.metrics.BinaryAccuracy()
    objects |= {"precision": keras.metrics.Precision(), "recall": keras.metrics.Recall()}
    objects |= {"mean": keras.metrics.Mean(), "sum": keras.metrics.Sum()}
    for name, metric in objects.items():
        if not isinstance(metric, keras.metrics.Metric):
            metric = keras.metrics.MeanMetricWrapper(metric, name)
        add("direction", metric=name, direction={"up": 1, "down": -1}.get(getattr(metric, "_direction", None), 0))


def scalars_in(folder):
    """(run, tag, step) of all scalars."""
    found = []
    for path in sorted(pathlib.Path(folder).rglob("events.out.tfevents.*")):
        for record in tf.data.TFRecordDataset(str(path)):
            event = tf.compat.v1.Event.FromString(record.numpy())
            found += [[path.parent.name, value.tag, event.step] for value in event.summary.value]
    return sorted(one for one in found if one[1] != "keras")  # which is the model's graph


def tensorboard():
    x, y = np.ones((6, 1), np.float32), np.ones((6, 1), np.float32)
    for every in ("epoch", 1, 3):  # with others Keras forgets epochs that do not end with such a step
        for validated in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                board = callbacks.TensorBoard(folder, write_graph=False, update_freq=every)
                model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
                model.compile("sgd", "mse", metrics=["accuracy"])
                data = {"validation_data": (x, y)} if validated else {}
                model.fit(x, y, batch_size=2, epochs=2, verbose=0, callbacks=[board], **data)
                every_steps = 0 if every == "epoch" else every
                add("tensorboard", every_steps=every_steps, validated=validated, scalars=scalars_in(folder))


def main():
    add("versions", keras=keras.__version__, tensorflow=tf.__version__, python=sys.version.split()[0])
    monitors = (early_stopping, reduce_on_plateau, model_checkpoint, steps_checkpoint)
    for make in monitors + (csv_logger, templates, terminate, scheduler, directions, tensorboard):
        make()
    (HERE / "callbacks.jsonl").write_text("\n".join(cases) + "\n")


if __name__ == "__main__":
    main()

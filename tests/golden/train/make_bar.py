#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes bar.txt and bar_keras2.txt beside itself: how Keras draws the progress of a training, for test_bar.c.

    python3 -m venv /tmp/bar && /tmp/bar/bin/pip install tensorflow==2.21.0 tf_keras==2.21.0
    /tmp/bar/bin/python make_bar.py

bar.txt has the versions in its first line, then two lines for each case: the state

    verbose target step seconds first_step finished name=value…

(target -1: unknown; first_step 0: not known) and the line that Keras 3 draws for it, without what moves the cursor;
empty if it draws nothing. In states `epoch 0 10` it is the line before the first of ten epochs. bar_keras2.txt has the bars of Keras 2, `target step text`, with 20 cells.
"""
import io
import math
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import keras
import tf_keras
from keras.src.callbacks import progbar_logger
from keras.src.utils import progbar
from tf_keras.src.utils import generic_utils as keras2

HERE = pathlib.Path(__file__).parent


class Clock:
    now = 0.0

    def time(self):
        return self.now


class Terminal(io.StringIO):
    def isatty(self):
        return True


clock = Clock()
progbar.time = keras2.time = clock


def captured(draw):
    """What `draw` writes to standard output."""
    terminal, sys.stdout = sys.stdout, Terminal()
    try:
        draw()
        return sys.stdout.getvalue()
    finally:
        sys.stdout = terminal


def line_of(message):
    """Without backspaces and spaces that erase the line before, and the newline."""
    return message.rpartition("\r")[2].rstrip("\n").rstrip(" ")


def by_progbar(verbose, target, step, seconds, first_step, finished, values):
    clock.now = 0.0
    bar = progbar.Progbar(None if target < 0 else target, verbose=verbose, interval=0, stateless_metrics=())
    if first_step:
        clock.now = first_step
        captured(lambda: bar.update(1, finalize=False))
    clock.now = seconds
    return captured(lambda: bar.update(step, values, finalize=finished))


def by_logger(verbose, step, seconds, first_step, values):
    """An epoch whose length is known when it is over, as fit() shows it."""
    clock.now = 0.0
    logger = progbar_logger.ProgbarLogger()
    logger.set_params({"verbose": verbose, "epochs": 1, "steps": None})
    logger.on_train_begin()
    logger.on_epoch_begin(0)

    def steps():
        for batch in range(step):
            clock.now = first_step if batch == 0 else seconds
            logger.on_train_batch_end(batch, {})

    captured(steps)
    clock.now = seconds
    return captured(lambda: logger.on_epoch_end(0, dict(values)))


cases = []


def add(target, step, seconds, first_step=0.0, values=(), finished=False, verbose=1):
    values = [(name, float(value)) for name, value in values]
    if target < 0 and finished:
        message = by_logger(verbose, step, seconds, first_step, values)
    else:
        message = by_progbar(verbose, target, step, seconds, first_step, finished, values)
    state = [verbose, target, step, repr(float(seconds)), repr(float(first_step)), int(finished)]
    state += [f"{name}={value!r}" for name, value in values]
    cases.append(" ".join(map(str, state)) + "\n" + line_of(message) + "\n")


def everywhere(target, step, seconds, first_step=0.0, values=()):
    """While it runs, as it ends, and without a terminal."""
    add(target, step, seconds, first_step, values)
    add(target, step, seconds, first_step, values, finished=True)
    add(target, step, seconds, 0.0, values, finished=True, verbose=2)


def epochs():
    for epoch, count in ((0, 10), (9, 10), (99, 1000), (0, 1)):
        logger = progbar_logger.ProgbarLogger()
        logger.set_params({"verbose": 1, "epochs": count, "steps": 1})
        cases.append(f"epoch {epoch} {count}\n" + line_of(captured(lambda: logger.on_epoch_begin(epoch))) + "\n")


USUAL = [("loss", 0.33124), ("accuracy", 0.90117), ("val_loss", 0.2), ("val_accuracy", 0.94)]


def counts():
    for target in (1, 7, 9, 10, 99, 100, 281, 1000, 10**6, 10**9):
        for step in sorted({0, 1, target // 20, target // 3, target - 1, target}):
            add(target, step, 2.25, 0.75 if step > 1 else 0.0, USUAL[:1])
        everywhere(target, target, 2.25, values=USUAL)
    everywhere(281, 10, 2.25, 0.25, USUAL)
    for step in range(22):
        add(21, step, 1.0)
    for step in (0, 1, 12, 9999999, 12345678):
        add(-1, step, 3.6, 0.5 if step > 1 else 0.0, USUAL)
    for step in (1, 2, 12, 345):
        add(-1, step, 3.6, 0.5, USUAL, finished=True)
    add(-1, 12, 3.6, 3.6, USUAL, finished=True, verbose=2)
    everywhere(0, 0, 0.0)
    everywhere(0, 0, 1.5, values=USUAL)


def times():
    seconds = [0, 1e-9, 4.9e-7, 1e-6, 5e-4, 9.994e-4, 9.996e-4, 1e-3, 0.0125, 0.25, 0.4, 0.5, 0.9994, 0.9996, 1, 1.5, 2.5]
    seconds += [3.5, 29.99, 30, 59.4, 59.6, 60, 60.5, 61, 119.999, 3599.9, 3600, 3600.5, 3661, 7199.999, 86399, 86400, 359999]
    seconds += [1e6, 123456789.5, 1e12]
    for second in seconds:
        add(2, 1, second)
        add(-1, 2, second * 1.5, second / 2)
        everywhere(1000, 3, second, second / 4)


def values():
    numbers = [0.0, -0.0, math.nan, math.inf, -math.inf, 1e-3, math.nextafter(1e-3, 1), 9.99999e-4, 0.0010000000474974513]
    numbers += [1e-4, 5e-5, 0.00005, 1e-10, 1.25e-100, 5e-324, 0.00125, 0.12345, 0.5, 0.99995, 0.99994999, 1, 2.00005, 2.71828]
    numbers += [12345.67891, 1e6, 123456789.123456789, 1e15, 1e22, 1.5e100, sys.float_info.max]
    for number in numbers:
        for value in (number, -number):
            add(-1, 10, 1.0, values=[("v", value)])
            add(10, 10, 1.0, values=[("v", value)], finished=True, verbose=2)
    everywhere(281, 140, 2.0, 0.1, USUAL)
    everywhere(281, 140, 2.0, 0.1, [(f"metric_{i}", i / 7) for i in range(20)])
    everywhere(281, 140, 2.0, 0.1, [("précision", 0.5), ("Δ", 0.25), ("精度", 0.125), ("🎯", 0.75)])


def keras2_bars():
    for target in (1, 7, 20, 100, 281, 10000):
        for step in sorted({0, 1, 2, target // 30, target // 3, target // 2, target - 1, target}):
            if step > target:
                continue
            clock.now = 0.0
            bar = keras2.Progbar(target, width=20, interval=0)
            clock.now = 1.0
            text = line_of(captured(lambda: bar.update(step, finalize=False)))
            yield f"{target} {step} {text[: text.index(']') + 1]}\n"


def main():
    for group in (epochs, counts, times, values):
        group()
    path = HERE / "bar.txt"
    path.write_text(f"# keras {keras.__version__}\n" + "".join(cases), encoding="utf-8")
    print(f"{path}: {len(cases)} cases, {path.stat().st_size} bytes")
    (HERE / "bar_keras2.txt").write_text(f"# tf_keras {tf_keras.__version__}\n" + "".join(keras2_bars()), encoding="ascii")


main()

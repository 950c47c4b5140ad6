#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes events.tfrecord beside itself, for tests/unit/test_event_file.c.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install tensorboard==2.21.0
    /tmp/venv/bin/python make_events.py

With --check FOLDER it reads the event file that test_event_file left there (HELIO_TEST_KEEP=FOLDER
tests/unit/test_event_file) with TensorBoard's loader and accumulators, and says whether they find the scalars below.
"""
import math
import pathlib
import struct
import sys

import numpy as np
from tensorboard.backend.event_processing import event_accumulator, event_file_loader, plugin_event_accumulator
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.summary.writer.record_writer import RecordWriter
from tensorboard.util import tensor_util

HERE = pathlib.Path(__file__).resolve().parent

# Tag, step, wall time, value.
SCALARS = [
    ("epoch_loss", 0, 1700000000.25, 0.6931471805599453),
    ("epoch_loss", 1, 1700000001.5, 0.1),
    ("epoch_loss", 2, 1700000002.0, -0.0),
    ("epoch_loss", 127, 1700000003.0, 0.0),
    ("epoch_loss", 128, 1700000004.0, 1e-45),
    ("epoch_loss", 16384, 1700000005.0, 3.4028234663852886e38),
    ("epoch_loss", 2**31, 1700000006.0, 1e39),
    ("epoch_loss", 2**63 - 1, 1700000007.0, -1e300),
    ("negative", -1, 1700000008.0, -2.5),
    ("negative", -(2**63), 1700000009.0, 1e-300),
    ("odd/nan", 1, 1700000010.0, math.nan),
    ("odd/infinity", 1, 1700000011.0, math.inf),
    ("odd/infinity", 2, 1700000012.0, -math.inf),
    ("odd/time", 1, 0.0, 1.0),
    ("odd/time", 2, -1.5, 2.0),
    ("odd/time", 3, 5e-324, 3.0),
    ('"quoted" \\ <b>&amp;</b> \'x\'', 1, 1700000013.0, 4.0),
    ("\x01\x1f\x7f\t\r\n", 1, 1700000014.0, 5.0),
    ("Grüße/日本/🌞", 1, 1700000015.0, 6.0),
    ("long/" + "x" * 295, 1, 1700000016.0, 7.0),
    ("%s%n%d", 1, 1700000017.0, 8.0),
]


def as_float32(value):
    with np.errstate(over="ignore"):
        return np.float32(value).item()


def bits(*values):
    """What is equal only if it is so to the bit, whatever the sign of a NaN."""
    return [struct.pack("<d", abs(v) if math.isnan(v) else v) for v in values]


def make(path):
    with open(path, "wb") as out:
        writer = RecordWriter(out)
        writer.write(event_pb2.Event(wall_time=1700000000.0, file_version="brain.Event:2").SerializeToString())
        for tag, step, wall_time, value in SCALARS:
            summary = summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag=tag, simple_value=value)])
            event = event_pb2.Event(wall_time=wall_time, step=step, summary=summary)
            writer.write(event.SerializeToString(deterministic=True))


def complain_unless(found, expected, what):
    if found != expected:
        sys.exit(f"{what}: {found!r} instead of {expected!r}")


def check_loader(path):
    """In the order of the file, as TensorBoard's own plugins get them."""
    events = list(event_file_loader.EventFileLoader(str(path)).Load())
    complain_unless(events[0].file_version, "brain.Event:2", "the first event's version")
    complain_unless(len(events), 1 + len(SCALARS), "the number of events")
    for event, (tag, step, wall_time, value) in zip(events[1:], SCALARS):
        (found,) = event.summary.value
        complain_unless(found.tag, tag, "a tag")
        complain_unless(found.metadata.plugin_data.plugin_name, "scalars", f"the plugin of {tag!r}")
        complain_unless(found.metadata.data_class, summary_pb2.DATA_CLASS_SCALAR, f"the class of {tag!r}")
        complain_unless(event.step, step, f"a step of {tag!r}")
        number = tensor_util.make_ndarray(found.tensor).item()
        complain_unless(bits(event.wall_time, number), bits(wall_time, as_float32(value)), f"{tag!r}, step {step}")


def scalars_of(accumulator, tag):
    """The plain accumulator knows scalars; the other one, which TensorBoard uses, made tensors of them."""
    if isinstance(accumulator, event_accumulator.EventAccumulator):
        return [(e.step, *bits(e.wall_time, e.value)) for e in accumulator.Scalars(tag)]
    events = accumulator.Tensors(tag)
    return [(e.step, *bits(e.wall_time, tensor_util.make_ndarray(e.tensor_proto).item())) for e in events]


def check_accumulator(module, kind, folder):
    accumulator = module.EventAccumulator(str(folder), size_guidance={kind: 0})
    accumulator.Reload()
    tags = list(dict.fromkeys(tag for tag, *_ in SCALARS))
    complain_unless(sorted(accumulator.Tags()[kind]), sorted(tags), f"tags of {module.__name__}")
    for tag in tags:
        expected = [(step, *bits(time, as_float32(value))) for name, step, time, value in SCALARS if name == tag]
        complain_unless(scalars_of(accumulator, tag), expected, f"{module.__name__}, {tag!r}")
    return len(tags)


def check(folder):
    (path,) = pathlib.Path(folder).glob("events.out.tfevents.*")
    check_loader(path)
    tags = check_accumulator(event_accumulator, event_accumulator.SCALARS, folder)
    check_accumulator(plugin_event_accumulator, plugin_event_accumulator.TENSORS, folder)
    print(f"{len(SCALARS)} scalars with {tags} tags are as they were written")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--check"] and len(sys.argv) == 3:
        check(sys.argv[2])
    else:
        make(HERE / "events.tfrecord")

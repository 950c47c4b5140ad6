# SPDX-License-Identifier: Apache-2.0
"""Keras and the safetensors package read what helio_save_model() wrote: to be run by hand, in make_all.py's environment.

    HELIO_TEST_ARCHITECTURES=FOLDER HELIO_TEST_ONLY=test_architecture.cpu make -C BUILD/tests check
    python check_architectures.py FOLDER

Each model of architectures.safetensors is there in a file of its own. From its JSON Keras makes the model that it had
written itself, and with its weights predicts the same."""

import json
import pathlib
import sys

import golden
import golden_keras  # before Keras

import keras
import numpy as np
import safetensors
import safetensors.numpy

from make_architectures import names


def check_config(name, model, expected):
    """How a model was compiled is not kept, and that a Sequential is frozen Keras forgets."""
    ours, theirs = json.loads(model.to_json()), json.loads(expected)
    theirs["compile_config"] = {}
    theirs["config"]["trainable"] = ours["config"]["trainable"]
    assert ours == theirs, name


def check_model(name, description, tensors, path):
    with safetensors.safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
    weights = safetensors.numpy.load_file(path)
    assert metadata["format"] == "helio" and sorted(weights) == sorted(description["weights"]), name
    model = keras.models.model_from_json(metadata["keras_config"])
    check_config(name, model, description["json"])
    for weight_name, weight in names(model):
        weight.assign(weights[weight_name])
    inputs = [tensors[f"{name}/input/{i}"] for i in range(description["input_count"])]
    outputs = model(inputs if len(inputs) > 1 or name == "listed" else inputs[0], training=False)
    for i, output in enumerate(outputs if isinstance(outputs, list) else [outputs]):
        assert np.array_equal(golden_keras.numbers(output), tensors[f"{name}/output/{i}"]), name


def main():
    folder = pathlib.Path(sys.argv[1])
    cases, tensors = golden.load("architectures")
    checked = [name for name, description in cases.items() if "weights" in description]
    for name in checked:
        check_model(name, cases[name], tensors, folder / f"{name}.safetensors")
    print(f"{len(checked)} models are as Keras wrote them")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Writes configs.json: what get_config() of Keras' layers gives, whole. See make_all.py for how to run it."""

import importlib.metadata
import json

import golden
import golden_keras  # before Keras

from keras import initializers, layers, regularizers


def defaults():
    """Each layer with no more than it needs."""
    yield from (layers.Dense(3), layers.Conv1D(2, 3), layers.Conv2D(2, 3), layers.DepthwiseConv2D(3))
    yield from (layers.MaxPooling1D(), layers.MaxPooling2D(), layers.AveragePooling1D(2), layers.AveragePooling2D(2))
    yield from (layers.GlobalMaxPooling1D(), layers.GlobalMaxPooling2D())
    yield from (layers.GlobalAveragePooling1D(), layers.GlobalAveragePooling2D())
    yield from (layers.Flatten(), layers.Reshape((2, -1)), layers.Permute((2, 1)), layers.Embedding(5, 3))
    yield from (layers.Dropout(0.3), layers.BatchNormalization(), layers.LayerNormalization())
    yield from (layers.Activation("relu"), layers.Softmax(), layers.ReLU())
    yield from (layers.Add(), layers.Multiply(), layers.Average(), layers.Concatenate())
    yield from (layers.ZeroPadding2D(), layers.UpSampling2D(), layers.Rescaling(1 / 255))


def options():
    l1, l2, both = regularizers.L1(0.5), regularizers.L2(0.25), regularizers.L1L2(l1=0.125, l2=2.0)
    yield layers.Dense(7, activation="silu", use_bias=False, kernel_regularizer=both, name="top", trainable=False)
    yield layers.Dense(7, kernel_regularizer=l1, bias_regularizer=l2, dtype="float64")
    yield layers.Conv1D(4, 5, strides=2, padding="causal", groups=2, activation="softmax", dtype="bfloat16")
    yield layers.Conv2D(4, (5, 2), strides=(1, 3), padding="same", dilation_rate=1, activation="leaky_relu")
    yield layers.Conv2D(4, 3, dilation_rate=(2, 3), dtype="float16")
    yield layers.DepthwiseConv2D((3, 1), strides=2, padding="same", depth_multiplier=3, depthwise_regularizer=l2)
    yield layers.MaxPooling2D((2, 3), strides=(1, 2), padding="same")
    yield layers.AveragePooling1D(4, strides=1)
    yield layers.GlobalMaxPooling2D(keepdims=True)
    yield from (layers.Permute((3, 1, 2)), layers.Embedding(5, 3, embeddings_regularizer=l1))
    yield from (layers.Dropout(0.0), layers.Dropout(0.5, seed=0), layers.Dropout(0.5, seed=12345))
    yield layers.BatchNormalization(momentum=0.0, epsilon=0.25, center=False, gamma_regularizer=l2)
    yield layers.LayerNormalization(scale=False, beta_regularizer=l1)
    yield from (layers.BatchNormalization(axis=1), layers.LayerNormalization(axis=2), layers.Softmax(axis=1))
    yield from (layers.LayerNormalization(axis=[1, 2]), layers.Softmax(axis=[1, -1]))
    yield layers.ReLU(max_value=6.0, negative_slope=0.5, threshold=1.0)
    yield layers.ReLU(max_value=0.0)
    yield layers.Concatenate(axis=1)
    yield from (layers.ZeroPadding2D((2, 1)), layers.ZeroPadding2D(((1, 0), (2, 3))), layers.UpSampling2D((3, 1)))
    yield layers.UpSampling2D(2, interpolation="bilinear")
    yield layers.Rescaling(2.0, offset=-1.0)
    names = "linear sigmoid tanh softplus gelu elu softmax log_softmax relu6 selu softsign exponential hard_sigmoid"
    yield from (layers.Activation(name) for name in names.split())


def with_initializers():
    fans = (initializers.GlorotNormal, initializers.HeUniform, initializers.HeNormal, initializers.LecunUniform)
    for kind in fans + (initializers.LecunNormal, initializers.GlorotUniform):
        yield layers.Dense(2, kernel_initializer=kind(seed=5))
    yield layers.Dense(2, kernel_initializer="ones", bias_initializer=initializers.Constant(0.0))
    yield layers.Dense(2, kernel_initializer=initializers.Constant(-1.5))
    yield layers.Dense(2, kernel_initializer=initializers.RandomUniform(0.0, 1.0, seed=0))
    yield layers.Dense(2, kernel_initializer="random_normal", bias_initializer="truncated_normal")
    yield layers.Dense(2, kernel_initializer=initializers.RandomNormal(mean=1.0, stddev=0.5))
    yield layers.Dense(2, kernel_initializer=initializers.TruncatedNormal(mean=0.0, stddev=0.25, seed=9))
    yield layers.Dense(2, kernel_initializer=initializers.RandomNormal(mean=1.0, stddev=0.0))


def main():
    cases = [
        {"class_name": type(layer).__name__, "config": layer.get_config()}
        for group in (defaults, options, with_initializers)
        for layer in group()
    ]
    versions = {"keras": importlib.metadata.version("keras")}
    path = golden.HERE / "configs.json"
    lines = ",\n".join(golden.compact(case) for case in cases)
    path.write_text(f'{{"versions":{golden.compact(versions)},"cases":[\n{lines}\n]}}\n')
    assert len(json.loads(path.read_text())["cases"]) == len(cases)
    print(f"{path.name}: {len(cases)} cases, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()

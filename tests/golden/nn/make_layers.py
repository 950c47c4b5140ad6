# SPDX-License-Identifier: Apache-2.0
"""Writes layers.safetensors: every layer, forward and backward, by Keras. See make_all.py for how to run it."""

import itertools

import golden
from golden import normal, plain
from golden_keras import numbers  # before Keras and TensorFlow

import numpy as np
import tensorflow as tf
from keras import layers, regularizers

writer = golden.Writer("layers")


def weight_value(rng, weight):
    """Random weights; those that start as ones in Keras, or that are variances, stay positive."""
    if weight.name in ("gamma", "moving_variance"):
        return rng.uniform(0.5, 1.7, weight.shape).astype("float32")
    scale = 0.5 if len(weight.shape) < 2 else 1 / np.sqrt(max(1, np.prod(weight.shape[:-1])))
    return normal(rng, *weight.shape, scale=scale)


def run(layer, start, inputs, dy, training):
    """Output, gradients of sum(dy * output) by inputs and weights, state after, and the same for the regularizers."""
    layer.set_weights(start)
    xs = [tf.constant(x) for x in inputs]
    floats = [x for x in xs if x.dtype.is_floating]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(floats)
        y = layer(xs if len(xs) > 1 else xs[0], training=training)
        target = tf.reduce_sum(y * dy(y))
        loss = tf.add_n(layer.losses) if layer.losses else None
    trainable = [weight.value for weight in layer.trainable_weights]
    result = {
        "output": numbers(y),
        "input_gradient": [numbers(g) for g in tape.gradient(target, floats)],
        "weight_gradient": [numbers(g) for g in tape.gradient(target, trainable)],
        "after": layer.get_weights(),
    }
    if loss is not None:
        result["regularization"] = float(loss)
        result["by_weight"] = tape.gradient(loss, trainable)
        result["by_input"] = tape.gradient(loss, floats)
    return result


def smooth(layer, start, inputs, dy, training, first, rng):
    """False if a kink (a relu's corner, two near maxima) lies so close that rounding could decide the gradients."""
    moved = [x if x.dtype.kind == "i" else x + rng.choice([-3e-4, 3e-4], x.shape).astype("float32") for x in inputs]
    second = run(layer, start, moved, dy, training)
    for role in ("input_gradient", "weight_gradient"):
        for a, b in zip(first[role], second[role]):
            if np.abs(a - b).max(initial=0) > 0.02 * max(1, np.abs(a).max(initial=0)):
                return False
    return True


def add(name, layer, *inputs, training=False, ties=False, **extra):
    """`inputs` are shapes, or functions of the generator that give an array."""
    for attempt in itertools.count():
        assert attempt < 40, name
        rng = golden.random(f"{name} {attempt}")
        arrays = [make(rng) if callable(make) else normal(rng, *make) for make in inputs]
        layer.build([x.shape for x in arrays] if len(arrays) > 1 else arrays[0].shape)
        start = [weight_value(rng, weight) for weight in layer.weights]
        kept = {}

        def dy(y):
            if "dy" not in kept:
                kept["dy"] = normal(rng, *y.shape)
            return kept["dy"]

        result = run(layer, start, arrays, dy, training)
        if ties or smooth(layer, start, arrays, dy, training, result, rng):
            break
    names = [weight.name for weight in layer.weights]
    trainable = [weight.name for weight in layer.trainable_weights]
    writer.case(
        name,
        {
            "class_name": type(layer).__name__,
            "config": plain(layer.get_config(), drop=("name",)),
            "training": training,
            "input_count": len(arrays),
            "weights": names,
            "trainable": trainable,
            "regularization": result.get("regularization"),
            **({"ties": True} if ties else {}),
            **extra,
        },
    )
    for i, x in enumerate(arrays):
        writer.tensor(f"{name}/input/{i}", x)
    for weight, value in zip(names, start):
        writer.tensor(f"{name}/weight/{weight}", value)
    writer.tensor(f"{name}/output", result["output"])
    writer.tensor(f"{name}/output_gradient", kept["dy"])
    floats = [i for i, x in enumerate(arrays) if x.dtype.kind == "f"]
    for i, gradient in zip(floats, result["input_gradient"]):
        writer.tensor(f"{name}/input_gradient/{i}", gradient)
    for weight, gradient in zip(trainable, result["weight_gradient"]):
        writer.tensor(f"{name}/weight_gradient/{weight}", gradient)
    for weight, before, after in zip(names, start, result["after"]):
        if not np.array_equal(before, after):
            writer.tensor(f"{name}/after/{weight}", after)
    if "regularization" in result:
        for weight, gradient in zip(trainable, result["by_weight"]):
            if gradient is not None:
                writer.tensor(f"{name}/regularization_gradient/{weight}", numbers(gradient))
        for i, gradient in zip(floats, result["by_input"]):
            if gradient is not None:
                writer.tensor(f"{name}/regularization_input_gradient/{i}", numbers(gradient))


def indices(limit, *shape):
    return lambda rng: rng.integers(0, limit, shape).astype("int32")


def constant(values, dtype="float32"):
    return lambda rng: np.array(values, dtype)


def wide(*shape):
    """Values that reach all pieces of the activations: 6 for relu6, 3 for hard_sigmoid."""
    return lambda rng: normal(rng, *shape, scale=4)


def add_dense():
    add("dense", layers.Dense(4), (3, 5))
    add("dense_no_bias", layers.Dense(7, use_bias=False), (2, 3))
    add("dense_one", layers.Dense(1), (5, 1))
    add("dense_rank3", layers.Dense(4, activation="relu"), (2, 3, 5))
    add("dense_rank4", layers.Dense(3), (2, 1, 3, 5))
    for activation in ("relu", "softmax", "tanh", "gelu", "elu", "leaky_relu", "sigmoid", "selu", "softplus", "silu"):
        add(f"dense_{activation}", layers.Dense(5, activation=activation), (4, 3))
    l1, l2, both = regularizers.L1(0.03), regularizers.L2(0.05), regularizers.L1L2(l1=0.02, l2=0.07)
    add("dense_l1", layers.Dense(4, kernel_regularizer=l1), (3, 5))
    add("dense_l2", layers.Dense(4, kernel_regularizer=l2, bias_regularizer=l1, activation="tanh"), (3, 5))
    add("dense_l1_l2", layers.Dense(4, kernel_regularizer=both), (3, 5))
    add("dense_activity", layers.Dense(4, activation="tanh", activity_regularizer=l2, kernel_regularizer=l1), (3, 5))


def add_conv1d():
    add("conv1d", layers.Conv1D(4, 3), (2, 9, 3))
    add("conv1d_same", layers.Conv1D(4, 3, padding="same", activation="relu"), (2, 7, 3))
    add("conv1d_same_even", layers.Conv1D(3, 4, padding="same"), (2, 7, 2))
    add("conv1d_same_stride", layers.Conv1D(3, 5, strides=3, padding="same"), (3, 11, 2))
    add("conv1d_stride", layers.Conv1D(3, 3, strides=2, activation="tanh"), (2, 10, 3))
    add("conv1d_causal", layers.Conv1D(3, 3, padding="causal"), (2, 8, 2))
    add("conv1d_causal_dilated", layers.Conv1D(3, 3, padding="causal", dilation_rate=2), (2, 8, 2))
    add("conv1d_causal_stride", layers.Conv1D(3, 4, padding="causal", strides=2), (2, 9, 2))
    add("conv1d_dilated", layers.Conv1D(3, 3, dilation_rate=3, use_bias=False), (2, 11, 2))
    add("conv1d_same_dilated", layers.Conv1D(3, 3, dilation_rate=2, padding="same", activation="elu"), (2, 9, 2))
    add("conv1d_groups", layers.Conv1D(6, 3, groups=2), (2, 7, 4))
    add("conv1d_kernel1", layers.Conv1D(5, 1), (3, 4, 3))
    add("conv1d_whole", layers.Conv1D(2, 5), (2, 5, 3))
    l2 = regularizers.L2(0.04)
    add("conv1d_l2", layers.Conv1D(3, 3, kernel_regularizer=l2, bias_regularizer=l2), (2, 6, 2))


def add_conv2d():
    add("conv2d", layers.Conv2D(4, 3), (2, 6, 7, 2))
    add("conv2d_relu", layers.Conv2D(3, (3, 2), activation="relu"), (2, 6, 5, 2))
    add("conv2d_softmax", layers.Conv2D(3, 2, activation="softmax"), (2, 4, 3, 2))
    add("conv2d_same", layers.Conv2D(3, 3, padding="same", activation="gelu"), (2, 5, 4, 2))
    add("conv2d_same_even", layers.Conv2D(3, (2, 4), padding="same"), (2, 5, 6, 2))
    add("conv2d_stride", layers.Conv2D(3, 3, strides=2), (2, 8, 7, 2))
    add("conv2d_stride_pair", layers.Conv2D(3, (2, 3), strides=(3, 1)), (2, 8, 6, 2))
    add("conv2d_same_stride", layers.Conv2D(3, 3, strides=2, padding="same", activation="leaky_relu"), (2, 6, 7, 2))
    add("conv2d_same_stride3", layers.Conv2D(2, (5, 2), strides=(3, 2), padding="same"), (2, 8, 5, 3))
    add("conv2d_dilated", layers.Conv2D(3, 3, dilation_rate=2), (2, 7, 8, 2))
    add("conv2d_dilated_pair", layers.Conv2D(3, (3, 2), dilation_rate=(1, 3), padding="same"), (2, 5, 7, 2))
    add("conv2d_groups", layers.Conv2D(6, 3, groups=3, activation="tanh"), (2, 5, 5, 3))
    add("conv2d_groups_stride", layers.Conv2D(4, 3, groups=2, strides=2, padding="same"), (2, 5, 6, 4))
    add("conv2d_no_bias", layers.Conv2D(3, 3, use_bias=False), (3, 5, 5, 1))
    add("conv2d_kernel1", layers.Conv2D(5, 1), (2, 3, 4, 3))
    add("conv2d_batch1", layers.Conv2D(2, 3), (1, 5, 3, 1))
    add("conv2d_l1_l2", layers.Conv2D(2, 2, kernel_regularizer=regularizers.L1L2(0.01, 0.03)), (2, 4, 4, 2))


def add_depthwise():
    add("depthwise_conv2d", layers.DepthwiseConv2D(3), (2, 6, 5, 3))
    add("depthwise_conv2d_multiplier", layers.DepthwiseConv2D((2, 3), depth_multiplier=2), (2, 5, 6, 3))
    add("depthwise_conv2d_same", layers.DepthwiseConv2D(3, padding="same", activation="relu"), (2, 5, 4, 2))
    stride = layers.DepthwiseConv2D(3, strides=2, padding="same", depth_multiplier=3, activation="elu")
    add("depthwise_conv2d_same_stride", stride, (2, 6, 7, 2))
    add("depthwise_conv2d_stride", layers.DepthwiseConv2D(2, strides=2, use_bias=False), (2, 7, 6, 3))
    add("depthwise_conv2d_dilated", layers.DepthwiseConv2D(3, dilation_rate=2), (2, 7, 6, 2))
    l1 = regularizers.L1(0.02)
    add("depthwise_conv2d_l1", layers.DepthwiseConv2D(2, depthwise_regularizer=l1), (2, 4, 4, 2))


def add_pooling():
    ones, twos = [layers.MaxPooling1D, layers.AveragePooling1D], [layers.MaxPooling2D, layers.AveragePooling2D]
    for kind, one, two in zip(("max", "average"), ones, twos):
        add(f"{kind}_pooling1d", one(2), (2, 7, 3))
        add(f"{kind}_pooling1d_stride", one(3, strides=2), (2, 9, 3))
        add(f"{kind}_pooling1d_same", one(3, padding="same"), (2, 7, 3))
        add(f"{kind}_pooling1d_same_stride1", one(4, strides=1, padding="same"), (2, 6, 2))
        add(f"{kind}_pooling1d_gaps", one(2, strides=3), (2, 9, 2))
        add(f"{kind}_pooling2d", two(2), (2, 6, 7, 3))
        add(f"{kind}_pooling2d_pair", two((3, 2), strides=(1, 2)), (2, 5, 6, 2))
        add(f"{kind}_pooling2d_overlap", two(3, strides=1), (2, 5, 6, 2))
        add(f"{kind}_pooling2d_same", two(2, padding="same"), (2, 5, 7, 2))
        add(f"{kind}_pooling2d_same_stride", two((3, 4), strides=(2, 3), padding="same"), (2, 6, 7, 2))
    tied = [[[1, 2], [1, 2], [0, 2], [3, -1], [3, -1], [3, -2]]]
    add("max_pooling1d_ties", layers.MaxPooling1D(3), constant(tied), ties=True)
    image = np.array([[1, 1, 0, 2], [1, 1, 2, 2], [-1, -1, 5, 4], [-1, -1, 5, 5]]).reshape(1, 4, 4, 1)
    add("max_pooling2d_ties", layers.MaxPooling2D(2), constant(image), ties=True)
    add("max_pooling2d_ties_overlap", layers.MaxPooling2D(3, strides=1), constant(image), ties=True)
    for keepdims in (False, True):
        end = "_keepdims" if keepdims else ""
        add(f"global_max_pooling1d{end}", layers.GlobalMaxPooling1D(keepdims=keepdims), (2, 5, 3))
        add(f"global_average_pooling1d{end}", layers.GlobalAveragePooling1D(keepdims=keepdims), (2, 5, 3))
        add(f"global_max_pooling2d{end}", layers.GlobalMaxPooling2D(keepdims=keepdims), (2, 3, 4, 3))
        add(f"global_average_pooling2d{end}", layers.GlobalAveragePooling2D(keepdims=keepdims), (2, 3, 4, 3))
    tied = [[[1, 2], [3, 2], [3, -1]]]
    add("global_max_pooling1d_ties", layers.GlobalMaxPooling1D(), constant(tied), ties=True)


def add_shapes():
    add("flatten", layers.Flatten(), (2, 3, 4, 2))
    add("flatten_rank2", layers.Flatten(), (3, 5))
    add("flatten_rank1", layers.Flatten(), (4,))
    add("reshape", layers.Reshape((4, 3)), (2, 2, 6))
    add("reshape_unknown", layers.Reshape((3, -1, 2)), (2, 4, 6))
    add("reshape_flat", layers.Reshape((-1,)), (2, 3, 4))
    add("permute", layers.Permute((2, 1)), (2, 3, 4))
    add("permute_rank4", layers.Permute((3, 1, 2)), (2, 3, 4, 5))
    add("zero_padding2d", layers.ZeroPadding2D(), (2, 3, 2, 2))
    add("zero_padding2d_pair", layers.ZeroPadding2D((2, 1)), (2, 3, 2, 2))
    add("zero_padding2d_pairs", layers.ZeroPadding2D(((1, 0), (2, 3))), (2, 3, 2, 2))
    add("up_sampling2d", layers.UpSampling2D(), (2, 3, 2, 2))
    add("up_sampling2d_pair", layers.UpSampling2D((3, 1)), (2, 2, 3, 2))
    add("up_sampling2d_bilinear", layers.UpSampling2D(2, interpolation="bilinear"), (2, 3, 4, 2), optional=True)
    pair = layers.UpSampling2D((3, 2), interpolation="bilinear")
    add("up_sampling2d_bilinear_pair", pair, (2, 2, 3, 2), optional=True)
    add("rescaling", layers.Rescaling(1 / 255), lambda rng: rng.uniform(0, 255, (2, 3, 3, 1)).astype("float32"))
    add("rescaling_offset", layers.Rescaling(1 / 127.5, offset=-1), wide(2, 5))


def add_embedding():
    add("embedding_rank1", layers.Embedding(6, 3), indices(6, 5))
    add("embedding_rank2", layers.Embedding(9, 4), indices(9, 3, 7))
    repeated = constant([[0, 4, 4, 2], [4, 0, 0, 4]], "int32")
    add("embedding_repeated", layers.Embedding(5, 3), repeated)
    add("embedding_l2", layers.Embedding(4, 2, embeddings_regularizer=regularizers.L2(0.1)), indices(4, 2, 3))


def add_normalization():
    shapes = {"rank2": (5, 3), "rank3": (2, 4, 3), "rank4": (2, 3, 4, 2)}
    for training in (False, True):
        end = "training" if training else "inference"
        for rank, shape in shapes.items():
            shifted = lambda rng, shape=shape: normal(rng, *shape, scale=1.5) + np.float32(0.7)
            add(f"batch_normalization_{rank}_{end}", layers.BatchNormalization(), shifted, training=training)
        odd = layers.BatchNormalization(momentum=0.7, epsilon=0.02)
        add(f"batch_normalization_odd_{end}", odd, (2, 3, 3, 2), training=training)
        bare = layers.BatchNormalization(center=False, scale=False)
        add(f"batch_normalization_bare_{end}", bare, (5, 3), training=training)
        add(f"batch_normalization_no_scale_{end}", layers.BatchNormalization(scale=False), (4, 3), training=training)
        add(f"batch_normalization_axis1_{end}", layers.BatchNormalization(axis=1), (3, 4, 5), training=training)
    regularized = layers.BatchNormalization(gamma_regularizer="l2", beta_regularizer="l1", momentum=0.9)
    add("batch_normalization_regularized", regularized, (5, 3), training=True)
    frozen = layers.BatchNormalization()
    frozen.trainable = False
    add("batch_normalization_frozen", frozen, (5, 3), training=True)

    add("layer_normalization", layers.LayerNormalization(), (4, 5))
    add("layer_normalization_rank3", layers.LayerNormalization(), (2, 3, 4))
    add("layer_normalization_rank4", layers.LayerNormalization(epsilon=0.01), (2, 2, 3, 5))
    add("layer_normalization_axis1", layers.LayerNormalization(axis=1), (2, 4, 3))
    add("layer_normalization_axes", layers.LayerNormalization(axis=(1, 2)), (3, 4, 2))
    add("layer_normalization_bare", layers.LayerNormalization(center=False, scale=False), (3, 6))
    add("layer_normalization_no_center", layers.LayerNormalization(center=False), (3, 6))


def add_activations():
    names = "linear relu relu6 leaky_relu elu selu softplus softsign silu swish gelu tanh sigmoid exponential"
    for name in names.split() + ["hard_sigmoid"]:
        make = (3, 11) if name == "exponential" else wide(3, 11)
        add(f"activation_{name}", layers.Activation(name), make)
    extremes = [[-100, -30, -10, -1e-3, 1e-3, 10, 30, 100]]
    for name in ("elu", "selu", "softplus", "softsign", "silu", "gelu", "tanh", "sigmoid"):
        add(f"activation_{name}_extreme", layers.Activation(name), constant(extremes), ties=True)
    for name in ("softmax", "log_softmax"):
        add(f"activation_{name}", layers.Activation(name), wide(3, 7))
        add(f"activation_{name}_rank3", layers.Activation(name), wide(2, 3, 4))
        add(
            f"activation_{name}_extreme",
            layers.Activation(name),
            constant([[90, -90, 0, 88], [-200, -201, -203, -204]]),
        )
    add("softmax", layers.Softmax(), (3, 5))
    add("softmax_axis1", layers.Softmax(axis=1), (2, 3, 4))
    add("softmax_axes", layers.Softmax(axis=(1, 2)), (2, 3, 4), optional=True)
    add("relu", layers.ReLU(), wide(3, 7))
    add("relu_max", layers.ReLU(max_value=2.5), wide(3, 7))
    add("relu_slope", layers.ReLU(negative_slope=0.3), wide(3, 7))
    add("relu_threshold", layers.ReLU(threshold=1.25), wide(3, 7))
    add("relu_all", layers.ReLU(max_value=3.5, negative_slope=0.2, threshold=0.75), wide(3, 9))
    corners = [[-1, -0.0, 0, 1, 1.25, 2.5, 3]]
    add("relu_corners", layers.ReLU(), constant(corners), ties=True)
    add("relu_max_corners", layers.ReLU(max_value=2.5), constant(corners), ties=True)
    add("relu_threshold_corners", layers.ReLU(threshold=1.25), constant(corners), ties=True)
    add("activation_relu6_corners", layers.Activation("relu6"), constant([[-1, 0, 3, 6, 7]]), ties=True)
    add("dropout_inference", layers.Dropout(0.4), (3, 5))
    add("dropout_rate0_training", layers.Dropout(0.0), (3, 5), training=True)


def add_merging():
    for name, layer in (("add", layers.Add), ("multiply", layers.Multiply), ("average", layers.Average)):
        add(f"{name}_two", layer(), (3, 5), (3, 5))
        add(f"{name}_three", layer(), (2, 3, 4), (2, 3, 4), (2, 3, 4))
        add(f"{name}_broadcast", layer(), (2, 3, 4), (2, 1, 4))
        add(f"{name}_broadcast_three", layer(), (2, 3, 1), (2, 1, 4), (2, 3, 4))
        add(f"{name}_broadcast_rank", layer(), (3, 4, 2), (3, 2), optional=True)
    add("concatenate", layers.Concatenate(), (2, 3), (2, 4))
    add("concatenate_three", layers.Concatenate(), (2, 3, 1), (2, 3, 4), (2, 3, 2))
    add("concatenate_axis1", layers.Concatenate(axis=1), (2, 3, 4), (2, 1, 4))
    add("concatenate_axis_negative", layers.Concatenate(axis=-2), (2, 3, 2, 4), (2, 3, 1, 4))


def main():
    add_dense()
    add_conv1d()
    add_conv2d()
    add_depthwise()
    add_pooling()
    add_shapes()
    add_embedding()
    add_normalization()
    add_activations()
    add_merging()
    writer.write()


if __name__ == "__main__":
    main()

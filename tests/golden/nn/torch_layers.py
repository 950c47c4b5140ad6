# SPDX-License-Identifier: Apache-2.0
"""The layers and losses of Keras in terms of PyTorch, from Keras' configurations; None where PyTorch has no such
thing."""

import torch
import torch.nn.functional as F

ACTIVATIONS = {
    "linear": lambda x: x,
    "relu": F.relu,
    "relu6": F.relu6,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "elu": F.elu,
    "selu": F.selu,
    "softplus": F.softplus,
    "softsign": F.softsign,
    "silu": F.silu,
    "swish": F.silu,
    "gelu": F.gelu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "exponential": torch.exp,
    "hard_sigmoid": F.hardsigmoid,
    "softmax": lambda x: F.softmax(x, -1),
    "log_softmax": lambda x: F.log_softmax(x, -1),
}


def channels_first(x):
    return x.movedim(-1, 1)


def channels_last(x):
    return x.movedim(1, -1)


def same_padding(config, key, shape):
    """What padding="same" adds in all in each dimension, which PyTorch must halve."""
    sizes, strides = config[key], config["strides"]
    return [max(0, (-(-n // s) - 1) * s + k - n) for n, k, s in zip(shape[1:], sizes, strides)]


def dense(config, xs, weights):
    y = F.linear(xs[0], weights["kernel"].T, weights.get("bias"))
    return ACTIVATIONS[config["activation"]](y)


def convolution(config, xs, weights, kernel=None, groups=None):
    kernel = weights["kernel"].movedim((-1, -2), (0, 1)) if kernel is None else kernel
    rank = len(config["kernel_size"])
    padding, x = config["padding"], channels_first(xs[0])
    if padding == "same" and max(config["strides"]) > 1:
        return None
    if padding == "causal":
        x, padding = F.pad(x, ((config["kernel_size"][0] - 1) * config["dilation_rate"][0], 0)), "valid"
    function = F.conv1d if rank == 1 else F.conv2d
    y = function(x, kernel, weights.get("bias"), stride=config["strides"], padding=padding,
                 dilation=config["dilation_rate"], groups=groups or config["groups"])  # fmt: skip
    return ACTIVATIONS[config["activation"]](channels_last(y))


def depthwise(config, xs, weights):
    height, width, channels, multiplier = weights["kernel"].shape
    kernel = weights["kernel"].movedim((-2, -1), (0, 1)).reshape(channels * multiplier, 1, height, width)
    return convolution(config, xs, weights, kernel=kernel, groups=channels)


def pooling(function, **arguments):
    def run(config, xs, weights):
        padding = [0]
        if config["padding"] == "same":
            padding = same_padding(config, "pool_size", xs[0].shape)
            if any(p % 2 for p in padding):
                return None
        sizes, strides = tuple(config["pool_size"]), tuple(config["strides"])
        halves = tuple(p // 2 for p in padding) if len(padding) > 1 else padding[0] // 2
        y = function(channels_first(xs[0]), sizes, strides, halves, **arguments)
        return channels_last(y)

    return run


def global_pooling(reduce, rank):
    def run(config, xs, weights):
        return reduce(xs[0], tuple(range(1, rank + 1)), config["keepdims"])

    return run


def batch_normalization(config, xs, weights, training):
    axis = config["axis"] % xs[0].dim()
    x = xs[0].movedim(axis, 1)
    training = training and config["trainable"]
    mean, variance = weights["moving_mean"].detach().clone(), weights["moving_variance"].detach().clone()
    momentum = 1 - config["momentum"]
    y = F.batch_norm(
        x, mean, variance, weights.get("gamma"), weights.get("beta"), training, momentum, config["epsilon"]
    )
    return y.movedim(1, axis), {"moving_mean": mean, "moving_variance": variance}


def layer_normalization(config, xs, weights):
    x = xs[0]
    axes = config["axis"] if isinstance(config["axis"], list) else [config["axis"]]
    axes = [axis % x.dim() for axis in axes]
    last = list(range(x.dim() - len(axes), x.dim()))
    moved = x.movedim(axes, last)
    shape = [x.shape[axis] for axis in axes]
    y = F.layer_norm(moved, shape, weights.get("gamma"), weights.get("beta"), config["epsilon"])
    return y.movedim(last, axes)


def relu(config, xs, weights):
    if config["threshold"]:
        return None
    if config["negative_slope"]:
        return F.leaky_relu(xs[0], config["negative_slope"]) if config["max_value"] is None else None
    return F.relu(xs[0]) if config["max_value"] is None else F.hardtanh(xs[0], 0, config["max_value"])


def reshape(config, xs, weights):
    return xs[0].reshape(xs[0].shape[0], *config["target_shape"])


def permute(config, xs, weights):
    return xs[0].permute(0, *config["dims"])


def zero_padding(config, xs, weights):
    (top, bottom), (left, right) = config["padding"]
    return F.pad(xs[0], (0, 0, left, right, top, bottom))


def up_sampling(config, xs, weights):
    arguments = {} if config["interpolation"] == "nearest" else {"align_corners": False}
    scale = tuple(float(s) for s in config["size"])
    return channels_last(
        F.interpolate(channels_first(xs[0]), scale_factor=scale, mode=config["interpolation"], **arguments)
    )


def merged(function):
    def run(config, xs, weights):
        if len({x.dim() for x in xs}) > 1:
            return None
        return function(xs)

    return run


def softmax(config, xs, weights):
    return F.softmax(xs[0], config["axis"]) if isinstance(config["axis"], int) else None


LAYERS = {
    "Dense": dense,
    "Conv1D": convolution,
    "Conv2D": convolution,
    "DepthwiseConv2D": depthwise,
    "MaxPooling1D": pooling(F.max_pool1d),
    "MaxPooling2D": pooling(F.max_pool2d),
    "AveragePooling1D": pooling(F.avg_pool1d, count_include_pad=False),
    "AveragePooling2D": pooling(F.avg_pool2d, count_include_pad=False),
    "GlobalMaxPooling1D": global_pooling(torch.amax, 1),
    "GlobalMaxPooling2D": global_pooling(torch.amax, 2),
    "GlobalAveragePooling1D": global_pooling(torch.mean, 1),
    "GlobalAveragePooling2D": global_pooling(torch.mean, 2),
    "Flatten": lambda config, xs, weights: xs[0].flatten(1) if xs[0].dim() > 1 else None,
    "Reshape": reshape,
    "Permute": permute,
    "Embedding": lambda config, xs, weights: F.embedding(xs[0], weights["embeddings"]),
    "Dropout": lambda config, xs, weights: F.dropout(xs[0], config["rate"], training=False),
    "LayerNormalization": layer_normalization,
    "Activation": lambda config, xs, weights: ACTIVATIONS[config["activation"]](xs[0]),
    "Softmax": softmax,
    "ReLU": relu,
    "Add": merged(sum),
    "Multiply": merged(lambda xs: torch.stack(torch.broadcast_tensors(*xs)).prod(0)),
    "Average": merged(lambda xs: torch.stack(torch.broadcast_tensors(*xs)).mean(0)),
    "Concatenate": lambda config, xs, weights: torch.cat(xs, config["axis"]),
    "ZeroPadding2D": zero_padding,
    "UpSampling2D": up_sampling,
    "Rescaling": lambda config, xs, weights: xs[0] * config["scale"] + config["offset"],
}


def forward(class_name, config, xs, weights, training):
    """(output or None, state that the call changed)."""
    if class_name == "BatchNormalization":
        return batch_normalization(config, xs, weights, training)
    return LAYERS[class_name](config, xs, weights), {}


def binary(config, y, p, logits):
    y = y * (1 - config["label_smoothing"]) + 0.5 * config["label_smoothing"]
    function = F.binary_cross_entropy_with_logits if logits else F.binary_cross_entropy
    return function(p, y, reduction="none").mean(-1)


def categorical(config, y, p, logits):
    p = p if logits else torch.log(p / p.sum(-1, keepdim=True))  # cross_entropy wants logits; these give p again
    return F.cross_entropy(
        p.movedim(-1, 1), y.movedim(-1, 1), reduction="none", label_smoothing=config["label_smoothing"]
    )


def sparse(config, y, p, logits):
    y = (y.squeeze(-1) if y.dim() == p.dim() else y).long()
    p = p if logits else torch.log(p)
    ignored = -100 if config["ignore_class"] is None else config["ignore_class"]
    return F.cross_entropy(p.movedim(-1, 1), y, reduction="none", ignore_index=ignored)


LOSSES = {
    "MeanSquaredError": lambda config, y, p, logits: F.mse_loss(p, y, reduction="none").mean(-1),
    "MeanAbsoluteError": lambda config, y, p, logits: F.l1_loss(p, y, reduction="none").mean(-1),
    "Huber": lambda config, y, p, logits: F.huber_loss(p, y, reduction="none", delta=config["delta"]).mean(-1),
    "BinaryCrossentropy": binary,
    "CategoricalCrossentropy": categorical,
    "SparseCategoricalCrossentropy": sparse,
    "KLDivergence": lambda config, y, p, logits: F.kl_div(torch.log(p), y, reduction="none").sum(-1),
    "CosineSimilarity": lambda config, y, p, logits: -F.cosine_similarity(p, y, dim=config["axis"]),
}


def loss(class_name, config, y_true, y_pred, sample_weight=None, logits=False):
    """Of Keras' shapes and reductions; the values themselves are PyTorch's."""
    if class_name in ("MeanSquaredError", "MeanAbsoluteError", "Huber", "BinaryCrossentropy"):
        y_true = y_true.reshape(y_pred.shape)
    values = LOSSES[class_name](config, y_true, y_pred, logits)
    count = values.numel()
    if config.get("ignore_class") is not None:
        count = (y_true != config["ignore_class"]).sum()
    if sample_weight is not None:
        values = values * sample_weight.reshape(values.shape)
    if config["reduction"] == "none":
        return values
    if config["reduction"] == "mean_with_sample_weight" and sample_weight is not None:
        kept = sample_weight
        if config.get("ignore_class") is not None:
            kept = sample_weight * (y_true != config["ignore_class"])
        count = kept.sum()
    return values.sum() if config["reduction"] == "sum" else values.sum() / count

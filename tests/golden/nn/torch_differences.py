# SPDX-License-Identifier: Apache-2.0
"""Where Keras and PyTorch differ by definition. Each entry is measured against Keras' numbers in the files of this
folder, and write() fails if one no longer differs."""

import inspect
import warnings

import numpy as np
import torch
import torch.nn.functional as F

import golden


class Files:
    """Keras' numbers: keras["layers", "dense/output"]; and configurations: keras.config("layers", "dense")."""

    def __init__(self):
        self.loaded = {}

    def of(self, category):
        if category not in self.loaded:
            self.loaded[category] = golden.load(category)
        return self.loaded[category]

    def __getitem__(self, key):
        return torch.tensor(self.of(key[0])[1][key[1]])

    def config(self, category, case):
        return self.of(category)[0][case]["config"]


keras = Files()


def default(function, name):
    return inspect.signature(function).parameters[name].default


def optimized(case, make, clip=lambda parameter: None):
    """How far Keras and PyTorch moved the variable, each with its own optimizer and the rates that Keras used."""
    start = keras["optimizers", f"{case}/start/0"]
    parameter = start.clone().requires_grad_()
    optimizer = make([parameter])
    for step, rate in enumerate(keras["optimizers", f"{case}/learning_rate"].tolist()):
        optimizer.param_groups[0]["lr"] = rate
        parameter.grad = keras["optimizers", f"{case}/gradient/{step}/0"]
        clip(parameter)
        optimizer.step()
    return keras["optimizers", f"{case}/after/9/0"] - start, parameter.detach() - start


def moving_variance():
    case = "batch_normalization_rank2_training"
    x, momentum = keras["layers", f"{case}/input/0"], 1 - keras.config("layers", case)["momentum"]
    mean, variance = keras["layers", f"{case}/weight/moving_mean"], keras["layers", f"{case}/weight/moving_variance"]
    F.batch_norm(x, mean, variance, training=True, momentum=momentum)
    np.testing.assert_allclose(mean, keras["layers", f"{case}/after/moving_mean"], rtol=1e-5)
    return keras["layers", f"{case}/after/moving_variance"], variance


def same_padding():
    case = "conv2d_same_stride"
    config = keras.config("layers", case)
    x = keras["layers", f"{case}/input/0"].movedim(-1, 1)
    kernel = keras["layers", f"{case}/weight/kernel"].movedim((-1, -2), (0, 1))
    bias = keras["layers", f"{case}/weight/bias"]
    try:
        F.conv2d(x, kernel, bias, stride=config["strides"], padding="same")
        raise AssertionError("PyTorch now takes padding='same' with strides")
    except RuntimeError:
        pass
    y = F.conv2d(x, kernel, bias, stride=config["strides"], padding=1)
    return keras["layers", f"{case}/output"], F.leaky_relu(y, 0.2).movedim(1, -1)


def average_padding():
    case = "average_pooling1d_same"
    x = keras["layers", f"{case}/input/0"].movedim(-1, 1)
    return keras["layers", f"{case}/output"], F.avg_pool1d(x, 3, 3, 1).movedim(1, -1)


def global_max_ties():
    case = "global_max_pooling1d_ties"
    x = keras["layers", f"{case}/input/0"].requires_grad_()
    y = F.adaptive_max_pool1d(x.movedim(-1, 1), 1).squeeze(-1)
    y.backward(keras["layers", f"{case}/output_gradient"])
    return keras["layers", f"{case}/input_gradient/0"], x.grad


def relu_corner():
    case = "relu_max_corners"
    x = keras["layers", f"{case}/input/0"].requires_grad_()
    F.hardtanh(x, 0, 2.5).backward(keras["layers", f"{case}/output_gradient"])
    return keras["layers", f"{case}/input_gradient/0"], x.grad


def clipped_binary():
    y_true, y_pred = keras["losses", "binary_clipped/y_true"], keras["losses", "binary_clipped/y_pred"]
    return keras["losses", "binary_clipped/value"], F.binary_cross_entropy(y_pred, y_true)


def probabilities_as_logits():
    y_pred, y_true = keras["losses", "sparse_none/y_pred"], keras["losses", "sparse_none/y_true"].long()
    return keras["losses", "sparse_none/value"], F.cross_entropy(y_pred, y_true, reduction="none")


def weighted_mean():
    case = "sparse_sum_over_batch_size_weighted"
    values, weight = keras["losses", "sparse_none/value"], keras["losses", f"{case}/sample_weight"]
    labels = torch.arange(len(values))  # a class for each sample, with logits that give it the sample's loss
    logits = torch.diag(np.log(len(values) - 1) - torch.log(torch.expm1(values)))
    np.testing.assert_allclose(F.cross_entropy(logits, labels, reduction="none"), values, rtol=1e-5)
    mean = F.cross_entropy(logits, labels, weight=weight)
    same = keras["losses", "sparse_mean_with_sample_weight_weighted/value"]
    np.testing.assert_allclose(mean, same, rtol=1e-5)
    return keras["losses", f"{case}/value"], mean


def divergence_mean():
    case = "kl_divergence_sum_over_batch_size"
    logs, y_true = torch.log(keras["losses", f"{case}/y_pred"]), keras["losses", f"{case}/y_true"]
    value = keras["losses", f"{case}/value"]
    np.testing.assert_allclose(F.kl_div(logs, y_true, reduction="batchmean"), value, rtol=1e-5)
    return value, F.kl_div(logs, y_true, reduction="mean")


def cosine_sign():
    y_true, y_pred = keras["losses", "cosine_none/y_true"], keras["losses", "cosine_none/y_pred"]
    return keras["losses", "cosine_none/value"], F.cosine_similarity(y_true, y_pred)


def leaky_relu():
    x = keras["layers", "activation_leaky_relu/input/0"]
    return keras["layers", "activation_leaky_relu/output"], F.leaky_relu(x)


def flatten_order():
    return keras["layers", "flatten/output"], keras["layers", "flatten/input/0"].movedim(-1, 1).flatten(1)


def sparse_adam():
    case = "adam_rows"
    parameter = keras["optimizers", f"{case}/start/0"].requires_grad_()
    config = keras.config("optimizers", case)
    optimizer = torch.optim.SparseAdam([parameter], config["learning_rate"], eps=config["epsilon"])
    for step in range(10):
        indices = keras["optimizers", f"{case}/gradient/{step}/0/indices"].long()
        values = keras["optimizers", f"{case}/gradient/{step}/0/values"]
        parameter.grad = torch.sparse_coo_tensor(indices[None], values, parameter.shape)
        optimizer.step()
    return keras["optimizers", f"{case}/after/9/0"], parameter.detach()


def repeated_rows():
    """That PyTorch gives `after` is checked in make_torch.py."""
    return keras["optimizers", "adam_rows/raw_after/9/0"], keras["optimizers", "adam_rows/after/9/0"]


def piecewise():
    config = keras.config("schedules", "piecewise_one")
    optimizer = torch.optim.SGD([torch.zeros(1)], config["values"][0])
    rate = torch.optim.lr_scheduler.MultiStepLR(
        optimizer, config["boundaries"], config["values"][1] / config["values"][0]
    )
    rates = []
    for _ in range(26):
        rates.append(rate.get_last_lr()[0])
        optimizer.step()
        rate.step()
    return keras["schedules", "piecewise_one/values"][:26], torch.tensor(rates)


def numbers(category, case, names, function, theirs):
    """Defaults, as numbers."""
    config = keras.config(category, case)
    return torch.tensor([float(config[n]) for n in names]), torch.tensor([float(default(function, n)) for n in theirs])


O = torch.optim
NN = torch.nn

# (what, Keras, PyTorch, reason, how it is measured: a function that gives the numbers of both)
DIFFERENCES = [
    (
        "Adam's epsilon",
        "lr·√(1−β₂ᵗ)/(1−β₁ᵗ) · m/(√v + ε)",
        "lr/(1−β₁ᵗ) · m/(√(v/(1−β₂ᵗ)) + ε)",
        "Keras has the form of the paper's section 2, where ε is added before the bias is corrected",
        lambda: optimized("adam_tiny", lambda p: O.Adam(p, 0.02, eps=1e-7)),
    ),
    (
        "AdamW's epsilon",
        "as Adam's",
        "as Adam's",
        "the same formula",
        lambda: optimized("adamw_tiny", lambda p: O.AdamW(p, 0.02, eps=1e-7, weight_decay=0.004)),
    ),
    (
        "Adam's default epsilon",
        "1e-7",
        "1e-8",
        "defaults; AdamW and Nadam too",
        lambda: [1e7 * x for x in numbers("optimizers", "adam", ["epsilon"], O.Adam, ["eps"])],
    ),
    (
        "AdamW's default weight decay",
        "0.004",
        "0.01",
        "defaults",
        lambda: numbers("optimizers", "adamw", ["weight_decay"], O.AdamW, ["weight_decay"]),
    ),
    (
        "weight_decay of SGD, Adam, Nadam, RMSprop, Adagrad",
        "w −= lr·decay·w, as AdamW",
        "adds decay·w to the gradient",
        "Keras' decay is decoupled for every optimizer, PyTorch's is an L2 penalty but for AdamW",
        lambda: optimized("sgd_weight_decay", lambda p: O.SGD(p, 0.1, momentum=0.9, weight_decay=0.05)),
    ),
    (
        "RMSprop's epsilon",
        "g/√(v + ε)",
        "g/(√v + ε)",
        "inside the root in Keras",
        lambda: optimized("rmsprop_tiny", lambda p: O.RMSprop(p, 0.02, alpha=0.9, eps=1e-7)),
    ),
    (
        "RMSprop's defaults",
        "lr 0.001, rho 0.9, ε 1e-7",
        "lr 0.01, alpha 0.99, ε 1e-8",
        "defaults",
        lambda: numbers("optimizers", "rmsprop", ["learning_rate", "rho"], O.RMSprop, ["lr", "alpha"]),
    ),
    (
        "Adagrad's start",
        "accumulator 0.1",
        "accumulator 0",
        "defaults",
        lambda: optimized("adagrad", lambda p: O.Adagrad(p, 0.001, eps=1e-7)),
    ),
    (
        "Adagrad's epsilon",
        "g/√(s + ε), ε 1e-7",
        "g/(√s + ε), ε 1e-10",
        "inside the root in Keras",
        lambda: optimized("adagrad_odd", lambda p: O.Adagrad(p, 0.02, initial_accumulator_value=0.3, eps=0.01)),
    ),
    (
        "Nadam's schedule",
        "μₜ = β₁(1 − 0.5·0.96ᵗ)",
        "μₜ = β₁(1 − 0.5·0.96^(0.004·t))",
        "PyTorch's momentum_decay is 0.004; with 1 it is Keras' (checked in make_torch.py)",
        lambda: optimized("nadam_odd", lambda p: O.NAdam(p, 0.02, (0.8, 0.95), 0.01)),
    ),
    (
        "Nadam's default learning rate",
        "0.001",
        "0.002",
        "defaults",
        lambda: numbers("optimizers", "nadam", ["learning_rate"], O.NAdam, ["lr"]),
    ),
    (
        "momentum when the learning rate changes",
        "m = μm − lr·g; w += m",
        "m = μm + g; w −= lr·m",
        "Keras keeps the rate of each gradient in the momentum; equal while the rate is constant. SGD and RMSprop",
        lambda: optimized("sgd_exponential", lambda p: O.SGD(p, 0.1, momentum=0.9)),
    ),
    (
        "clipping by norm",
        "g·min(1, c/‖g‖)",
        "g·min(1, c/(‖g‖ + 1e-6))",
        "a guard against zero that counts in tiny gradients",
        lambda: optimized("sgd_clipnorm_tiny", O.SGD, lambda p: NN.utils.clip_grad_norm_(p, 5e-6)),
    ),
    (
        "Adam on gradients by rows",
        "all rows move, also those without gradient",
        "SparseAdam moves only rows with a gradient",
        "Keras computes the dense update",
        sparse_adam,
    ),
    (
        "rows that come several times",
        "squares and clips each by itself (raw_after)",
        "adds them up first (after)",
        "Keras 2 added them up, Keras 3 does not",
        repeated_rows,
    ),
    (
        "piecewise constant rates",
        "the new rate begins after the boundary",
        "the new rate begins at the milestone",
        "step ≤ boundary against step < milestone",
        piecewise,
    ),
    (
        "batch normalization's moving variance",
        "divides by n",
        "divides by n − 1",
        "biased against unbiased; the output is the same",
        moving_variance,
    ),
    (
        "batch normalization's defaults",
        "momentum 0.99, ε 1e-3",
        "momentum 0.1 (Keras' 0.9), ε 1e-5",
        "PyTorch's momentum is the weight of the new value",
        lambda: numbers(
            "layers", "batch_normalization_rank2_training", ["momentum", "epsilon"], NN.BatchNorm1d, ["momentum", "eps"]
        ),
    ),
    (
        "layer normalization's default epsilon",
        "1e-3",
        "1e-5",
        "defaults",
        lambda: [1e3 * x for x in numbers("layers", "layer_normalization", ["epsilon"], NN.LayerNorm, ["eps"])],
    ),
    (
        'padding="same" with strides',
        "pads as little as needed, more at the end",
        "refuses; padding k//2 is symmetric",
        "on even sizes the windows lie elsewhere",
        same_padding,
    ),
    (
        "average pooling over padding",
        "padding does not count",
        "counts as zeros (count_include_pad)",
        "defaults",
        average_padding,
    ),
    (
        "gradient of a tied global maximum",
        "shared equally",
        "to the first (adaptive_max_pool)",
        "Keras takes reduce_max; its pooling with windows gives to the first, as PyTorch; torch.amax shares as well",
        global_max_ties,
    ),
    (
        "gradient of ReLU(max_value) at its corner",
        "1 at max_value",
        "0 (hardtanh)",
        "clip_by_value counts its border as inside",
        relu_corner,
    ),
    ("leaky_relu's default slope", "0.2", "0.01", "defaults", leaky_relu),
    (
        "order of Flatten",
        "channels last: height, width, channel",
        "channels first: channel, height, width",
        "layout of images",
        flatten_order,
    ),
    (
        "binary cross entropy at 0 and 1",
        "clips probabilities to [1e-7, 1 − 1e-7]",
        "clips logarithms at −100",
        "another guard",
        clipped_binary,
    ),
    (
        "what cross entropy takes",
        "probabilities, unless from_logits",
        "logits always",
        "default",
        probabilities_as_logits,
    ),
    (
        "mean of weighted losses",
        "sum_over_batch_size divides by the count",
        "weight= divides by the sum of weights",
        "Keras' mean_with_sample_weight is PyTorch's (checked)",
        weighted_mean,
    ),
    (
        "mean of the KL divergence",
        "over the samples",
        '"mean": over all elements',
        "PyTorch's \"batchmean\" is Keras' (checked)",
        divergence_mean,
    ),
    (
        "cosine similarity as a loss",
        "negative: −1 is equal",
        "positive: 1 is equal",
        "a loss is minimized",
        cosine_sign,
    ),
]


def distance(what, measure):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs = [np.asarray(x, "float64") for x in measure()]
    assert np.isfinite(ours).all() and np.isfinite(theirs).all(), what
    greatest = np.abs(ours - theirs).max()
    assert greatest > 1e-3 * np.abs(ours).max(), f"{what}: Keras and PyTorch agree now"
    return greatest


def write():
    lines = [
        "<!-- SPDX-License-Identifier: Apache-2.0 -->",
        "# Where Keras and PyTorch differ",
        "",
        "Made by make_torch.py, which measures each line and fails if it no longer holds. Our library follows Keras.",
        "The last column is the greatest difference in the case that was measured. What torch.safetensors lists agrees to",
        "1e-5 (ten training steps to 1e-4), gelu and hard_sigmoid among it; the optimizers do after epsilon was moved",
        "to Keras' place.",
        "",
        "| what | Keras | PyTorch | reason | differs by |",
        "|---|---|---|---|---|",
    ]
    for what, ours, theirs, reason, measure in DIFFERENCES:
        lines.append(f"| {what} | {ours} | {theirs} | {reason} | {distance(what, measure):.2g} |")
        print(f"{what}: Keras {ours}; PyTorch {theirs} ({reason})")
    path = golden.HERE / "differences.md"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{path.name}: {len(DIFFERENCES)} differences")

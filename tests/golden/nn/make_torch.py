# SPDX-License-Identifier: Apache-2.0
"""Writes torch.safetensors: what PyTorch computes for the cases of the other files where the definition is the same,
and differences.md: where it is not. It reads the other files, so it runs last. See make_all.py for how to run it.

Each agreement and each difference is checked; the script fails if one no longer holds."""

import warnings

import numpy as np
import torch

import golden
import torch_differences
import torch_layers

torch.set_num_threads(1)
warnings.filterwarnings("ignore", "Using padding='same' with even kernel lengths")
torch.use_deterministic_algorithms(True)
writer = golden.Writer("torch")
used = {}  # of each category, the cases where PyTorch agrees


def tensor(value, gradient=True):
    if value is None:
        return None
    result = torch.tensor(value)
    return result.requires_grad_(gradient and result.is_floating_point())


def agree(category, case, role, value, expected, tolerance=1e-5):
    """Asserts that PyTorch's value is Keras', and keeps it."""
    value = value.detach().numpy()
    name = f"{category}/{case}/{role}"
    np.testing.assert_allclose(value, expected, rtol=tolerance, atol=tolerance, err_msg=name)
    writer.tensor(name, value.astype("float32"))
    if case not in used.setdefault(category, []):
        used[category].append(case)


def add_layers():
    cases, tensors = golden.load("layers")
    for case, description in cases.items():
        xs = [tensor(tensors[f"{case}/input/{i}"]) for i in range(description["input_count"])]
        weights = {name: tensor(tensors[f"{case}/weight/{name}"]) for name in description["weights"]}
        class_name, config = description["class_name"], description["config"]
        if case == "relu_max_corners":
            continue  # see differences.md
        y, state = torch_layers.forward(class_name, config, xs, weights, description["training"])
        if y is None:
            continue
        y.backward(tensor(tensors[f"{case}/output_gradient"], False))
        agree("layers", case, "output", y, tensors[f"{case}/output"])
        for i, x in enumerate(xs):
            if x.is_floating_point():
                agree("layers", case, f"input_gradient/{i}", x.grad, tensors[f"{case}/input_gradient/{i}"])
        for name in description["trainable"]:
            agree(
                "layers", case, f"weight_gradient/{name}", weights[name].grad, tensors[f"{case}/weight_gradient/{name}"]
            )
        if f"{case}/after/moving_mean" in tensors:  # the variance is another: see differences.md
            agree("layers", case, "after/moving_mean", state["moving_mean"], tensors[f"{case}/after/moving_mean"])


def add_losses():
    cases, tensors = golden.load("losses")
    for case, description in cases.items():
        kind, config = description["kind"], description["config"]
        if kind.endswith("_crossed") or case.endswith(("_clipped", "_zeros")):
            continue  # Keras' own; and what it does at the border of log
        y_true = tensor(tensors[f"{case}/y_true"], False)
        weight = tensor(tensors.get(f"{case}/sample_weight"), False)
        x = tensor(tensors[f"{case}/y_pred" if kind == "direct" else f"{case}/logits"])
        y_pred = torch_layers.ACTIVATIONS[kind.split("_")[0]](x) if kind.endswith("_twice") else x
        logits = kind != "direct" or config.get("from_logits", False)
        value = torch_layers.loss(description["class_name"], config, y_true, y_pred, weight, logits)
        value.sum().backward()
        agree("losses", case, "value", value.reshape(tensors[f"{case}/value"].shape), tensors[f"{case}/value"])
        agree("losses", case, "gradient", x.grad, tensors[f"{case}/gradient"])


def optimizer_for(class_name, config, parameters):
    """None where the definitions differ."""
    rate, epsilon = config["learning_rate"], config.get("epsilon")
    decay = config["weight_decay"]
    if isinstance(rate, dict) or (decay and class_name != "AdamW"):
        return None
    if class_name == "SGD":
        return torch.optim.SGD(parameters, rate, config["momentum"], nesterov=config["nesterov"])
    if class_name == "RMSprop":
        optimizer = torch.optim.RMSprop(parameters, rate, config["rho"], 0, 0, config["momentum"], config["centered"])
        for parameter in parameters:
            slots = ("square_avg", "momentum_buffer", "grad_avg")
            optimizer.state[parameter] = {slot: torch.zeros_like(parameter) for slot in slots} | {
                "step": torch.tensor(0.0)
            }
        return optimizer
    if class_name == "Adagrad":
        start = config["initial_accumulator_value"] + epsilon
        return torch.optim.Adagrad(parameters, rate, initial_accumulator_value=start, eps=0)
    betas = config["beta_1"], config["beta_2"]
    if class_name == "Adam":
        return torch.optim.Adam(parameters, rate, betas, epsilon, amsgrad=config["amsgrad"])
    if class_name == "AdamW":
        return torch.optim.AdamW(parameters, rate, betas, epsilon, decay)
    assert class_name == "Nadam"
    return torch.optim.NAdam(parameters, rate, betas, epsilon, momentum_decay=1.0)  # makes it Keras' 0.96 ** step


def clip(config, parameters):
    if config["clipvalue"]:
        torch.nn.utils.clip_grad_value_(parameters, config["clipvalue"])
    for parameter in parameters if config["clipnorm"] else []:
        torch.nn.utils.clip_grad_norm_([parameter], config["clipnorm"])
    if config["global_clipnorm"]:
        torch.nn.utils.clip_grad_norm_(parameters, config["global_clipnorm"])


def gradient_of(tensors, case, step, i, rows, shape):
    if not rows:
        return tensor(tensors[f"{case}/gradient/{step}/{i}"], False)
    indices = tensor(tensors[f"{case}/gradient/{step}/{i}/indices"], False)
    values = tensor(tensors[f"{case}/gradient/{step}/{i}/values"], False)
    return torch.zeros(shape).index_add_(0, indices, values)


def shift(optimizer, amount):
    for parameter in optimizer.param_groups[0]["params"]:
        optimizer.state[parameter]["square_avg"] += amount


def step_with_epsilon_moved(class_name, config, optimizer, update):
    """One step, with epsilon where Keras has it: see differences.md. Adagrad's is part of its start."""
    epsilon = config.get("epsilon")
    if class_name in ("Adam", "AdamW"):
        optimizer.param_groups[0]["eps"] = epsilon / (1 - config["beta_2"] ** update) ** 0.5
    if class_name == "RMSprop":
        shift(optimizer, epsilon / config["rho"])
    optimizer.step()
    if class_name == "RMSprop":
        shift(optimizer, -epsilon)


def optimize(class_name, config, parameters, steps, gradients):
    """Yields after each step."""
    optimizer = optimizer_for(class_name, config, parameters)
    accumulate = config["gradient_accumulation_steps"] or 1
    sums = [torch.zeros_like(p) for p in parameters]
    for step in range(steps):
        sums = [total + gradient for total, gradient in zip(sums, gradients(step))]
        if (step + 1) % accumulate == 0:
            for parameter, total in zip(parameters, sums):
                parameter.grad = total / accumulate
            clip(config, parameters)
            step_with_epsilon_moved(class_name, config, optimizer, (step + 1) // accumulate)
            sums = [torch.zeros_like(p) for p in parameters]
        yield step


def add_optimizers():
    cases, tensors = golden.load("optimizers")
    for case, description in cases.items():
        config, last = description["config"], description["steps"] - 1
        parameters = [tensor(tensors[f"{case}/start/{i}"]) for i in range(len(description["variables"]))]
        if case == "sgd_clipnorm_tiny" or optimizer_for(description["class_name"], config, parameters) is None:
            continue
        rows = description["rows"]
        gradients = lambda step: [gradient_of(tensors, case, step, i, rows, p.shape) for i, p in enumerate(parameters)]
        for step in optimize(description["class_name"], config, parameters, description["steps"], gradients):
            for i, parameter in enumerate(parameters):
                expected = tensors[f"{case}/after/{step}/{i}"]
                np.testing.assert_allclose(parameter.detach(), expected, rtol=1e-5, atol=1e-5, err_msg=f"{case} {step}")
        for i, parameter in enumerate(parameters):
            agree("optimizers", case, f"after/{last}/{i}", parameter, tensors[f"{case}/after/{last}/{i}"])


def model_output(layers, x, weights, state):
    """Of a sequential model, up to the logits."""
    for layer in layers:
        name, config = layer["config"]["name"], dict(layer["config"])
        if config.get("activation") == "softmax":
            config["activation"] = "linear"
        own = {key.split("/")[1]: value for key, value in (weights | state).items() if key.split("/")[0] == name}
        x, changed = torch_layers.forward(layer["class_name"], config, [x], own, True)
        state |= {f"{name}/{key}": value for key, value in changed.items()}
    return x


def regularization(layers, weights):
    total = 0
    for layer in layers:
        for kind in ("kernel", "bias"):
            regularizer = layer["config"].get(f"{kind}_regularizer")
            if regularizer:
                weight = weights[f"{layer['config']['name']}/{kind}"]
                total += regularizer["config"].get("l1", 0) * weight.abs().sum()
                total += regularizer["config"].get("l2", 0) * weight.square().sum()
    return total


def add_training():
    cases, tensors = golden.load("training")
    for case, description in cases.items():
        if description["input_count"] > 1:
            continue
        layers = [layer for layer in description["config"]["layers"] if layer["class_name"] != "InputLayer"]
        weights = {name: tensor(tensors[f"{case}/start/{name}"]) for name in description["trainable"]}
        state = {
            name: tensor(tensors[f"{case}/start/{name}"], False)
            for name in description["weights"]
            if name not in weights
        }
        (loss,) = description["losses"]
        losses = []

        def gradients(step):
            batch = f"{case}/batch/{step % description['batches']}"
            for weight in weights.values():
                weight.grad = None
            y = model_output(layers, tensor(tensors[f"{batch}/input/0"], False), weights, state)
            y_true = tensor(tensors[f"{batch}/y_true/0"], False)
            sample_weight = tensor(tensors.get(f"{batch}/sample_weight"), False)
            value = torch_layers.loss(loss["class_name"], loss["config"], y_true, y, sample_weight, logits=True)
            value = value + regularization(layers, weights)
            value.backward()
            losses.append(value.detach())
            return [weight.grad.clone() for weight in weights.values()]

        optimizer, parameters = description["optimizer"], list(weights.values())
        for _ in optimize(optimizer["class_name"], optimizer["config"], parameters, description["steps"], gradients):
            pass
        agree("training", case, "loss", torch.stack(losses), tensors[f"{case}/loss"], 1e-4)
        for name in description["weights"]:
            if not name.endswith("moving_variance"):
                value = weights.get(name, state.get(name))
                agree("training", case, f"end/{name}", value, tensors[f"{case}/end/{name}"], 1e-4)


def main():
    add_layers()
    add_losses()
    add_optimizers()
    add_training()
    for category, cases in used.items():
        writer.case(category, cases)
        print(f"{category}: {len(cases)} of {len(golden.load(category)[0])} cases were compared and agree")
    writer.write()
    torch_differences.write()


if __name__ == "__main__":
    main()

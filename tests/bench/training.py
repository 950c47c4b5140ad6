#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares `helio bench training` with TensorFlow and PyTorch on this machine's CPU, by turns.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install tensorflow torch
    /tmp/venv/bin/python tests/bench/training.py [--rounds N] [--seconds S] [--only MODEL[-BATCH],…] [--json] [--check]

The networks are those of the recipes mnist and reuters and a plain one of dense layers; the data are made up, of the true
shapes, and lie in memory. All have the same number of threads, one for each core unless --threads says otherwise. Each
framework runs in a process of its own that stays, so that neither starting nor compiling is measured; while one takes
steps the others wait. TensorFlow and PyTorch may do it in several ways, each of which their users know: before the first
round all of them are tried, and the fastest one is what counts.

A round measures each once, in an order that turns with every round. Printed are medians of steps a second and the median,
the least and the greatest over rounds of the ratio (helio ÷ other). With --check the exit status is 1 if a median ratio
is below 1. It is 77 if neither TensorFlow nor PyTorch is installed.
"""
import argparse
import contextlib
import importlib.util
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

CASES = [("mnist", 32), ("mnist", 256), ("mnist", 4096), ("reuters", 32), ("mlp", 128)]
WEIGHTS = {"mnist": 12810, "reuters": 332856, "mlp": 669706}
SHAPES = {"mnist": (28, 28, 1), "reuters": (300,), "mlp": (784,)}
CLASSES = {"mnist": 10, "reuters": 46, "mlp": 10}
WORDS = 30982
BATCHES = 4  # that there are; they are taken again and again
PEERS = {"tensorflow": "TensorFlow", "torch": "PyTorch"}
PAUSE = 0.3  # seconds after which idle threads of all have gone to sleep


def arguments():
    default = pathlib.Path(__file__).resolve().parents[2] / "build" / "tools" / "helio"
    parser = argparse.ArgumentParser(description="helio bench training against TensorFlow and PyTorch")
    parser.add_argument("--helio", default=str(default), help="the program (%(default)s)")
    parser.add_argument("--rounds", type=int, default=7, help="how often each is measured (%(default)s)")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each is, about (%(default)s)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of each (%(default)s)")
    parser.add_argument("--only", default="", help="cases such as mnist,reuters-32 (all)")
    parser.add_argument("--peers", default=",".join(PEERS), help="whom to compare with (%(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--check", action="store_true", help="fail if a median ratio is below 1")
    parser.add_argument("--worker", nargs=2, metavar=("PEER", "CASE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = set(options.peers.split(",")) - set(PEERS)
    if unknown:
        parser.error(f"--peers: {', '.join(sorted(unknown))} is unknown; there is {', '.join(PEERS)}")
    if options.rounds < 1 or options.seconds <= 0 or options.threads < 1:
        parser.error("--rounds, --seconds and --threads must be positive")
    return options


def chosen_cases(options):
    wanted = [word for word in options.only.split(",") if word]
    names = {f"{model}-{batch}" for model, batch in CASES} | {model for model, _ in CASES}
    for word in wanted:
        if word not in names:
            sys.exit(f"--only: there is no {word}, but {', '.join(sorted(names))}")
    return [(m, b) for m, b in CASES if not wanted or m in wanted or f"{m}-{b}" in wanted]


# ---- a process that takes steps when it is told to -----------------------------------------------------------------


class Runner:
    """Gets a number of steps on a line and answers with a line of JSON, {"steps": N, "seconds": S}."""

    def __init__(self, name, command, threads):
        self.name = name
        environment = dict(os.environ, HELIO_NUM_THREADS=str(threads), OMP_NUM_THREADS=str(threads),
                           CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
        self.messages = tempfile.TemporaryFile("w+")  # of no interest as long as all goes well
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.messages,
                                        text=True, env=environment)
        self.steps = 0

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            status = self.process.wait()
            self.messages.seek(0)
            sys.exit(f"{self.messages.read()[-4000:]}\n{self.name} has ended with status {status}")
        return json.loads(line)

    def take(self, steps):
        """Steps a second."""
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        answer = self.read()
        return answer["steps"] / answer["seconds"]

    def calibrate(self, seconds):
        """How many steps take so long; the first are not counted."""
        self.take(2)
        rate = self.take(1)
        if rate * seconds > 10:
            rate = self.take(int(rate * seconds / 4))
        self.steps = max(2, round(rate * seconds))

    def measure(self):
        rate = self.take(self.steps)
        time.sleep(PAUSE)
        return rate

    def end(self):
        self.process.terminate()
        self.process.communicate()
        self.messages.close()


def start(options, name, model, batch):
    if name == "helio":
        command = [options.helio, "bench", "training", "--model", model, "--batch", str(batch), "--by-line"]
    else:
        command = [sys.executable, __file__, "--threads", str(options.threads), "--seconds", str(options.seconds),
                   "--worker", name, f"{model}-{batch}"]
    return Runner(name, command, options.threads)


def get_ready(runner, model, seconds):
    """Peers tell first what they have chosen."""
    if runner.name in PEERS:
        runner.about = runner.read()
        assert runner.about["weights"] == WEIGHTS[model], f"another {model}: {runner.about}"
        for way, reason in runner.about["failed"].items():
            print(f"  not measured: {way}: {reason}", file=sys.stderr)
    runner.calibrate(seconds)


# ---- the other side: ways to take steps, of which the fastest is kept -----------------------------------------------


def made_up(np, model, batch):
    random = np.random.default_rng(1)
    shape = (BATCHES * batch, *SHAPES[model])
    if model == "reuters":
        x = random.integers(0, WORDS, shape).astype(np.int32)
    else:
        x = random.random(shape, np.float32)
    return x, random.integers(0, CLASSES[model], BATCHES * batch).astype(np.int32)


def rate_of(run, steps):
    begin = time.perf_counter()
    run(steps)
    return steps / (time.perf_counter() - begin)


def steps_for(run, seconds):
    """Steps that take about so long; asked twice, because beginning takes its time too."""
    steps = 1
    for _ in range(2):
        steps = max(1, int(rate_of(run, steps) * seconds))
    return steps


def fastest(ways, seconds):
    """The name of the fastest and itself; what all have reached; why others do not work here."""
    rates, failed = {}, {}
    for name, make in ways.items():
        try:
            run = make()
            run(2)  # compiles; some do so again for what the first step has left
            steps = steps_for(run, seconds / 4)
            rates[name] = max(rate_of(run, steps) for _ in range(3)), run
        except Exception as error:  # whatever it is, this way cannot be taken
            failed[name] = f"{type(error).__name__}: {str(error)[:200]}"
    if not rates:
        sys.exit(f"no way of training works: {failed}")
    best = max(rates, key=lambda name: rates[name][0])
    return best, rates[best][1], {name: rate for name, (rate, _) in rates.items()}, failed


def work(options):
    peer, case = options.worker
    model, batch = case.rsplit("-", 1)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever these frameworks print is no answer
    ways, version, weights = {"tensorflow": tensorflow_ways, "torch": torch_ways}[peer](model, int(batch), options.threads)
    way, run, tried, failed = fastest(ways, options.seconds)
    about = {"version": version, "weights": weights, "way": way, "tried": tried, "failed": failed}
    print(json.dumps(about), file=answers, flush=True)
    for line in sys.stdin:
        steps = int(line)
        begin = time.perf_counter()
        run(steps)
        print(json.dumps({"steps": steps, "seconds": time.perf_counter() - begin}), file=answers, flush=True)


# ---- TensorFlow ----


def keras_model(keras, model):
    layers = keras.layers
    stacks = {
        "mnist": lambda: [
            layers.Conv2D(16, 3, activation="relu"), layers.MaxPooling2D(), layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(), layers.Flatten(), layers.Dense(10, activation="softmax")],
        "reuters": lambda: [
            layers.Embedding(WORDS, 7), layers.Conv1D(64, 5, activation="relu"), layers.MaxPooling1D(2),
            layers.Conv1D(32, 3, activation="relu"), layers.MaxPooling1D(2), layers.Flatten(),
            layers.Dense(46, activation="softmax")],
        "mlp": lambda: [
            layers.Dense(512, activation="relu"), layers.Dense(512, activation="relu"),
            layers.Dense(10, activation="softmax")],
    }
    return keras.Sequential([keras.Input(SHAPES[model], dtype="int32" if model == "reuters" else "float32")] + stacks[model]())


def tensorflow_ways(model, batch, threads):
    import numpy as np
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    keras = tf.keras
    data = tf.data.Dataset.from_tensor_slices(made_up(np, model, batch)).batch(batch, drop_remainder=True)
    data = data.cache().repeat().prefetch(tf.data.AUTOTUNE)

    def optimizer():
        return keras.optimizers.Nadam() if model == "reuters" else keras.optimizers.Adam()

    def fit(jit):
        network = keras_model(keras, model)
        network.compile(optimizer(), "sparse_categorical_crossentropy", jit_compile=jit)
        return lambda steps: network.fit(data, steps_per_epoch=steps, verbose=0)

    def loop(jit):
        network, rule, loss = keras_model(keras, model), optimizer(), keras.losses.SparseCategoricalCrossentropy()
        batches = iter(data)

        @tf.function(jit_compile=jit)
        def step(x, y):
            with tf.GradientTape() as tape:
                value = loss(y, network(x, training=True))
            variables = network.trainable_variables
            rule.apply_gradients(zip(tape.gradient(value, variables), variables))
            return value

        def run(steps):
            for _ in range(steps):
                value = step(*next(batches))
            value.numpy()

        rule.build(network.trainable_variables)
        return run

    ways = {
        "fit": lambda: fit(False), "fit, jit_compile": lambda: fit(True),
        "tf.function": lambda: loop(False), "tf.function, jit_compile": lambda: loop(True),
    }
    return ways, tf.__version__, keras_model(keras, model).count_params()


# ---- PyTorch ----


def torch_model(torch, model):
    nn = torch.nn

    class ChannelsFirst(nn.Module):
        def forward(self, x):
            return x.transpose(1, 2)

    stacks = {
        "mnist": lambda: [
            nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(800, 10)],
        "reuters": lambda: [
            nn.Embedding(WORDS, 7), ChannelsFirst(), nn.Conv1d(7, 64, 5), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(64, 32, 3), nn.ReLU(), nn.MaxPool1d(2), nn.Flatten(), nn.Linear(2336, 46)],
        "mlp": lambda: [nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)],
    }
    return nn.Sequential(*stacks[model]())


def torch_ways(model, batch, threads):
    import numpy as np
    import torch
    torch.set_num_threads(threads)
    x, y = made_up(np, model, batch)
    x = torch.from_numpy(x.transpose(0, 3, 1, 2).copy() if model == "mnist" else x)
    batches = list(zip(x.split(batch), torch.from_numpy(y).long().split(batch)))
    # Adam has all of its update in one kernel, Nadam one for each of its steps.
    together = {"foreach": True} if model == "reuters" else {"fused": True}

    def loop(compiled, channels_last=False, **options):
        network, images = torch_model(torch, model), batches
        if channels_last:
            network = network.to(memory_format=torch.channels_last)
            images = [(x.contiguous(memory_format=torch.channels_last), y) for x, y in batches]
        rule = (torch.optim.NAdam if model == "reuters" else torch.optim.Adam)(network.parameters(), **options)
        call = torch.compile(network) if compiled else network

        def run(steps):
            for i in range(steps):
                x, y = images[i % BATCHES]
                rule.zero_grad()
                loss = torch.nn.functional.cross_entropy(call(x), y)
                loss.backward()
                rule.step()
            loss.item()

        return run

    word = next(iter(together))
    ways = {
        "eager": lambda: loop(False), f"eager, {word}": lambda: loop(False, **together),
        f"compile, {word}": lambda: loop(True, **together),
    }
    if model == "mnist":
        ways[f"eager, channels_last, {word}"] = lambda: loop(False, True, **together)
        ways[f"compile, channels_last, {word}"] = lambda: loop(True, True, **together)
    return ways, torch.__version__, sum(p.numel() for p in torch_model(torch, model).parameters())


# ---- rounds --------------------------------------------------------------------------------------------------------


def compare(options, peers, model, batch):
    with contextlib.ExitStack() as stack:
        runners = {}
        for name in ["helio", *peers]:
            print(f"{model}, batches of {batch}: {name} gets ready", file=sys.stderr)
            runners[name] = start(options, name, model, batch)
            stack.callback(runners[name].end)
            get_ready(runners[name], model, options.seconds)
        time.sleep(PAUSE)
        rates = {name: [] for name in runners}
        for i in range(options.rounds):
            turn = i % len(runners)
            names = list(runners)
            for name in names[turn:] + names[:turn]:
                rates[name].append(runners[name].measure())
            print(f"  round {i + 1}: " + ", ".join(f"{n} {r[-1]:.4g} steps/s" for n, r in rates.items()), file=sys.stderr)
        return describe(model, batch, runners, rates)


def describe(model, batch, runners, rates):
    result = {"model": model, "batch": batch, "steps_per_second": statistics.median(rates["helio"]), "peers": {}}
    for name in list(rates)[1:]:
        ratios = [ours / theirs for ours, theirs in zip(rates["helio"], rates[name])]
        about = runners[name].about
        result["peers"][name] = {
            "version": about["version"], "way": about["way"], "tried": about["tried"],
            "steps_per_second": statistics.median(rates[name]), "ratio": statistics.median(ratios),
            "least": min(ratios), "greatest": max(ratios)}
    return result


def show(results, options):
    print(f"Steps a second, {options.threads} threads each, medians of {options.rounds} rounds; ratio = helio ÷ other\n")
    head = ["model", "batch", "helio", "other", "steps/s", "ratio", "least to greatest", "its fastest way"]
    rows = [head]
    for case in results:
        for name, peer in case["peers"].items():
            rows.append([case["model"], str(case["batch"]), f"{case['steps_per_second']:.4g}",
                         f"{PEERS[name]} {peer['version']}", f"{peer['steps_per_second']:.4g}", f"{peer['ratio']:.2f}",
                         f"{peer['least']:.2f} to {peer['greatest']:.2f}", peer["way"]])
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def main():
    options = arguments()
    if options.worker:
        return work(options)
    peers = [name for name in options.peers.split(",") if importlib.util.find_spec(name)]
    for name in set(options.peers.split(",")) - set(peers):
        print(f"{PEERS[name]} is not installed for {sys.executable}", file=sys.stderr)
    if not peers:
        return 77
    if os.getloadavg()[0] > 0.5:
        print(f"the machine is busy (load {os.getloadavg()[0]:.1f}): what follows is worth little", file=sys.stderr)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # ends the processes that were started
    results = [compare(options, peers, model, batch) for model, batch in chosen_cases(options)]
    if options.json:
        print(json.dumps({"threads": options.threads, "rounds": options.rounds, "cases": results}, indent=2))
    else:
        show(results, options)
    slow = [(c["model"], c["batch"], n) for c in results for n, p in c["peers"].items() if p["ratio"] < 1]
    for model, batch, name in slow:
        print(f"slower than {PEERS[name]}: {model}, batches of {batch}", file=sys.stderr)
    return 1 if options.check and slow else 0


if __name__ == "__main__":
    sys.exit(main())

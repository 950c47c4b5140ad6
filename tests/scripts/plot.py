#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws histories and reads the pictures.

    plot.py DRAW_PLOT FOLDER

Reading knows nothing of how the pictures are laid out: two numbers beside an axis, and where they stand, tell what any
other place on it means. So every point of a curve must give back the value that it was drawn from.
"""
import math
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

SVG = "{http://www.w3.org/2000/svg}"
NAN, INF = math.nan, math.inf
TEXT_DROP = 4  # a number beside a tick stands so much lower than it
failures = []


def check(condition, what):
    if not condition:
        failures.append(what)
        print("FAILED:", what)


# ---- reading ----


class Scale:
    """What places on an axis mean, by the texts beside it: [(place, text)]."""

    def __init__(self, ticks, logarithmic=False):
        self.numbers = [float(text) for _, text in ticks]
        self.logarithmic = logarithmic
        values = [math.log10(n) if logarithmic else n for n in self.numbers]
        places = [place for place, _ in ticks]
        self.origin, self.value = places[0], values[0]
        self.unit = (values[-1] - values[0]) / (places[-1] - places[0]) if len(ticks) > 1 else 0
        for place, value in zip(places, values):
            assert abs(self.linear(place) - value) <= 0.11 * abs(self.unit), "ticks do not stand at equal distances"

    def linear(self, place):
        return self.value + (place - self.origin) * self.unit

    def is_at(self, place, number):
        """Whether the place means the number, to rounding of places to tenths of pixels."""
        value = math.log10(number) if self.logarithmic else number
        return abs(self.linear(place) - value) <= 0.12 * abs(self.unit) + 1e-6 * abs(value)


class Panel:
    def __init__(self, group):
        self.name = group.find(SVG + "title").text
        self.texts = ["".join(t.itertext()) for t in group.iter(SVG + "text")]
        self.logarithmic = any(s.text == "logarithmic" for s in group.iter(SVG + "tspan"))
        self.curves, self.dots, self.best, self.last = {}, {}, {}, {}
        values = [t for g in group.iter(SVG + "g") if g.get("class") == "values" for t in g]
        epochs = [t for g in group.iter(SVG + "g") if g.get("class") == "epochs" for t in g if t.text != "epoch"]
        self.tick_texts = [t.text for t in values]
        self.values = Scale([(float(t.get("y")) - TEXT_DROP, t.text) for t in values], self.logarithmic) if values else None
        self.epochs = Scale([(float(t.get("x")), t.text) for t in epochs])
        for path in group.iter(SVG + "path"):
            if path.get("class") in ("training", "validation"):
                self.curves[path.get("class")] = read_path(path.get("d"))
        for circle in group.iter(SVG + "circle"):
            kind, mark = circle.get("class").split()
            place = float(circle.get("cx")), float(circle.get("cy"))
            if mark == "best":
                self.best[kind] = place
            else:
                self.dots.setdefault(kind, []).append(place)
        for text in group.iter(SVG + "text"):
            if (text.get("class") or "").startswith("last "):
                self.last[text.get("class").split()[1]] = (float(text.get("x")), float(text.get("y")), text.text)


def read_path(description):
    """Pieces, each a list of points."""
    pieces = []
    for command, x, y in re.findall(r"([ML])([-\d.]+),([-\d.]+)", description):
        if command == "M":
            pieces.append([])
        pieces[-1].append((float(x), float(y)))
    rest = re.sub(r"[ML][-\d.]+,[-\d.]+", "", description).replace("h0", "")
    assert rest == "", f"a path has {rest!r}"
    return pieces


class Picture:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.source = file.read()
        root = ElementTree.fromstring(self.source)
        self.title = root.find(SVG + "title").text
        self.panels = [Panel(g) for g in root if g.tag == SVG + "g"]
        self.legend = [t.text for t in root if t.tag == SVG + "text" and not t.get("class")]
        check(not list(root.iter(SVG + "script")), f"{path} has a script")


# ---- drawing ----


def table(columns, epochs):
    lines = ["\t".join(columns)]
    for i, epoch in enumerate(epochs):
        lines.append("\t".join([str(epoch)] + [repr(float(values[i])) for values in columns.values()]))
    return "\n".join(lines) + "\n"


def draw(name, columns, title="A training", first=0):
    length = len(next(iter(columns.values())))
    path = os.path.join(sys.argv[2], name + ".svg")
    data = table(columns, range(first, first + length)).encode("utf-8", "surrogateescape")
    run = subprocess.run([sys.argv[1], path, title], input=data, capture_output=True, check=False)
    check(run.returncode == 0, f"{name}: {run.stderr.decode()}")
    return Picture(path)


def can_be_drawn(value):
    return math.isfinite(value) and abs(value) <= 1e300


def expected_pieces(values, first, connects):
    """Points (epoch, value) in pieces: of validation, what was not measured is passed over."""
    pieces, open_piece = [], False
    for i, value in enumerate(values):
        if can_be_drawn(value):
            if not open_piece:
                pieces.append([])
            pieces[-1].append((first + i + 1, value))
            open_piece = True
        elif not connects:
            open_piece = False
    return pieces


def compare_curve(where, panel, kind, values, first):
    expected = expected_pieces(values, first, kind == "validation")
    found = panel.curves.get(kind, [])
    check([len(p) for p in expected] == [len(p) for p in found], f"{where}: pieces of {kind}")
    for (epoch, value), (x, y) in zip(sum(expected, []), sum(found, [])):
        check(panel.epochs.is_at(x, epoch) or len(panel.epochs.numbers) == 1, f"{where}: epoch {epoch} of {kind} at {x}")
        check(panel.values.is_at(y, value), f"{where}: {kind} {value} at {y}")
    drawn = sum(expected, [])
    if 0 < len(drawn) <= 30:
        check(panel.dots.get(kind) == sum(found, []), f"{where}: dots of {kind}")
    if drawn:
        text = panel.last[kind][2]
        check(abs(float(text) - drawn[-1][1]) <= 5e-4 * abs(drawn[-1][1]), f"{where}: last {kind} is {text}")
        check(panel.last[kind][0] > max(x for x, _ in sum(found, [])), f"{where}: the last value covers the curve")


def compare(name, columns, first=0, directions=(), **more):
    """Every panel of a picture with what it was drawn from."""
    picture = draw(name, columns, first=first, **more)
    names = [n for n in columns if not n.startswith("val_")]
    check([p.name for p in picture.panels] == names, f"{name}: panels {[p.name for p in picture.panels]}")
    check(picture.legend == ["training", "validation"][: 1 + any(n.startswith("val_") for n in columns)], f"{name}: legend")
    for panel in picture.panels:
        where = f"{name}, {panel.name}"
        for kind, column in (("training", panel.name), ("validation", "val_" + panel.name)):
            if column in columns:
                compare_curve(where, panel, kind, columns[column], first)
        if panel.name in directions:
            compare_best(where, panel, columns, first, directions[panel.name])
        check_ticks(where, panel)
    return picture


def compare_best(where, panel, columns, first, direction):
    kind = "validation" if "val_" + panel.name in columns else "training"
    values = columns["val_" + panel.name if kind == "validation" else panel.name]
    best = direction(v for v in values if can_be_drawn(v))
    epoch = first + values.index(best) + 1
    x, y = panel.best[kind]
    check(panel.values.is_at(y, best), f"{where}: the ring is not at {best}")
    check(panel.epochs.is_at(x, epoch) or len(panel.epochs.numbers) == 1, f"{where}: the ring is not at epoch {epoch}")
    check(any(f"in epoch {epoch}" in t for t in panel.texts), f"{where}: nothing says epoch {epoch}")


def check_ticks(where, panel):
    """Epochs are whole; steps are 1, 2 or 5 of a power of 10; no two texts are the same."""
    check(all(n == int(n) for n in panel.epochs.numbers), f"{where}: epochs {panel.epochs.numbers}")
    if not panel.values:
        return
    texts, numbers = panel.tick_texts, panel.values.numbers
    check(len(set(texts)) == len(texts) and 3 <= len(texts) <= 9, f"{where}: ticks {texts}")
    check("-0" not in texts and "-0.0" not in texts, f"{where}: ticks {texts}")
    logs = [math.log10(n) for n in numbers] if panel.logarithmic else numbers
    step = (logs[-1] - logs[0]) / (len(logs) - 1)
    digit = step / 10 ** math.floor(math.log10(step) + 1e-9)
    check(min(abs(digit - d) for d in (1, 2, 5)) < 1e-3, f"{where}: a step of {step}")


# ---- what is drawn ----


def usual():
    loss = [0.3 + 0.9 * 0.6**i for i in range(10)]
    columns = {
        "loss": loss,
        "accuracy": [0.91 - 0.3 * 0.5**i for i in range(10)],
        "val_loss": [0.4 + 0.5 * 0.6**i + 0.01 * i for i in range(10)],
        "val_accuracy": [0.88 - 0.2 * 0.5**i - 0.002 * i for i in range(10)],
    }
    picture = compare("usual", columns, directions={"loss": min, "accuracy": max})
    check(picture.title == "A training", "the title of the usual picture")
    check(picture.panels[0].epochs.numbers == list(range(1, 11)), "ten epochs have ten numbers")
    check(len(picture.source) < 12000, f"the usual picture has {len(picture.source)} bytes")


def few_and_many():
    picture = compare("one", {"loss": [0.5], "val_loss": [0.6]}, first=4, directions={"loss": min})
    check(picture.panels[0].epochs.numbers == [5], "the only epoch")
    compare("resumed", {"loss": [3, 2, 1.5, 1.25]}, first=7)
    compare("fifty", {"loss": [1 / (i + 1) for i in range(50)]})
    values = [1 + 1 / (i + 1) + (0.5 if i == 12345 else 0) for i in range(20000)]
    picture = draw("many", {"loss": values, "val_loss": values})
    check(len(picture.source) < 60000, f"20,000 epochs have {len(picture.source)} bytes")
    panel = picture.panels[0]
    peak = min(panel.curves["training"][0], key=lambda point: point[1] if point[0] > 100 else INF)
    check(any(panel.epochs.is_at(x, 12346) and panel.values.is_at(y, values[12345]) for x, y in panel.curves["training"][0]),
          f"a peak is lost: {peak}")
    check(not panel.dots, "20,000 dots")


def odd_values():
    compare("gaps", {"loss": [1, 2, NAN, 4, INF, 3, NAN], "val_loss": [NAN, 2, NAN, 3, NAN, 2.5, NAN]})
    check(draw("divergence", {"loss": [1, NAN, INF]}).panels[0].texts[1] == "best training 1 in epoch 1; not finite: 2 values",
          "what is not finite is said")
    picture = draw("nothing", {"loss": [NAN, NAN]})
    check("nothing finite to draw" in picture.panels[0].texts, "nothing to draw")
    compare("constant", {"loss": [3.0] * 5, "zero": [0.0] * 5, "negative": [-7.0] * 5, "val_zero": [0.0] * 5})
    compare("ranges", {
        "huge": [1e12 + 1e6 * i for i in range(8)],
        "tiny": [1 + 1e-7 * i for i in range(8)],
        "small": [1e-40 * (i + 1) for i in range(8)],
        "largest": [1e300, -1e300] * 4,
        "beyond": [1e308, -1e308, 1, 2, 3, 4, 5, 6],
        "negative": [-1.5 * i for i in range(8)],
        "both": [(-1) ** i * 0.037 * i for i in range(8)],
    })
    picture = compare("far", {"loss": [10.0 ** (4 - i) for i in range(14)], "accuracy": [0.001 * 2**i for i in range(14)]},
                      directions={"loss": min})
    check([p.logarithmic for p in picture.panels] == [True, False], "which axes are logarithmic")


def names():
    long_name = "a_metric_whose_name_" + "is_long_" * 40
    compare("names", {"loss": [1, 2], 'a<b>&"c"': [1, 2], long_name: [1, 2], "Verlust-größe 損失": [2, 3]},
            title='<title> & "more" ' + "very " * 100)
    # Not UTF-8, a part of a character, one that XML forbids: all must be well-formed.
    picture = draw("bytes", {"loss": [1, 2], "\udcff\udcc3(\x01\x7f": [1, 2]})
    check(picture.panels[1].name.startswith("\ufffd\ufffd(\ufffd"), f"bytes became {picture.panels[1].name!r}")
    picture = draw("prefix", {"val_only": [1, 2]})
    check([p.name for p in picture.panels] == ["only"] and list(picture.panels[0].curves) == ["validation"], "validation alone")


def learning_rate():
    changes = {"loss": [1, 2, 3], "learning_rate": [1e-3, 1e-3, 1e-4], "accuracy": [0.1, 0.2, 0.3]}
    check([p.name for p in draw("rate", changes).panels] == ["loss", "accuracy", "learning_rate"], "the rate is last")
    stays = {"loss": [1, 2, 3], "learning_rate": [1e-3] * 3}
    check([p.name for p in draw("same-rate", stays).panels] == ["loss"], "a rate that stays has no panel")


os.makedirs(sys.argv[2])
for part in (usual, few_and_many, odd_values, names, learning_rate):
    part()
sys.exit(1 if failures else 0)

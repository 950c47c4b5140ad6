#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The README's pictures: a training on Fashion-MNIST as a terminal shows it in its third epoch, and its plot.

    pictures.py HELIO FOLDER     the command that was built, where progress.svg and plot.svg go
"""
import fcntl, html, os, pty, re, shutil, struct, subprocess, sys, tempfile, termios, unicodedata

COLUMNS, CELL, LINE, MARGIN = 118, 8.4, 17, 20
ARGUMENTS = ["train", "fashion-mnist", "--logical", "cpu:0=2", "--plot", "fashion-mnist.svg"]
FOREGROUND, COLOURS = "#d8dee9", {"32": "#8fbf7f", "37": "#4c566a"}  # done, and still to do


def output_of(command, folder):
    """What the command writes to a terminal of COLUMNS columns."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color"}
    process = subprocess.Popen(command, cwd=folder, stdin=its, stdout=its, stderr=its, env=environment)
    os.close(its)
    chunks = []
    try:
        while chunk := os.read(ours, 65536):
            chunks.append(chunk)
    except OSError:  # how Linux tells that the other end is gone
        pass
    if process.wait() != 0:
        sys.exit(f"pictures.py: {' '.join(command)} failed:\n{b''.join(chunks).decode(errors='replace')}")
    return b"".join(chunks).decode()


def screen(output):
    """Lines as they stand in the middle of the third epoch: what was written over is gone."""
    states = [[state for state in re.split(r"\r|\x1b\[K", line) if state] or [""] for line in output.split("\n")]
    third = next(i for i, line in enumerate(states) if line[-1].startswith("Epoch 3/"))
    bar = states[third + 1]
    return [line[-1] for line in states[: third + 1]] + [bar[len(bar) * 6 // 10]]


def spans(line):
    """(text, colour, bold) of a line with colour codes."""
    colour, bold = FOREGROUND, False
    for piece in re.split(r"(\x1b\[[0-9;]*[a-zA-Z])", line):
        code = re.fullmatch(r"\x1b\[([0-9;]*)m", piece)
        if code and code[1] in ("", "0"):
            colour, bold = FOREGROUND, False
        elif code and code[1] == "1":
            bold = True
        elif code:
            colour = COLOURS.get(code[1], FOREGROUND)
        elif piece and not piece.startswith("\x1b"):
            yield piece, colour, bold


def svg(lines):
    width, height = COLUMNS * CELL + 2 * MARGIN, len(lines) * LINE + 2 * MARGIN
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}">'
    yield f'<rect width="{width:g}" height="{height:g}" rx="8" fill="#242933"/>'
    yield '<g font-family="ui-monospace, DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14" xml:space="preserve">'
    for number, line in enumerate(lines):
        column = 0
        for text, colour, bold in spans(line):
            cells = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
            # Each piece at its column and as wide as its cells, whatever font the reader has.
            if text.strip():
                place = f'x="{MARGIN + column * CELL:g}" y="{MARGIN + (number + 0.75) * LINE:g}"'
                look = f'textLength="{cells * CELL:g}" fill="{colour}"' + ' font-weight="bold"' * bold
                yield f"<text {place} {look}>{html.escape(text)}</text>"
            column += cells
    yield "</g>"
    yield "</svg>"


def main():
    helio, folder = os.path.abspath(sys.argv[1]), sys.argv[2]
    with tempfile.TemporaryDirectory() as work:
        lines = screen(output_of([helio, *ARGUMENTS], work))
        shutil.copy(os.path.join(work, "fashion-mnist.svg"), os.path.join(folder, "plot.svg"))
    with open(os.path.join(folder, "progress.svg"), "w") as file:
        file.writelines(f"{line}\n" for line in svg(["$ helio " + " ".join(ARGUMENTS), *lines]))


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes all files of this folder: the numbers of Keras (the oracle) and PyTorch that the tests of layers, losses,
metrics, optimizers and models compare with. README.md says what is in them.

    python3 -m venv /tmp/golden
    /tmp/golden/bin/pip install tensorflow-cpu==2.21.0 keras==3.15.1 torch==2.15.0 numpy==2.4.6 safetensors==0.8.0
    /tmp/golden/bin/pip install --no-deps tf_keras==2.21.0
    /tmp/golden/bin/python make_all.py

It takes about two minutes on one core. The same versions on the same kind of machine give the same bytes.
"""

import pathlib
import subprocess
import sys

# The last one reads what the others wrote.
SCRIPTS = ("layers", "losses", "metrics", "optimizers", "training", "summaries", "summary_subclass", "configs",
           "architectures", "old_architectures", "torch")  # fmt: skip


def main():
    folder = pathlib.Path(__file__).resolve().parent
    for script in SCRIPTS:  # a process for each: names begin anew, and TensorFlow and PyTorch do not go together
        subprocess.run([sys.executable, str(folder / f"make_{script}.py")], check=True)


if __name__ == "__main__":
    main()

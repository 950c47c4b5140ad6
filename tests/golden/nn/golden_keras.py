# SPDX-License-Identifier: Apache-2.0
"""Sets Keras and TensorFlow up; to be imported before them. PyTorch cannot live in the same process."""

import os

os.environ.update(
    CUDA_VISIBLE_DEVICES="",
    TF_CPP_MIN_LOG_LEVEL="3",
    TF_ENABLE_ONEDNN_OPTS="0",
    KERAS_BACKEND="tensorflow",
    COLUMNS="80",  # what is assumed where there is no terminal; model.summary() looks at it
)

import keras
import numpy as np
import tensorflow as tf

tf.get_logger().setLevel("ERROR")
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)


def numbers(x):
    """A dense array of what TensorFlow or Keras gave; rows (IndexedSlices) are added up."""
    return np.asarray(keras.ops.convert_to_numpy(tf.convert_to_tensor(x)))

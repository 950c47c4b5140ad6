#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes libraries.txt: what PyTorch computes in double precision for the problems that test_gpusim_libraries gives to
the stand-ins of cuBLAS, cuDNN, rocBLAS and MIOpen. Inputs come from a formula that the test has as well; they are
exact in single precision. usage: libraries.py > libraries.txt"""
import numpy as np
import torch
import torch.nn.functional as F


def numbers(which, *shape):
    """Numbers of [-1, 1), multiples of 2^-23: the `which`-th input of a problem."""
    mask = np.uint64(0xFFFFFFFF)
    u = (np.arange(int(np.prod(shape)), dtype=np.uint64) * np.uint64(2654435761) + np.uint64(40503 * (which + 1))) & mask
    u ^= u >> np.uint64(15)
    u = u * np.uint64(2246822519) & mask
    u ^= u >> np.uint64(13)
    return torch.from_numpy(((u >> np.uint64(8)).astype(np.float64) / 2**23 - 1).reshape(shape))


def tell(name, values):
    print(name, values.numel(), *("%.8g" % v for v in values.detach().reshape(-1).tolist()))


def product(m, n, k, transpose_a, transpose_b, batch, alpha, beta):
    """Row by row, although the libraries are column-major: the test turns the order around."""
    print("product", m, n, k, int(transpose_a), int(transpose_b), batch, alpha, beta)
    a = numbers(0, batch, *((k, m) if transpose_a else (m, k)))
    b = numbers(1, batch, *((n, k) if transpose_b else (k, n)))
    a = a.transpose(1, 2) if transpose_a else a
    b = b.transpose(1, 2) if transpose_b else b
    tell("c", alpha * (a @ b) + beta * numbers(2, batch, m, n))


def convolution(n, c, h, w, k, r, s, groups, pad, stride, dilation, flipped):
    print("convolution", n, c, h, w, k, r, s, groups, *pad, *stride, *dilation, int(flipped))
    x = numbers(0, n, c, h, w).requires_grad_()
    f = numbers(1, k, c // groups, r, s).requires_grad_()
    y = F.conv2d(x, f.flip(2, 3) if flipped else f, None, stride, pad, dilation, groups)
    dy = numbers(2, *y.shape)
    dx, df = torch.autograd.grad(y, (x, f), dy)
    for name, values in (("y", y), ("dx", dx), ("dw", df), ("db", dy.sum((0, 2, 3)))):
        tell(name, values)


def pooling(mode, n, c, h, w, window, pad, stride):
    print("pooling", ("max", "average", "average_with_padding").index(mode), n, c, h, w, *window, *pad, *stride)
    x = numbers(0, n, c, h, w).requires_grad_()
    if mode == "max":
        y = F.max_pool2d(x, window, stride, pad)
    else:
        y = F.avg_pool2d(x, window, stride, pad, count_include_pad=mode == "average_with_padding")
    tell("y", y)
    tell("dx", torch.autograd.grad(y, x, numbers(1, *y.shape))[0])


def softmax(log, by_channel, n, c, h, w):
    print("softmax", int(log), int(by_channel), n, c, h, w)
    x = numbers(0, n, c, h, w).requires_grad_()
    z = x if by_channel else x.reshape(n, c * h * w)
    y = (F.log_softmax if log else F.softmax)(z, 1).reshape(n, c, h, w)
    tell("y", y)
    tell("dx", torch.autograd.grad(y, x, numbers(1, n, c, h, w))[0])


def main():
    product(5, 3, 4, False, False, 1, 1, 0)
    product(7, 9, 2, True, False, 1, 0.5, 0)
    product(1, 8, 6, False, True, 1, 1, 1)
    product(4, 4, 11, True, True, 1, -2, 0.25)
    product(3, 5, 2, False, True, 3, 1, 0)
    product(13, 17, 1, False, False, 2, 1, -1)
    convolution(2, 3, 5, 4, 4, 3, 3, 1, (1, 1), (1, 1), (1, 1), False)
    convolution(2, 2, 6, 7, 3, 3, 3, 1, (0, 0), (2, 2), (1, 1), False)
    convolution(1, 4, 6, 6, 6, 3, 2, 2, (1, 0), (1, 2), (1, 1), False)
    convolution(2, 3, 7, 7, 3, 3, 3, 3, (2, 2), (1, 1), (2, 2), False)
    convolution(2, 3, 4, 5, 2, 1, 1, 1, (0, 0), (1, 1), (1, 1), False)
    convolution(1, 2, 8, 7, 2, 5, 5, 1, (2, 2), (1, 1), (1, 1), False)
    convolution(1, 1, 9, 5, 2, 2, 4, 1, (3, 1), (3, 2), (2, 1), False)
    convolution(2, 2, 5, 4, 3, 3, 2, 1, (1, 1), (1, 1), (1, 1), True)
    convolution(3, 1, 1, 1, 2, 1, 1, 1, (0, 0), (1, 1), (1, 1), False)
    for mode in ("max", "average", "average_with_padding"):
        pooling(mode, 2, 2, 6, 6, (2, 2), (0, 0), (2, 2))
        pooling(mode, 1, 3, 7, 5, (3, 3), (1, 1), (2, 1))
        pooling(mode, 2, 1, 5, 8, (2, 4), (1, 2), (1, 3))
    for log in (False, True):
        softmax(log, True, 3, 5, 1, 1)
        softmax(log, True, 2, 3, 2, 2)
        softmax(log, False, 2, 3, 2, 2)


main()

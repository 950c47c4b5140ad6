/* SPDX-License-Identifier: Apache-2.0 */
/* A layout that the vendors' convolutions want and we do not have: images with as much padding on one side as on the
 * other. */

/* Of images: all lie as (image, height, width, channel). */
struct frame {
  i64 images, height, width, channels; /* of the smaller one */
  i64 high, wide;                      /* of the larger one */
  i64 above, left;                     /* where the smaller one begins in the larger */
};

/* y is x in a frame of zeros. */
KERNEL pad_images(T *y, const T *x, frame f) {
  i64 row = f.wide * f.channels;
  FOR_EACH(i, f.images * f.high * row) {
    i64 line = quotient(i, row), image = quotient(line, f.high), place = i - line * row - f.left * f.channels;
    i64 height = line - image * f.high - f.above;
    bool inside = height >= 0 && height < f.height && place >= 0 && place < f.width * f.channels;
    if (inside) y[i] = x[(image * f.height + height) * f.width * f.channels + place];
    else store(y + i, (A)0);
  }
}

/* y is x without its frame. */
KERNEL crop_images(T *y, const T *x, frame f) {
  i64 row = f.width * f.channels;
  FOR_EACH(i, f.images * f.height * row) {
    i64 line = quotient(i, row), image = quotient(line, f.height), place = i - line * row;
    i64 height = line - image * f.height + f.above;
    y[i] = x[((image * f.high + height) * f.wide + f.left) * f.channels + place];
  }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers, as plugin.h defines them: Philox 4×32-10 (J. Salmon and others, 2011). A thread makes a block of four
 * words and all elements that are drawn from it; each element is a function of key, step and its own number alone. */

/* Word `base` is the first; word numbers wrap at 2⁶⁴. */
struct draw {
  u64 key, step, base;
  i64 count; /* of elements */
  int wide;  /* the first word begins a block, and packs may be written */
  int unused;
};

struct words {
  u32 word[4];
};

DEVICE words philox(u64 key, u64 step, u64 block) {
  words c = {{(u32)block, (u32)(block >> 32), (u32)step, (u32)(step >> 32)}};
  u32 k0 = (u32)key, k1 = (u32)(key >> 32);
  for (int round = 0; round < 10; round++) {
    u64 a = (u64)c.word[0] * 0xD2511F53u, b = (u64)c.word[2] * 0xCD9E8D57u;
    words next = {{(u32)(b >> 32) ^ c.word[1] ^ k0, (u32)b, (u32)(a >> 32) ^ c.word[3] ^ k1, (u32)a}};
    c = next;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

/* Writes make(x, words) for every element, `each` words at a time; x is what `source` has there, 0 if there is none. A
 * thread's block begins up to 3 words before the first element's. */
template <typename M, int each, typename F> DEVICE void generate(M *y, const M *source, const draw &of, F make) {
  const int n = 4 / each;
  i64 skipped = (i64)(of.base % 4) / each;
  u64 first = of.base / 4;
  FOR_EACH(i, (skipped + of.count + n - 1) / n) {
    words drawn = philox(of.key, of.step, (first + (u64)i) << 2 >> 2);
    i64 element = i * n - skipped;
    pack<M, n> part = {};
    if (of.wide && element + n <= of.count) {
      if (source) part = *(const pack<M, n> *)(source + element);
      for (int k = 0; k < n; k++) store(&part.item[k], make(load(&part.item[k]), &drawn.word[k * each]));
      *(pack<M, n> *)(y + element) = part;
    } else {
      for (int k = 0; k < n; k++) {
        if (element + k < 0 || element + k >= of.count) continue;
        if (source) part.item[k] = source[element + k];
        store(&y[element + k], make(load(&part.item[k]), &drawn.word[k * each]));
      }
    }
  }
}

#if TYPE == 5
KERNEL random_bits(i32 *y, draw of) {
  generate<i32, 1>(y, (const i32 *)0, of, [](i32, const u32 *word) -> i32 { return (i32)*word; });
}
#endif

#if TYPE == 1
KERNEL random_uniform(float *y, draw of, double low, double high) {
  float start = (float)low, range = (float)high - (float)low;
  generate<float, 1>(y, (const float *)0, of, [=](float, const u32 *word) -> float {
    return (float)(i32)(*word >> 8) * 5.9604644775390625e-8f * range + start;
  });
}
#endif

#if TYPE == 2
KERNEL random_uniform(double *y, draw of, double low, double high) {
  double range = high - low;
  generate<double, 2>(y, (const double *)0, of, [=](double, const u32 *word) -> double {
    return low + range * ((double)(i64)(((u64)word[1] << 32 | word[0]) >> 11) * 1.1102230246251565404e-16);
  });
}
#endif

#if TYPE == 1 || TYPE == 2
KERNEL random_normal(T *y, draw of, double mean, double deviation) {
  const double turn = 6.283185307179586476925, unit = 2.3283064365386962891e-10; /* 2π, 2⁻³² */
  generate<T, 2>(y, (const T *)0, of, [=](A, const u32 *word) -> T {
    double number = sqrt(-2.0 * log(((double)word[0] + 1.0) * unit)) * cos(turn * ((double)word[1] * unit));
    return (T)mean + (T)deviation * (T)number;
  });
}
#endif

#if IS_FLOAT
/* 0 where the uniform number × 2²⁴ is below the limit, else x ÷ kept. */
KERNEL dropout(T *y, const T *x, draw of, int limit, double kept) {
  A divisor = (A)kept;
  generate<T, 1>(y, x, of, [=](A x, const u32 *word) -> A {
    return (i32)(*word >> 8) < limit ? (A)0 : x / divisor;
  });
}
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A model is trained, saved, and loaded again without the code that built it: predict [FILE]. It learns in which corner
 * of a square a point lies. */
#include <helio/helio.h>
#include <stdio.h>
#include <stdlib.h>

enum { POINTS = 400, CORNERS = 4 };

static void train_and_save(const char *path) {
  float points[POINTS][2];
  int32_t corners[POINTS];
  for (int i = 0; i < POINTS; i++) {
    points[i][0] = (float)(i % 20) / 10 - 0.95f;
    points[i][1] = (float)(i / 20) / 10 - 0.95f;
    corners[i] = 2 * (points[i][1] > 0) + (points[i][0] > 0);
  }
  helio_model *model =
      helio_sequential({helio_dense(16, .activation = HELIO_TANH), helio_dense(CORNERS, .activation = HELIO_SOFTMAX)},
                       .input_shape = HELIO_SHAPE(2));
  helio_compile(model, .optimizer = helio_adam(0.05), .loss = helio_sparse_categorical_crossentropy());
  helio_fit(model, .x = helio_array_of(points, HELIO_SHAPE(POINTS, 2)),
            .y = helio_array_of(corners, HELIO_SHAPE(POINTS), HELIO_INT32), .epochs = 10, .verbose = HELIO_QUIET);
  helio_save_model(model, path);
  helio_release(model);
}

static void load_and_predict(const char *path) {
  static const float points[][2] = {{-0.8f, -0.6f}, {0.9f, -0.1f}, {-0.1f, 0.5f}, {0.2f, 0.1f}};
  helio_model *model = helio_load_model(path);
  helio_array *predictions = helio_predict(model, .x = helio_array_of(points, HELIO_SHAPE(4, 2)));
  const float *p = helio_array_data(predictions);
  for (int i = 0; i < 4 && p; i++, p += CORNERS) {
    int class = 0;
    for (int c = 1; c < CORNERS; c++) class = p[c] > p[class] ? c : class;
    printf("(%4.1f, %4.1f) is in corner %d: %.4f %.4f %.4f %.4f\n", points[i][0], points[i][1], class, p[0], p[1], p[2],
           p[3]);
  }
  helio_release(model);
}

int main(int count, char **arguments) {
  const char *path = count > 1 ? arguments[1] : "corners.safetensors";
  train_and_save(path);
  load_and_predict(path);
  if (helio_error_pending()) fprintf(stderr, "%s\n", helio_error_message());
  return helio_error_take(NULL) ? EXIT_FAILURE : EXIT_SUCCESS;
}

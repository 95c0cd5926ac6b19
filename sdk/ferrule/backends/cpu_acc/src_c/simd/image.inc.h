/* SPDX-License-Identifier: Apache-2.0 */
/* Template, included once per element type: lays out an image in scratch. Needs LAY_OUT (the name
 * of the function), SOURCE, TARGET, CONVERT(value, zero_point) and PADDING(zero_point). */

FERRULE_TARGET static void FERRULE_JOIN(LAY_OUT, _run)(const SOURCE *source, TARGET *target,
                                                       int32_t count, int32_t zero_point)
{
    for (int32_t i = 0; i < count; ++i) {
        target[i] = CONVERT(source[i], zero_point);
    }
}

FERRULE_TARGET static void FERRULE_JOIN(LAY_OUT, _fill)(TARGET *target, int32_t count,
                                                        int32_t zero_point)
{
    TARGET padding = PADDING(zero_point);

    for (int32_t i = 0; i < count; ++i) {
        target[i] = padding;
    }
}

/* One row whose columns stand in phases. */
FERRULE_TARGET static void FERRULE_JOIN(LAY_OUT, _phases)(const struct ferrule_host_image *image,
                                                          const SOURCE *source, TARGET *target,
                                                          int32_t inside)
{
    int32_t channels = image->input_c;

    for (int32_t phase = 0; phase < image->phases; ++phase) {
        for (int32_t column = phase; column < image->columns; column += image->phases) {
            int32_t x = column - image->left;

            if (x >= 0 && x < inside) {
                FERRULE_JOIN(LAY_OUT, _run)(source + x * channels, target, channels,
                                            image->zero_point);
            } else {
                FERRULE_JOIN(LAY_OUT, _fill)(target, channels, image->zero_point);
            }
            target += channels;
        }
    }
}

FERRULE_TARGET static void LAY_OUT(const struct ferrule_host_image *image, const SOURCE *source,
                                   TARGET *target)
{
    int32_t channels = image->input_c;
    int32_t zero_point = image->zero_point;
    int32_t row_elements = image->columns * channels;
    int32_t room = image->columns - image->left;
    int32_t inside = room < image->input_w ? (room > 0 ? room : 0) : image->input_w;

    for (int32_t row = 0; row < image->rows; ++row) {
        int32_t y = row - image->top;
        const SOURCE *line = source;

        if (y < 0 || y >= image->input_h) {
            FERRULE_JOIN(LAY_OUT, _fill)(target, row_elements, zero_point);
            target += row_elements;
            continue;
        }
        line += y * image->input_w * channels;
        if (image->phases == 1) {
            int32_t before = image->left * channels;
            int32_t taken = inside * channels;

            FERRULE_JOIN(LAY_OUT, _fill)(target, before, zero_point);
            FERRULE_JOIN(LAY_OUT, _run)(line, target + before, taken, zero_point);
            FERRULE_JOIN(LAY_OUT, _fill)(target + before + taken, row_elements - before - taken,
                                         zero_point);
        } else {
            FERRULE_JOIN(LAY_OUT, _phases)(image, line, target, inside);
        }
        target += row_elements;
    }
}

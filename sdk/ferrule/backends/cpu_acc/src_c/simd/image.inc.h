/* SPDX-License-Identifier: Apache-2.0 */
/* Template, included once per element type: lays out an image in scratch. Required macros: LAY_OUT
 * (the name of the function), SOURCE, TARGET, CONVERT(value, zero_point), PADDING(zero_point). */

FERRULE_INLINE void FERRULE_JOIN(LAY_OUT, _run)(const SOURCE *restrict source,
                                                TARGET *restrict target, int32_t count,
                                                int32_t zero_point)
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

/* Lays out one row whose columns are sorted by phase. `unit` divides the channels; it is a constant
 * when this is inlined, since runs of known length are much faster. */
FERRULE_INLINE void FERRULE_JOIN(LAY_OUT, _units)(const struct ferrule_host_image *image,
                                                  const SOURCE *source, TARGET *target,
                                                  int32_t inside, int32_t unit)
{
    int32_t channels = image->input_c;
    int32_t phases = image->phases;
    int32_t places = image->columns / phases;

    for (int32_t phase = 0; phase < phases; ++phase) {
        /* place p has column phase + p * phases; columns `left` to `left + inside` - 1 lie in it */
        int32_t first = image->left > phase ? (image->left - phase + phases - 1) / phases : 0;
        int32_t end =
            image->left + inside > phase ? (image->left + inside - phase + phases - 1) / phases : 0;
        const SOURCE *pixel = source + (phase + first * phases - image->left) * channels;

        first = first < places ? first : places;
        end = end < first ? first : end;
        FERRULE_JOIN(LAY_OUT, _fill)(target, first * channels, image->zero_point);
        target += first * channels;
        for (int32_t place = first; place < end; ++place) {
            for (int32_t c = 0; c < channels; c += unit) {
                FERRULE_JOIN(LAY_OUT, _run)(pixel + c, target + c, unit, image->zero_point);
            }
            pixel += phases * channels;
            target += channels;
        }
        FERRULE_JOIN(LAY_OUT, _fill)(target, (places - end) * channels, image->zero_point);
        target += (places - end) * channels;
    }
}

FERRULE_TARGET static void FERRULE_JOIN(LAY_OUT, _phases)(const struct ferrule_host_image *image,
                                                          const SOURCE *source, TARGET *target,
                                                          int32_t inside)
{
    if (image->input_c % 32 == 0) {
        FERRULE_JOIN(LAY_OUT, _units)(image, source, target, inside, 32);
    } else if (image->input_c % 16 == 0) {
        FERRULE_JOIN(LAY_OUT, _units)(image, source, target, inside, 16);
    } else if (image->input_c % 8 == 0) {
        FERRULE_JOIN(LAY_OUT, _units)(image, source, target, inside, 8);
    } else {
        FERRULE_JOIN(LAY_OUT, _units)(image, source, target, inside, image->input_c);
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

/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/depthwise_parts.h"

#include "ferrule/kernels/dual.h"

enum { FOUR = 4 };

/* Extents are small, so that loops take less than a division on cores that have none. */
struct ferrule_axis_part ferrule_axis_part(const struct ferrule_axis *axis, int32_t index)
{
    int32_t first = index * axis->stride - axis->pad;
    struct ferrule_axis_part part = {.output_offset = index * axis->output_bytes,
                                     .input_bytes = axis->dilation * axis->input_bytes,
                                     .output_bytes = axis->parts * axis->output_bytes,
                                     .stride = axis->part_stride};

    if (axis->dilation == 1) {
        part.inputs = axis->input_extent;
        part.outputs = axis->output_extent;
        part.pad = axis->pad;
        return part;
    }
    for (; first < 0; first += axis->dilation) {
        part.pad += 1;
    }
    part.input_offset = first * axis->input_bytes;
    for (; first < axis->input_extent; first += axis->dilation) {
        part.inputs += 1;
    }
    for (; index < axis->output_extent; index += axis->parts) {
        part.outputs += 1;
    }
    return part;
}

void ferrule_store_dead(const struct ferrule_dead *dead, int8_t *output, int32_t pixels,
                        int32_t pixel_bytes)
{
    int32_t done = 0;

    while (done < dead->count) {
        int32_t place = dead->channels[done];
        int8_t *pixel = output + place;

        if (dead->count - done >= FOUR && dead->channels[done + FOUR - 1] == place + FOUR - 1) {
            uint32_t word = ferrule_load_word(dead->fixed + place);

            for (int32_t left = pixels; left > 0; --left) {
                FERRULE_COPY_WORD(pixel, &word);
                pixel += pixel_bytes;
            }
            done += FOUR;
        } else {
            int8_t value = dead->fixed[place];

            for (int32_t left = pixels; left > 0; --left) {
                *pixel = value;
                pixel += pixel_bytes;
            }
            done += 1;
        }
    }
}

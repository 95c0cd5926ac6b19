/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/depthwise_parts.h"

#include "ferrule/kernels/dual.h"

enum { FOUR = 4, ALL_FOUR = 15, MASK_BITS = 32 };

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
                        int32_t channels)
{
    const uint32_t *mask = dead->mask;

    for (int32_t first = 0; first < channels; first += MASK_BITS) {
        uint32_t bits = *mask++;

        for (int32_t c = first; bits != 0; ++c) {
            int8_t *pixel = output + c;

            if ((bits & ALL_FOUR) == ALL_FOUR) {
                uint32_t word = ferrule_load_word(dead->fixed + c);

                for (int32_t left = pixels; left > 0; --left) {
                    FERRULE_COPY_WORD(pixel, &word);
                    pixel += channels;
                }
                bits >>= FOUR - 1;
                c += FOUR - 1;
            } else if ((bits & 1u) != 0) {
                int8_t value = dead->fixed[c];

                for (int32_t left = pixels; left > 0; --left) {
                    *pixel = value;
                    pixel += channels;
                }
            }
            bits >>= 1;
        }
    }
}

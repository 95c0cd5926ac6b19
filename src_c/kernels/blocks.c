/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/blocks.h"

#include "ferrule/kernels/dual.h"
#include "ferrule/kernels/mve.h"

/* Return whether all rows of the output have the same elements of the input. */
static bool repeats(const struct ferrule_broadcast *shape, const int32_t *strides)
{
    for (int32_t axis = 0; axis < FERRULE_BROADCAST_INNER; ++axis) {
        if (shape->extents[axis] > 1 && strides[axis] != 0) {
            return false;
        }
    }
    return true;
}

/* Return whether the input has all elements of the output. */
static bool is_whole(const struct ferrule_broadcast *shape, const int32_t *strides)
{
    int32_t size = 1;

    for (int32_t axis = FERRULE_BROADCAST_INNER; axis >= 0; --axis) {
        if (shape->extents[axis] > 1 && strides[axis] != size) {
            return false;
        }
        size *= shape->extents[axis];
    }
    return true;
}

static struct ferrule_block_input input_of(const struct ferrule_broadcast *shape,
                                           const int32_t *strides, const int8_t *start,
                                           int8_t *buffer)
{
    const struct ferrule_block_input input = {
        .start = start,
        .strides = strides,
        .whole = is_whole(shape, strides),
        .repeated = repeats(shape, strides),
        .buffer = buffer,
        .elements = NULL,
    };

    return input;
}

void ferrule_blocks_begin(struct ferrule_blocks *blocks, const struct ferrule_broadcast *shape,
                          const int8_t *first, const int8_t *second)
{
    const int32_t extent = shape->extents[FERRULE_BROADCAST_INNER];
    int32_t limit = FERRULE_BLOCK_BYTES;

    blocks->shape = shape;
    blocks->row = (struct ferrule_broadcast_row){0};
    blocks->column = 0;
    blocks->count = 0;
    blocks->left = 1;
    for (int32_t axis = 0; axis < FERRULE_BROADCAST_AXES; ++axis) {
        blocks->left *= shape->extents[axis];
    }
    blocks->first = input_of(shape, shape->first_strides, first, blocks->buffer);
    blocks->second = input_of(shape, shape->second_strides, second, blocks->buffer);
    blocks->most = blocks->left;
    blocks->short_rows = false;
    if (blocks->first.whole && blocks->second.whole) {
        return;
    }
    if (!blocks->first.whole && !blocks->second.whole) {
        limit = FERRULE_BLOCK_BYTES / 2;
        blocks->second.buffer = &blocks->buffer[limit];
    }
    if (extent <= limit) {
        blocks->short_rows = true;
        blocks->most = limit / extent * extent;
    } else if (shape->first_strides[FERRULE_BROADCAST_INNER] == 0 ||
               shape->second_strides[FERRULE_BROADCAST_INNER] == 0) {
        blocks->most = limit;
    } else {
        blocks->most = extent; /* the rows are read in place */
    }
}

/* Copy elements of a row, or repeat one; pieces are too short for calls of memcpy. */
static inline void copy_piece(int8_t *target, const int8_t *source, int32_t stride, int32_t count)
{
#if FERRULE_HAS_MVE
    if (stride == 0) {
        (void)ferrule_mve_fill(target, count, *source);
    } else {
        ferrule_mve_copy(target, source, count);
    }
#else
    int32_t i = 0;
#if FERRULE_HAS_DSP
    uint32_t word = (uint32_t)(uint8_t)*source * UINT32_C(0x01010101);

    for (; i < count - 3; i += 4) {
        if (stride != 0) {
            FERRULE_COPY_WORD(&word, &source[i]);
        }
        FERRULE_COPY_WORD(&target[i], &word);
    }
#endif
    for (; i < count; ++i) {
        target[i] = source[i * stride];
    }
#endif
}

/* Copy the rows of the next block that are not in place. */
static void copy_rows(struct ferrule_blocks *blocks)
{
    const int32_t extent = blocks->shape->extents[FERRULE_BROADCAST_INNER];
    const struct ferrule_block_input *first = &blocks->first;
    const struct ferrule_block_input *second = &blocks->second;

    for (int32_t done = 0; done < blocks->count; done += extent) {
        if (!first->whole) {
            copy_piece(&first->buffer[done], &first->start[blocks->row.first],
                       first->strides[FERRULE_BROADCAST_INNER], extent);
        }
        if (!second->whole) {
            copy_piece(&second->buffer[done], &second->start[blocks->row.second],
                       second->strides[FERRULE_BROADCAST_INNER], extent);
        }
        (void)ferrule_broadcast_next(blocks->shape, &blocks->row);
    }
}

/* Return the elements of the next block, which is within a row. */
static const int8_t *piece_of_row(const struct ferrule_block_input *input, int32_t row,
                                  const struct ferrule_blocks *blocks)
{
    const int8_t *source = &input->start[row];

    if (input->whole || input->strides[FERRULE_BROADCAST_INNER] != 0) {
        return &source[blocks->column];
    }
    if (blocks->column == 0) {
        copy_piece(input->buffer, source, 0, blocks->count);
    }
    return input->buffer;
}

bool ferrule_blocks_next(struct ferrule_blocks *blocks)
{
    struct ferrule_block_input *first = &blocks->first;
    struct ferrule_block_input *second = &blocks->second;
    const bool begun = first->elements != NULL;
    const int32_t before = blocks->count;

    if (blocks->left == 0) {
        return false;
    }
    blocks->count = blocks->most < blocks->left ? blocks->most : blocks->left;
    if (blocks->short_rows) {
        if (!begun || !(first->whole || first->repeated) || !(second->whole || second->repeated)) {
            copy_rows(blocks);
        }
        first->elements = first->whole && begun ? first->elements + before : first->elements;
        second->elements = second->whole && begun ? second->elements + before : second->elements;
        if (!begun) {
            first->elements = first->whole ? first->start : first->buffer;
            second->elements = second->whole ? second->start : second->buffer;
        }
    } else {
        const int32_t extent = blocks->shape->extents[FERRULE_BROADCAST_INNER];

        if (blocks->count > extent - blocks->column) {
            blocks->count = extent - blocks->column;
        }
        first->elements = piece_of_row(first, blocks->row.first, blocks);
        second->elements = piece_of_row(second, blocks->row.second, blocks);
        blocks->column += blocks->count;
        if (blocks->column == extent) {
            blocks->column = 0;
            (void)ferrule_broadcast_next(blocks->shape, &blocks->row);
        }
    }
    blocks->left -= blocks->count;
    return true;
}

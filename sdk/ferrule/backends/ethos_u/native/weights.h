/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compressed weights of Ethos-U55 and U65, for this host: a stream is decoded, and its weights
 * are brought into the order OHWI. The functions accept any bytes and any numbers: they never
 * access memory outside of the given ranges, and end after a time that is proportional to the
 * sizes of these. ferrule/backends/ethos_u/native_weights.py mirrors the struct of the order.
 */
#ifndef FERRULE_ETHOS_U_WEIGHTS_H
#define FERRULE_ETHOS_U_WEIGHTS_H

#include <stdint.h>

enum {
    FERRULE_SLICE_WEIGHTS = 32768, /* the most that one slice of a stream has */
};

enum ferrule_weight_result {
    FERRULE_WEIGHTS_DONE = 0,
    FERRULE_WEIGHTS_END = -1,       /* the stream ends inside of a slice */
    FERRULE_WEIGHTS_PALETTE = -2,   /* the stream begins without a palette */
    FERRULE_WEIGHTS_DIVISOR = -3,   /* the stream has a reserved divisor */
    FERRULE_WEIGHTS_MAGNITUDE = -4, /* a weight has more than 9 bits */
    FERRULE_WEIGHTS_ORDER = -5,     /* the order does not match the number of weights */
};

/* Memory for the decoder; its contents need not be initialised. */
struct ferrule_weight_slice {
    int16_t weights[FERRULE_SLICE_WEIGHTS];
    uint64_t runs[FERRULE_SLICE_WEIGHTS + 1];
};

/* What the order of weights depends on; see the class WeightOrder in weight_order.py. */
struct ferrule_weight_order {
    uint32_t ofm_depth;
    uint32_t input_channels;
    uint32_t kernel_height;
    uint32_t kernel_width;
    uint32_t ofm_block_depth;
    uint32_t ifm_block_depth; /* this and the group's are 1 for depthwise weights */
    uint32_t ofm_ublock_depth;
    uint32_t input_group_depth;
    uint32_t tile_height; /* 1 to 8 */
    uint32_t tile_width;
    uint32_t tap_multiple;
    uint32_t is_part_kernel; /* 0 or 1 */
};

/** @brief Size of struct ferrule_weight_slice, in bytes. */
uint64_t ferrule_weight_slice_bytes(void);

/**
 * @brief Decodes the first weights of a stream, in the stream's order.
 *
 * @param out      memory for `capacity` weights.
 * @param capacity the number after which the decoder stops; it does not check what follows.
 * @param count    gets the number of weights.
 * @retval FERRULE_WEIGHTS_DONE or another value of enum ferrule_weight_result.
 */
int32_t ferrule_weights_decode(const uint8_t *data, uint64_t size_bytes,
                               struct ferrule_weight_slice *slice, int16_t *out, uint64_t capacity,
                               uint64_t *count);

/**
 * @brief Brings the weights of a stream into the order OHWI.
 *
 * @param out memory for `out_count` weights, which must be the number that the order has.
 * @retval FERRULE_WEIGHTS_DONE
 * @retval FERRULE_WEIGHTS_ORDER the order needs more weights than the stream has, or another
 *         number than `out` has; `out` may be written in parts.
 */
int32_t ferrule_weights_arrange(const int16_t *stream, uint64_t count,
                                const struct ferrule_weight_order *order, int16_t *out,
                                uint64_t out_count);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Operations of Ethos-U on a host: the same results as the reference in numpy, faster.
 *
 * Callers have checked that all elements of the maps are accessible, that no map has unsigned
 * words, and that tables have an entry for each value. native_structs.py
 * reads the structs and the functions, and native_execution.py fills the structs.
 */
#ifndef FERRULE_ETHOS_U_EXECUTE_H_INCLUDED
#define FERRULE_ETHOS_U_EXECUTE_H_INCLUDED

#include <stdint.h>

/** A rectangle of a feature map; ends are excluded. */
struct ferrule_ethos_u_tile {
    int32_t y0, y1, x0, x1;
    uint8_t *first; /**< the first element */
};

/** A feature map in memory. */
struct ferrule_ethos_u_map {
    int32_t height, width, depth;
    int32_t brick; /**< channels that lie together */
    int32_t type;  /**< enum ferrule_ethos_u_type */
    int32_t tile_count;
    int64_t stride_y, stride_x, stride_c; /**< in bytes */
    int32_t zero_point;                   /**< 0 where the NPU ignores it */
    struct ferrule_ethos_u_tile tile[4];
};

enum ferrule_ethos_u_type {
    FERRULE_ETHOS_U_U8,
    FERRULE_ETHOS_U_S8,
    FERRULE_ETHOS_U_S16,
    FERRULE_ETHOS_U_S32,
};

enum ferrule_ethos_u_rounding {
    FERRULE_ETHOS_U_DOUBLE = 0,
    FERRULE_ETHOS_U_NATURAL = 2,
};

/** A factor with a shift to the right. */
struct ferrule_ethos_u_scale {
    int64_t factor;
    int32_t shift;
    int32_t mode;     /**< enum ferrule_ethos_u_rounding */
    int32_t headroom; /**< DOUBLE rounds twice above a shift of 31 - headroom */
};

/** From scaled values to stored ones. */
struct ferrule_ethos_u_activation {
    int32_t type; /**< that of the OFM */
    int32_t clips;
    int32_t zero_point;
    int64_t low, high;
    const uint8_t *entries; /**< of the look-up table; NULL if there is none */
};

/** The kernel that slides over the IFM. */
struct ferrule_ethos_u_window {
    int32_t taps_y, taps_x, dilation_y, dilation_x, stride_y, stride_x;
    int32_t top, left, bottom, right; /**< padding */
    int32_t height, width;            /**< of the IFM */
};

/**
 * The scaling of channels in float64. It is exact where results that the range does not clamp have
 * at most 52 bits with their fraction, and where no product exceeds 64 bits.
 */
struct ferrule_ethos_u_real {
    const double *bias;          /**< NULL where it may not be exact */
    const double *factor;        /**< with the shift */
    const double *above, *below; /**< what rounding adds to values from 0 on, and to others */
};

/** CONV and DEPTHWISE. */
struct ferrule_ethos_u_convolution {
    struct ferrule_ethos_u_map ifm, ofm;
    struct ferrule_ethos_u_activation activation;
    struct ferrule_ethos_u_window window;
    int32_t mode;                         /**< enum ferrule_ethos_u_rounding */
    const int64_t *bias, *factor, *shift; /**< per channel */
    struct ferrule_ethos_u_real real;
};

/** POOL. */
struct ferrule_ethos_u_pooling {
    struct ferrule_ethos_u_map ifm, ofm;
    struct ferrule_ethos_u_activation activation;
    struct ferrule_ethos_u_window window;
    struct ferrule_ethos_u_scale scale; /**< not used where `divides` is set */
    int32_t mode; /**< 0 maximum, 1 average, 2 sum over channels with a kernel of 1 x 1 */
    int32_t divides;
};

/** ELEMENTWISE. */
struct ferrule_ethos_u_elementwise {
    struct ferrule_ethos_u_map ifm, ofm;
    struct ferrule_ethos_u_activation activation;
    struct ferrule_ethos_u_window window;
    struct ferrule_ethos_u_map ifm2;
    struct ferrule_ethos_u_scale scale, first, second;
    int64_t scalar; /**< in place of IFM2 if that has no tiles */
    int32_t mode;   /**< the parameter of the operation */
    int32_t swapped;
    int32_t is_scaled;
};

/** @brief Write the IFM minus its zero point, surrounded by zeros, as float32; `row` holds a row of
 * the IFM. */
void ferrule_ethos_u_extend(const struct ferrule_ethos_u_convolution *op, int32_t *row, float *out);

/** @brief Write the IFM minus its zero point, surrounded by zeros, as int16; `row` as before. */
void ferrule_ethos_u_extend_short(const struct ferrule_ethos_u_convolution *op, int32_t *row,
                                  int16_t *out);

/** @brief Write for each pixel of OFM rows y0 to y1 - 1 what the taps meet. */
void ferrule_ethos_u_patches(const struct ferrule_ethos_u_convolution *op, const float *extended,
                             int32_t y0, int32_t y1, float *out);

/** @brief Scale and store the sums of OFM rows y0 to y1 - 1; `row` holds a row of the OFM. */
void ferrule_ethos_u_finish(const struct ferrule_ethos_u_convolution *op, const float *sums,
                            int32_t y0, int32_t y1, int32_t *row);

/** @brief As ferrule_ethos_u_finish, with float64. */
void ferrule_ethos_u_finish_wide(const struct ferrule_ethos_u_convolution *op, const double *sums,
                                 int32_t y0, int32_t y1, int32_t *row);

/** @brief As ferrule_ethos_u_finish, with int32. */
void ferrule_ethos_u_finish_short(const struct ferrule_ethos_u_convolution *op, const int32_t *sums,
                                  int32_t y0, int32_t y1, int32_t *row);

/** @brief Compute and store DEPTHWISE; sums must fit into 32 bits. `sums` and `row` hold a row of
 * the OFM. */
void ferrule_ethos_u_depthwise(const struct ferrule_ethos_u_convolution *op,
                               const int16_t *extended, const int16_t *weights, int32_t *sums,
                               int32_t *row);

/** @brief Compute and store POOL; `in` holds the IFM, `out` the OFM. */
void ferrule_ethos_u_pooling(const struct ferrule_ethos_u_pooling *op, int32_t *in, int32_t *out);

/**
 * @brief Compute and store ELEMENTWISE; `first` holds the OFM, `second` the IFM2.
 * @retval 0 done
 * @retval 1 a shift is negative or above 63; nothing is stored
 */
int32_t ferrule_ethos_u_elementwise(const struct ferrule_ethos_u_elementwise *op, int32_t *first,
                                    int32_t *second);

#endif

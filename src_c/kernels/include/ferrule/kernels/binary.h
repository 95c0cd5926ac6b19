/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Arithmetic of two tensors with broadcasting. Any context; the kernels keep no
 * state between calls.
 *
 * The output may share memory with an input of the same shape.
 */
#ifndef FERRULE_KERNELS_BINARY_H_INCLUDED
#define FERRULE_KERNELS_BINARY_H_INCLUDED

#include <stdint.h>

#include "ferrule/kernels/broadcast.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Conversion of one input of a sum to the common scale. */
struct ferrule_term {
    int32_t offset; /**< minus the zero point */
    int32_t multiplier;
    int32_t shift; /**< -31 to 0 */
};

/** Conversion of a sum or product to a stored value. */
struct ferrule_result {
    int32_t multiplier;
    int32_t shift;
    int32_t zero_point;
    int32_t low;
    int32_t high;
};

/** ADD and SUB of int16, SQUARED_DIFFERENCE of int8 and int16. */
struct ferrule_sum_params {
    struct ferrule_broadcast shape;
    struct ferrule_term first;
    struct ferrule_term second;
    struct ferrule_result result;
    int32_t left_shift; /**< fractional bits at the common scale */
};

/** ADD and SUB of int8 with any scales. The first input is one of those with the larger scale. */
struct ferrule_rescaled_sum_params {
    struct ferrule_broadcast shape;
    int32_t exact_offset; /**< of the first input, minus its zero point */
    int32_t exact_sign;   /**< 1 or -1, as other_sign */
    int32_t other_offset;
    int32_t other_multiplier; /**< of the second input to the common scale */
    int32_t other_shift;      /**< -31 to -1 */
    int32_t other_sign;
    struct ferrule_result result;
};

/** ADD and SUB of int8 by two multiplications. */
struct ferrule_scaled_sum_params {
    struct ferrule_broadcast shape;
    int32_t first;    /**< 256 times the factor of the first input, with 20 fractional bits */
    int32_t second;   /**< the same for the second input */
    int32_t constant; /**< with 20 fractional bits, includes the rounding */
};

/** ADD and SUB of int8 by tables. */
struct ferrule_sum_table_params {
    struct ferrule_broadcast shape;
    const int32_t *first;  /**< 256 contributions to the result, indexed by the input as uint8 */
    const int32_t *second; /**< the same for the second input; both have 20 fractional bits */
};

/** MUL of int8 and int16, and DIV of int8. */
struct ferrule_product_params {
    struct ferrule_broadcast shape;
    int32_t first_offset;  /**< minus the zero point */
    int32_t second_offset; /**< minus the zero point */
    struct ferrule_result result;
};

/** The end of a layer that adds the zero point before it rounds. */
struct ferrule_rounded {
    float low; /**< an integer, as high */
    float high;
    int32_t stored_offset; /**< added after the rounding */
};

/** ADD of int8 in float32. */
struct ferrule_fused_sum_params {
    struct ferrule_broadcast shape;
    float first_factor; /**< 2^-60 to 2^30, as second_factor */
    float second_factor;
    float constant;
    struct ferrule_rounded rounded;
};

/** SUB, DIV and PRELU of int8 in float32. */
struct ferrule_float_pair_params {
    struct ferrule_broadcast shape;
    float first_scale;
    float second_scale;
    float scale;
    int32_t first_zero_point;
    int32_t second_zero_point;
    int32_t zero_point;
    int32_t low;
    int32_t high;
};

/** MUL of int8 in float32. */
struct ferrule_float_product_params {
    struct ferrule_broadcast shape;
    int32_t first_offset;  /**< minus the zero point */
    int32_t second_offset; /**< minus the zero point */
    float factor;
    float zero_point;
    struct ferrule_rounded rounded;
};

/** MUL of int8 by one multiplication of the product. */
struct ferrule_scaled_product_params {
    struct ferrule_broadcast shape;
    int32_t first_offset;  /**< minus the zero point */
    int32_t second_offset; /**< minus the zero point */
    int32_t multiplier;    /**< the factor with 34 fractional bits, 0 or more */
    int32_t constant;      /**< with 16 fractional bits, includes rounding and zero point */
    int32_t low;
    int32_t high;
};

/** ADD, SUB and MUL of int8 in exact integers. */
struct ferrule_even_params {
    struct ferrule_broadcast shape;
    int32_t first;  /**< factor of the first input of a sum; minus the zero point for a product */
    int32_t second; /**< the same for the second input */
    int32_t multiplier; /**< of a product */
    int32_t constant;
    int32_t shift;      /**< 1 to 30 */
    int32_t zero_point; /**< added after the rounding */
    int32_t low;
    int32_t high;
};

/** ADD, SUB, MUL and DIV of float32. */
struct ferrule_binary_f32_params {
    struct ferrule_broadcast shape;
    float low;
    float high;
};

/** @brief Add int16 with any scales. */
void ferrule_add_s16(const struct ferrule_sum_params *params, const int16_t *first,
                     const int16_t *second, int16_t *output);
/** @brief Add int8, or subtract them, with any scales. */
void ferrule_rescaled_sum_s8(const struct ferrule_rescaled_sum_params *params, const int8_t *first,
                             const int8_t *second, int8_t *output);
/** @brief Subtract int16 with any scales. */
void ferrule_sub_s16(const struct ferrule_sum_params *params, const int16_t *first,
                     const int16_t *second, int16_t *output);
/** @brief Add int8, or subtract them, by two multiplications that were found to be exact. */
void ferrule_sum_s8(const struct ferrule_scaled_sum_params *params, const int8_t *first,
                    const int8_t *second, int8_t *output);
/** @brief Add or subtract int8 by tables that give the exact result for every pair. */
void ferrule_sum_table_s8(const struct ferrule_sum_table_params *params, const int8_t *first,
                          const int8_t *second, int8_t *output);
/** @brief Add int8, or subtract them, with factors that are whole numbers over a power of two,
 * rounding halves to even. */
void ferrule_even_sum_s8(const struct ferrule_even_params *params, const int8_t *first,
                         const int8_t *second, int8_t *output);
/** @brief Multiply int8 in the same way. */
void ferrule_even_product_s8(const struct ferrule_even_params *params, const int8_t *first,
                             const int8_t *second, int8_t *output);
/** @brief Add int8 by two fused multiply-adds, rounding halves to even (ONNX's rule). */
void ferrule_fused_sum_s8(const struct ferrule_fused_sum_params *params, const int8_t *first,
                          const int8_t *second, int8_t *output);
/** @brief Subtract int8 in float32, rounding halves to even (ONNX's rule). */
void ferrule_float_difference_s8(const struct ferrule_float_pair_params *params,
                                 const int8_t *first, const int8_t *second, int8_t *output);
/** @brief Multiply int8 in float32 step by step, rounding halves to even (ONNX's rule in float32).
 */
void ferrule_real_product_s8(const struct ferrule_float_pair_params *params, const int8_t *first,
                             const int8_t *second, int8_t *output);
/** @brief Divide int8 in float32, rounding halves to even (ONNX's rule); x / 0 is a limit, and 0 /
 * 0 the lower one. */
void ferrule_float_quotient_s8(const struct ferrule_float_pair_params *params, const int8_t *first,
                               const int8_t *second, int8_t *output);
/** @brief Multiply negative int8 by a factor in float32, rounding halves to even (ONNX's rule). */
void ferrule_float_prelu_s8(const struct ferrule_float_pair_params *params, const int8_t *first,
                            const int8_t *second, int8_t *output);
/** @brief Multiply int8 in float32, rounding halves to even (ONNX's rule). */
void ferrule_float_product_s8(const struct ferrule_float_product_params *params,
                              const int8_t *first, const int8_t *second, int8_t *output);
/** @brief Multiply int8 with a factor that was found to be exact. */
void ferrule_scaled_product_s8(const struct ferrule_scaled_product_params *params,
                               const int8_t *first, const int8_t *second, int8_t *output);
/** @brief Multiply int8 with a shift of -22 to -1. */
void ferrule_product_s8(const struct ferrule_product_params *params, const int8_t *first,
                        const int8_t *second, int8_t *output);
/** @brief Multiply int8 with any scales. */
void ferrule_mul_s8(const struct ferrule_product_params *params, const int8_t *first,
                    const int8_t *second, int8_t *output);
/** @brief Multiply int16. */
void ferrule_mul_s16(const struct ferrule_product_params *params, const int16_t *first,
                     const int16_t *second, int16_t *output);
/** @brief Add float32 and clamp. */
void ferrule_add_f32(const struct ferrule_binary_f32_params *params, const float *first,
                     const float *second, float *output);
/** @brief Add int32, modulo 2^32. */
void ferrule_add_s32(const struct ferrule_broadcast *shape, const int32_t *first,
                     const int32_t *second, int32_t *output);
/** @brief Subtract float32 and clamp. */
void ferrule_sub_f32(const struct ferrule_binary_f32_params *params, const float *first,
                     const float *second, float *output);
/** @brief Subtract int32, modulo 2^32. */
void ferrule_sub_s32(const struct ferrule_broadcast *shape, const int32_t *first,
                     const int32_t *second, int32_t *output);
/** @brief Multiply float32 and clamp. */
void ferrule_mul_f32(const struct ferrule_binary_f32_params *params, const float *first,
                     const float *second, float *output);
/** @brief Multiply int32, modulo 2^32. */
void ferrule_mul_s32(const struct ferrule_broadcast *shape, const int32_t *first,
                     const int32_t *second, int32_t *output);
/** @brief Divide int8; x / 0 is a limit of the output, and 0 / 0 is 0. */
void ferrule_div_s8(const struct ferrule_product_params *params, const int8_t *first,
                    const int8_t *second, int8_t *output);
/** @brief Divide float32 and clamp. */
void ferrule_div_f32(const struct ferrule_binary_f32_params *params, const float *first,
                     const float *second, float *output);
/** @brief Divide int32, rounding towards zero; x / 0 is 0, and -2^31 / -1 wraps. */
void ferrule_div_s32(const struct ferrule_broadcast *shape, const int32_t *first,
                     const int32_t *second, int32_t *output);
/** @brief Divide float32 in the precision of float64 and round down. */
void ferrule_floor_div_f32(const struct ferrule_broadcast *shape, const float *first,
                           const float *second, float *output);
/** @brief Divide int32 and round down; x / 0 is 0, and -2^31 / -1 wraps. */
void ferrule_floor_div_s32(const struct ferrule_broadcast *shape, const int32_t *first,
                           const int32_t *second, int32_t *output);
/** @brief Return the remainder of float32, with the sign of the divisor. */
void ferrule_floor_mod_f32(const struct ferrule_broadcast *shape, const float *first,
                           const float *second, float *output);
/** @brief Return the remainder of int32, with the sign of the divisor; 0 if that is 0. */
void ferrule_floor_mod_s32(const struct ferrule_broadcast *shape, const int32_t *first,
                           const int32_t *second, int32_t *output);
/** @brief Return the bits that differ, of int32. */
void ferrule_bitwise_xor_s32(const struct ferrule_broadcast *shape, const int32_t *first,
                             const int32_t *second, int32_t *output);
/** @brief Shift int32 to the right by 0 to 31 bits: a number beyond is the nearest of these. */
void ferrule_right_shift_s32(const struct ferrule_broadcast *shape, const int32_t *first,
                             const int32_t *second, int32_t *output);
/** @brief Square the difference of int8. */
void ferrule_squared_difference_s8(const struct ferrule_sum_params *params, const int8_t *first,
                                   const int8_t *second, int8_t *output);
/** @brief Square the difference of int16. */
void ferrule_squared_difference_s16(const struct ferrule_sum_params *params, const int16_t *first,
                                    const int16_t *second, int16_t *output);
/** @brief Square the difference of int32, modulo 2^32. */
void ferrule_squared_difference_s32(const struct ferrule_broadcast *shape, const int32_t *first,
                                    const int32_t *second, int32_t *output);
/** @brief Square the difference of float32. */
void ferrule_squared_difference_f32(const struct ferrule_broadcast *shape, const float *first,
                                    const float *second, float *output);
/** @brief Return the larger of two int8. */
void ferrule_maximum_s8(const struct ferrule_broadcast *shape, const int8_t *first,
                        const int8_t *second, int8_t *output);
/** @brief Return the larger of two int16. */
void ferrule_maximum_s16(const struct ferrule_broadcast *shape, const int16_t *first,
                         const int16_t *second, int16_t *output);
/** @brief Return the larger of two int32. */
void ferrule_maximum_s32(const struct ferrule_broadcast *shape, const int32_t *first,
                         const int32_t *second, int32_t *output);
/** @brief Return the larger of two float32, or the second if either is a NaN. */
void ferrule_maximum_f32(const struct ferrule_broadcast *shape, const float *first,
                         const float *second, float *output);
/** @brief Return the smaller of two int8. */
void ferrule_minimum_s8(const struct ferrule_broadcast *shape, const int8_t *first,
                        const int8_t *second, int8_t *output);
/** @brief Return the smaller of two int16. */
void ferrule_minimum_s16(const struct ferrule_broadcast *shape, const int16_t *first,
                         const int16_t *second, int16_t *output);
/** @brief Return the smaller of two int32. */
void ferrule_minimum_s32(const struct ferrule_broadcast *shape, const int32_t *first,
                         const int32_t *second, int32_t *output);
/** @brief Return the smaller of two float32, or the second if either is a NaN. */
void ferrule_minimum_f32(const struct ferrule_broadcast *shape, const float *first,
                         const float *second, float *output);

#ifdef __cplusplus
}
#endif

#endif

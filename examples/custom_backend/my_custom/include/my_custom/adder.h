/* SPDX-License-Identifier: Apache-2.0 */
/** @file The adder: in this example a loop on the core, for a real device the driver. */
#ifndef MY_CUSTOM_ADDER_H
#define MY_CUSTOM_ADDER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Conversion of an input to the common scale; see Term in stored_binary.py of Ferrule. */
struct my_custom_term {
    int32_t offset;
    int32_t multiplier;
    int32_t shift;
};

/** One addition of int8 tensors of the same shape. */
struct my_custom_add_s8 {
    int32_t elements;
    int32_t left_shift; /* of both inputs, 0 to 20 */
    struct my_custom_term first;
    struct my_custom_term second;
    int32_t multiplier; /* of the sum */
    int32_t shift;
    int32_t zero_point; /* of the output */
    int32_t low;
    int32_t high;
};

/** One addition of float32 tensors of the same shape. */
struct my_custom_add_f32 {
    int32_t elements;
    float low;
    float high;
};

/** @brief Add; `output` may be one of the inputs. Any context; takes no lock. */
void my_custom_add_s8(const struct my_custom_add_s8 *params, const int8_t *first,
                      const int8_t *second, int8_t *output);

/** @brief Add; `output` may be one of the inputs. Any context; takes no lock. */
void my_custom_add_f32(const struct my_custom_add_f32 *params, const float *first,
                       const float *second, float *output);

#ifdef __cplusplus
}
#endif

#endif /* MY_CUSTOM_ADDER_H */

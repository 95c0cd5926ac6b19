/* SPDX-License-Identifier: Apache-2.0 */
/** @file The layers of the sample backend. */
#ifndef EXAMPLE_SAMPLE_LAYERS_H
#define EXAMPLE_SAMPLE_LAYERS_H

#include "layer.h"

/** A layer that is prepared to run. */
struct sample_workload {
    /** Runs the layer; chosen when the workload is created. */
    void (*run)(const struct sample_workload *workload, const struct ferrule_tensor *const *inputs,
                const struct ferrule_tensor *const *outputs);
    uint32_t inputs;        /**< the first inputs, which are no constants */
    size_t count;           /**< elements of the output */
    size_t depth;           /**< FULLY_CONNECTED: products per output */
    size_t channels;        /**< FULLY_CONNECTED: outputs per row */
    int32_t rounding;       /**< FULLY_CONNECTED of int8: enum ferrule_rounding */
    int32_t zero_points[3]; /**< first input, second input, output */
    bool has_bias;          /**< FULLY_CONNECTED */
    struct factor first;    /**< ADD: to the common scale */
    struct factor second;   /**< ADD: to the common scale */
    struct factor result;   /**< ADD, RELU: to the output's scale */
    struct factor *factors; /**< FULLY_CONNECTED of int8: one per channel, owned */
    struct range range;     /**< int8 */
    float low;              /**< float32 */
    float high;             /**< float32 */
};

/** @brief The function `supports` of struct ferrule_layer_support. */
int32_t sample_supports(const struct ferrule_layer *layer, char *reason, size_t reason_bytes);

/** @brief Prepare a supported layer; false if there is not enough memory. */
bool sample_prepare(const struct ferrule_layer *layer, struct sample_workload *workload);

#endif

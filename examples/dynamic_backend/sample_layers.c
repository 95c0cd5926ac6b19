/* SPDX-License-Identifier: Apache-2.0 */
#include "sample_layers.h"

#include <math.h>
#include <stdlib.h>

#include "ferrule/kernels/requantize.h"
#include "sample_handles.h"

/** Bits after the point at the common scale of ADD. */
enum { ADD_SHIFT = 20 };

/** Beyond every int8, less any zero point. */
static const double FAR = 1024.0;

static int32_t activation_of(const struct ferrule_layer *layer)
{
    switch (layer->type) {
    case FERRULE_LAYER_ADD:
        return ((const struct ferrule_binary_descriptor *)layer->descriptor)->activation;
    case FERRULE_LAYER_FULLY_CONNECTED:
        return ((const struct ferrule_fully_connected_descriptor *)layer->descriptor)->activation;
    default:
        return FERRULE_ACTIVATION_RELU;
    }
}

int32_t sample_supports(const struct ferrule_layer *layer, char *reason, size_t reason_bytes)
{
    const struct ferrule_tensor *output = layer->outputs[0];
    uint32_t data_inputs = layer->type == FERRULE_LAYER_ADD ? 2 : 1;

    if (layer->type != FERRULE_LAYER_ADD && layer->type != FERRULE_LAYER_RELU &&
        layer->type != FERRULE_LAYER_FULLY_CONNECTED) {
        return refuse(reason, reason_bytes, FERRULE_ERR_UNSUPPORTED,
                      "the sample runs ADD, RELU and FULLY_CONNECTED, not layer type %d",
                      (int)layer->type);
    }
    if (layer->rounding != FERRULE_ROUNDING_TFLM && layer->type != FERRULE_LAYER_FULLY_CONNECTED) {
        return refuse(reason, reason_bytes, FERRULE_ERR_UNSUPPORTED,
                      "the sample rounds by rule %d in FULLY_CONNECTED only", (int)layer->rounding);
    }
    if (output->type != FERRULE_TYPE_INT8 && output->type != FERRULE_TYPE_FLOAT32) {
        return refuse(reason, reason_bytes, FERRULE_ERR_UNSUPPORTED,
                      "output '%s' is neither int8 nor float32", output->name);
    }
    if (require_tensor(output, "output", output->type, reason, reason_bytes) != FERRULE_OK) {
        return FERRULE_ERR_UNSUPPORTED;
    }
    for (uint32_t i = 0; i < data_inputs; ++i) {
        const struct ferrule_tensor *input = input_of(layer, i);

        if (require_tensor(input, "input", output->type, reason, reason_bytes) != FERRULE_OK) {
            return FERRULE_ERR_UNSUPPORTED;
        }
        if (layer->type != FERRULE_LAYER_FULLY_CONNECTED &&
            element_count(input) != element_count(output)) {
            return refuse(reason, reason_bytes, FERRULE_ERR_UNSUPPORTED,
                          "input '%s' is broadcast, which the sample does not do", input->name);
        }
    }
    if (layer->type == FERRULE_LAYER_FULLY_CONNECTED) {
        return require_weights(layer, output->type, reason, reason_bytes);
    }
    return FERRULE_OK;
}

/** Rounds once, halves up, or by ONNX's rule: the float32 product, halves to even. */
static int32_t round_once(int32_t rounding, struct factor factor, int32_t sum)
{
    double scaled = 0.0;

    if (rounding == FERRULE_ROUNDING_ONNX) {
        float real = ldexpf((float)factor.multiplier, factor.shift - 31); /* 24 bits: exact */

        scaled = (double)rintf((float)sum * real);
    } else {
        int64_t half = INT64_C(1) << (30 - factor.shift);

        scaled = (double)(((int64_t)sum * factor.multiplier + half) >> (31 - factor.shift));
    }
    return (int32_t)fmax(-FAR, fmin(FAR, scaled)); /* the range of int8 is nearer */
}

static int8_t finish(const struct sample_workload *workload, struct factor factor, int32_t sum)
{
    int32_t value = workload->rounding == FERRULE_ROUNDING_TFLM
                        ? ferrule_requantize(sum, factor.multiplier, factor.shift)
                        : round_once(workload->rounding, factor, sum);

    value = ferrule_add_wrap(value, workload->zero_points[2]);
    return (int8_t)ferrule_clamp(value, workload->range.low, workload->range.high);
}

static void add_s8(const struct sample_workload *workload,
                   const struct ferrule_tensor *const *inputs,
                   const struct ferrule_tensor *const *outputs)
{
    const int8_t *first = sample_elements(inputs[0]);
    const int8_t *second = sample_elements(inputs[1]);
    int8_t *output = sample_elements(outputs[0]);

    for (size_t i = 0; i < workload->count; ++i) {
        int32_t a = (first[i] - workload->zero_points[0]) * (1 << ADD_SHIFT);
        int32_t b = (second[i] - workload->zero_points[1]) * (1 << ADD_SHIFT);

        a = ferrule_requantize(a, workload->first.multiplier, workload->first.shift);
        b = ferrule_requantize(b, workload->second.multiplier, workload->second.shift);
        output[i] = finish(workload, workload->result, a + b);
    }
}

static void add_f32(const struct sample_workload *workload,
                    const struct ferrule_tensor *const *inputs,
                    const struct ferrule_tensor *const *outputs)
{
    const float *first = sample_elements(inputs[0]);
    const float *second = sample_elements(inputs[1]);
    float *output = sample_elements(outputs[0]);

    for (size_t i = 0; i < workload->count; ++i) {
        output[i] = ferrule_clamp_f32(first[i] + second[i], workload->low, workload->high);
    }
}

static void relu_s8(const struct sample_workload *workload,
                    const struct ferrule_tensor *const *inputs,
                    const struct ferrule_tensor *const *outputs)
{
    const int8_t *input = sample_elements(inputs[0]);
    int8_t *output = sample_elements(outputs[0]);

    for (size_t i = 0; i < workload->count; ++i) {
        output[i] = finish(workload, workload->result, input[i] - workload->zero_points[0]);
    }
}

static void relu_f32(const struct sample_workload *workload,
                     const struct ferrule_tensor *const *inputs,
                     const struct ferrule_tensor *const *outputs)
{
    const float *input = sample_elements(inputs[0]);
    float *output = sample_elements(outputs[0]);

    for (size_t i = 0; i < workload->count; ++i) {
        output[i] = input[i] < 0.0f ? 0.0f : input[i]; /* a NaN stays a NaN */
    }
}

static void fully_connected_s8(const struct sample_workload *workload,
                               const struct ferrule_tensor *const *inputs,
                               const struct ferrule_tensor *const *outputs)
{
    const int8_t *weights = sample_elements(inputs[1]);
    const int32_t *bias = workload->has_bias ? sample_elements(inputs[2]) : NULL;
    int8_t *output = sample_elements(outputs[0]);

    for (size_t i = 0; i < workload->count; ++i) {
        size_t channel = i % workload->channels;
        const int8_t *row =
            (const int8_t *)sample_elements(inputs[0]) + i / workload->channels * workload->depth;
        const int8_t *column = weights + channel * workload->depth;
        int32_t sum = 0;

        for (size_t j = 0; j < workload->depth; ++j) {
            sum += (row[j] - workload->zero_points[0]) * column[j];
        }
        if (bias != NULL) {
            sum = ferrule_add_wrap(sum, bias[channel]);
        }
        output[i] = finish(workload, workload->factors[channel], sum);
    }
}

static void fully_connected_f32(const struct sample_workload *workload,
                                const struct ferrule_tensor *const *inputs,
                                const struct ferrule_tensor *const *outputs)
{
    const float *weights = sample_elements(inputs[1]);
    const float *bias = workload->has_bias ? sample_elements(inputs[2]) : NULL;
    float *output = sample_elements(outputs[0]);

    for (size_t i = 0; i < workload->count; ++i) {
        size_t channel = i % workload->channels;
        const float *row =
            (const float *)sample_elements(inputs[0]) + i / workload->channels * workload->depth;
        const float *column = weights + channel * workload->depth;
        float sum = 0.0f;

        for (size_t j = 0; j < workload->depth; ++j) {
            sum += row[j] * column[j];
        }
        if (bias != NULL) {
            sum += bias[channel];
        }
        output[i] = ferrule_clamp_f32(sum, workload->low, workload->high);
    }
}

static void prepare_add(const struct ferrule_layer *layer, struct sample_workload *workload)
{
    double first = scale_of(layer->inputs[0]);
    double second = scale_of(layer->inputs[1]);
    double common = 2.0 * (first > second ? first : second);

    workload->first = factor_of(first / common);
    workload->second = factor_of(second / common);
    workload->result = factor_of(common / ((1 << ADD_SHIFT) * scale_of(layer->outputs[0])));
    workload->zero_points[1] = zero_point_of(layer->inputs[1]);
}

static bool prepare_factors(const struct ferrule_layer *layer, struct sample_workload *workload)
{
    const struct ferrule_quantization *weights = &layer->inputs[1]->quantization;

    workload->factors = calloc(workload->channels, sizeof(*workload->factors));
    if (workload->factors == NULL) {
        return false;
    }
    for (size_t c = 0; c < workload->channels; ++c) {
        double scale = (double)weights->scales[weights->count > 1 ? c : 0];
        double factor = scale_of(layer->inputs[0]) * scale / scale_of(layer->outputs[0]);

        if (layer->rounding == FERRULE_ROUNDING_ONNX) { /* both steps in float32 */
            float product = (float)scale_of(layer->inputs[0]) * (float)scale;

            factor = (double)(product / (float)scale_of(layer->outputs[0]));
        }
        workload->factors[c] = factor_of(factor);
    }
    return true;
}

bool sample_prepare(const struct ferrule_layer *layer, struct sample_workload *workload)
{
    const struct ferrule_tensor *output = layer->outputs[0];
    bool is_float = output->type == FERRULE_TYPE_FLOAT32;

    workload->inputs = layer->type == FERRULE_LAYER_ADD ? 2 : 1;
    workload->count = element_count(output);
    limits_of(activation_of(layer), &workload->low, &workload->high);
    if (!is_float) {
        workload->zero_points[0] = zero_point_of(layer->inputs[0]);
        workload->zero_points[2] = zero_point_of(output);
        workload->range = range_of(activation_of(layer), output);
    }
    if (layer->type == FERRULE_LAYER_ADD) {
        workload->run = is_float ? add_f32 : add_s8;
        if (!is_float) {
            prepare_add(layer, workload);
        }
        return true;
    }
    if (layer->type == FERRULE_LAYER_RELU) {
        workload->run = is_float ? relu_f32 : relu_s8;
        if (!is_float) {
            workload->result = factor_of(scale_of(layer->inputs[0]) / scale_of(output));
        }
        return true;
    }
    workload->channels = (size_t)layer->inputs[1]->dims[0];
    workload->depth = (size_t)layer->inputs[1]->dims[1];
    workload->has_bias = input_of(layer, 2) != NULL;
    workload->rounding = layer->rounding;
    workload->run = is_float ? fully_connected_f32 : fully_connected_s8;
    return is_float || prepare_factors(layer, workload);
}

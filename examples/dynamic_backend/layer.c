/* SPDX-License-Identifier: Apache-2.0 */
#include "layer.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

int32_t refuse(char *reason, size_t reason_bytes, int32_t status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(reason, reason_bytes, format, arguments); /* a long sentence is truncated */
    va_end(arguments);
    return status;
}

size_t element_count(const struct ferrule_tensor *tensor)
{
    size_t count = 1;

    for (uint32_t i = 0; i < tensor->rank; ++i) {
        count *= (size_t)tensor->dims[i];
    }
    return count;
}

const struct ferrule_tensor *input_of(const struct ferrule_layer *layer, uint32_t index)
{
    return index < layer->input_count ? layer->inputs[index] : NULL;
}

double scale_of(const struct ferrule_tensor *tensor)
{
    return (double)tensor->quantization.scales[0];
}

int32_t zero_point_of(const struct ferrule_tensor *tensor)
{
    return (int32_t)tensor->quantization.zero_points[0];
}

struct factor factor_of(double real)
{
    int exponent = 0;
    double fraction = frexp(real, &exponent);
    int64_t multiplier = (int64_t)floor(fraction * 2147483648.0 + 0.5);
    struct factor factor = {0, 0};

    if (multiplier == INT64_C(1) << 31) {
        multiplier /= 2;
        ++exponent;
    }
    if (exponent >= -31) {
        factor.multiplier = (int32_t)multiplier;
        factor.shift = exponent;
    }
    return factor;
}

void limits_of(int32_t activation, float *low, float *high)
{
    *low = -FLT_MAX;
    *high = FLT_MAX;
    if (activation == FERRULE_ACTIVATION_RELU || activation == FERRULE_ACTIVATION_RELU6) {
        *low = 0.0f;
    }
    if (activation == FERRULE_ACTIVATION_RELU6) {
        *high = 6.0f;
    }
    if (activation == FERRULE_ACTIVATION_RELU_N1_TO_1) {
        *low = -1.0f;
        *high = 1.0f;
    }
}

static int32_t stored(float limit, const struct ferrule_tensor *tensor)
{
    float steps = roundf(limit / tensor->quantization.scales[0]); /* halves away from zero */

    if (steps > 256.0f) { /* beyond every int8 */
        steps = 256.0f;
    }
    if (steps < -256.0f) {
        steps = -256.0f;
    }
    return (int32_t)steps + zero_point_of(tensor);
}

struct range range_of(int32_t activation, const struct ferrule_tensor *tensor)
{
    struct range range = {INT8_MIN, INT8_MAX};
    float low = 0.0f;
    float high = 0.0f;

    limits_of(activation, &low, &high);
    if (low > -FLT_MAX && stored(low, tensor) > range.low) {
        range.low = stored(low, tensor);
    }
    if (high < FLT_MAX && stored(high, tensor) < range.high) {
        range.high = stored(high, tensor);
    }
    return range;
}

int32_t require_tensor(const struct ferrule_tensor *tensor, const char *what, int32_t type,
                       char *reason, size_t reason_bytes)
{
    if (tensor == NULL) {
        return refuse(reason, reason_bytes, FERRULE_ERR_UNSUPPORTED, "the %s is absent", what);
    }
    if (tensor->type != type) {
        return refuse(reason, reason_bytes, FERRULE_ERR_UNSUPPORTED,
                      "%s '%s' has data type %d, expected %d", what, tensor->name,
                      (int)tensor->type, (int)type);
    }
    if (type == FERRULE_TYPE_INT8 && tensor->quantization.count != 1) {
        return refuse(reason, reason_bytes, FERRULE_ERR_UNSUPPORTED,
                      "%s '%s' has %u scales, expected one", what, tensor->name,
                      (unsigned)tensor->quantization.count);
    }
    return FERRULE_OK;
}

int32_t require_weights(const struct ferrule_layer *layer, int32_t type, char *reason,
                        size_t reason_bytes)
{
    const struct ferrule_tensor *weights = input_of(layer, 1);
    const struct ferrule_tensor *bias = input_of(layer, 2);
    int32_t bias_type = type == FERRULE_TYPE_INT8 ? FERRULE_TYPE_INT32 : FERRULE_TYPE_FLOAT32;

    if (weights == NULL || weights->data == NULL || weights->type != type) {
        return refuse(reason, reason_bytes, FERRULE_ERR_UNSUPPORTED,
                      "the weights are no constant of data type %d", (int)type);
    }
    if (bias != NULL && (bias->data == NULL || bias->type != bias_type)) {
        return refuse(reason, reason_bytes, FERRULE_ERR_UNSUPPORTED,
                      "bias '%s' is no constant of data type %d", bias->name, (int)bias_type);
    }
    if (type != FERRULE_TYPE_INT8) {
        return FERRULE_OK;
    }
    if (weights->quantization.count == 0 ||
        (weights->quantization.count > 1 && weights->quantization.axis != 0)) {
        return refuse(reason, reason_bytes, FERRULE_ERR_UNSUPPORTED,
                      "weights '%s' have no scales for their first axis", weights->name);
    }
    for (uint32_t i = 0; i < weights->quantization.count; ++i) {
        if (weights->quantization.zero_points[i] != 0) {
            return refuse(reason, reason_bytes, FERRULE_ERR_UNSUPPORTED,
                          "weights '%s' have a zero point, expected none", weights->name);
        }
    }
    return FERRULE_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ferrule_CpuRef_backend.so: the convolution of the reference backend behind the C interface.
 *
 * CpuRef itself is written in Python. This file wraps the portable C kernels of src_c/kernels,
 * which equal it bit for bit (int8) or except for rounding (float32). It supports CONV_2D of both
 * types.
 */
#include <stdlib.h>

#include "ferrule/kernels/conv2d.h"
#include "layer.h"

struct convolution {
    bool is_float;
    struct ferrule_conv2d_s8_params s8;
    struct ferrule_conv2d_f32_params f32;
    void *bias;           /**< zeros where the layer has none, owned; else null */
    int32_t *multipliers; /**< one per output channel, owned */
    int8_t *shifts;       /**< one per output channel, owned */
};

static int32_t supports(const struct ferrule_backend *backend, const struct ferrule_layer *layer,
                        char *reason, size_t reason_bytes)
{
    int32_t type = layer->outputs[0]->type;

    (void)backend;
    if (layer->type != FERRULE_LAYER_CONV_2D) {
        return refuse(reason, reason_bytes, FERRULE_ERR_UNSUPPORTED,
                      "this build of CpuRef runs CONV_2D, not layer type %d", (int)layer->type);
    }
    if (type != FERRULE_TYPE_INT8 && type != FERRULE_TYPE_FLOAT32) {
        return refuse(reason, reason_bytes, FERRULE_ERR_UNSUPPORTED,
                      "output '%s' is neither int8 nor float32", layer->outputs[0]->name);
    }
    if (require_tensor(layer->outputs[0], "output", type, reason, reason_bytes) != FERRULE_OK ||
        require_tensor(input_of(layer, 0), "image", type, reason, reason_bytes) != FERRULE_OK) {
        return FERRULE_ERR_UNSUPPORTED;
    }
    if (require_weights(layer, type, reason, reason_bytes) != FERRULE_OK) {
        return FERRULE_ERR_UNSUPPORTED;
    }
    if (layer->inputs[0]->dims[3] != layer->inputs[1]->dims[3]) {
        return refuse(reason, reason_bytes, FERRULE_ERR_UNSUPPORTED,
                      "the channels of weights '%s' are in groups", layer->inputs[1]->name);
    }
    return FERRULE_OK;
}

static struct ferrule_window window_of(const struct ferrule_layer *layer)
{
    const struct ferrule_conv2d_descriptor *descriptor = layer->descriptor;
    const int64_t *image = layer->inputs[0]->dims;
    const int64_t *weights = layer->inputs[1]->dims;
    const int64_t *output = layer->outputs[0]->dims;
    struct ferrule_window window = {
        .batches = (int32_t)image[0],
        .input_h = (int32_t)image[1],
        .input_w = (int32_t)image[2],
        .input_c = (int32_t)image[3],
        .output_h = (int32_t)output[1],
        .output_w = (int32_t)output[2],
        .kernel_h = (int32_t)weights[1],
        .kernel_w = (int32_t)weights[2],
        .stride_h = descriptor->stride_h,
        .stride_w = descriptor->stride_w,
        .dilation_h = descriptor->dilation_h,
        .dilation_w = descriptor->dilation_w,
        .pad_top = descriptor->padding.top,
        .pad_left = descriptor->padding.left,
    };

    return window;
}

static void destroy_workload(void *workload)
{
    struct convolution *convolution = workload;

    free(convolution->bias);
    free(convolution->multipliers);
    free(convolution->shifts);
    free(convolution);
}

static bool prepare_s8(struct convolution *convolution, const struct ferrule_layer *layer,
                       int32_t output_c, const void *bias)
{
    const struct ferrule_conv2d_descriptor *descriptor = layer->descriptor;
    const struct ferrule_quantization *weights = &layer->inputs[1]->quantization;
    struct range range = range_of(descriptor->activation, layer->outputs[0]);
    struct ferrule_conv2d_s8_params params = {
        .window = window_of(layer),
        .output_c = output_c,
        .group_input_c = (int32_t)layer->inputs[1]->dims[3],
        .group_output_c = output_c,
        .input_zero_point = zero_point_of(layer->inputs[0]),
        .weights = layer->inputs[1]->data,
        .bias = bias,
        .output = {zero_point_of(layer->outputs[0]), range.low, range.high},
    };

    convolution->multipliers = calloc((size_t)output_c, sizeof(*convolution->multipliers));
    convolution->shifts = calloc((size_t)output_c, sizeof(*convolution->shifts));
    if (convolution->multipliers == NULL || convolution->shifts == NULL) {
        return false;
    }
    for (int32_t c = 0; c < output_c; ++c) {
        double scale = (double)weights->scales[weights->count > 1 ? c : 0];
        struct factor factor =
            factor_of(scale_of(layer->inputs[0]) * scale / scale_of(layer->outputs[0]));

        convolution->multipliers[c] = factor.multiplier;
        convolution->shifts[c] = (int8_t)factor.shift;
    }
    params.multipliers = convolution->multipliers;
    params.shifts = convolution->shifts;
    convolution->s8 = params;
    return true;
}

static bool prepare(struct convolution *convolution, const struct ferrule_layer *layer)
{
    const struct ferrule_conv2d_descriptor *descriptor = layer->descriptor;
    const struct ferrule_tensor *bias_tensor = input_of(layer, 2);
    int32_t output_c = (int32_t)layer->inputs[1]->dims[0];
    const void *bias = bias_tensor != NULL ? bias_tensor->data : NULL;

    if (bias == NULL) {
        convolution->bias = calloc((size_t)output_c, sizeof(int32_t)); /* float32 is as wide */
        bias = convolution->bias;
    }
    if (bias == NULL) {
        return false;
    }
    convolution->is_float = layer->outputs[0]->type == FERRULE_TYPE_FLOAT32;
    if (!convolution->is_float) {
        return prepare_s8(convolution, layer, output_c, bias);
    }
    convolution->f32.window = window_of(layer);
    convolution->f32.view = ferrule_whole_view(&convolution->f32.window, output_c);
    convolution->f32.output_c = output_c;
    convolution->f32.block = 1; /* weights in the order of the model */
    convolution->f32.store = ferrule_float_blocks_1;
    convolution->f32.weights = layer->inputs[1]->data;
    convolution->f32.bias = bias;
    limits_of(descriptor->activation, &convolution->f32.low, &convolution->f32.high);
    return true;
}

static int32_t create_workload(const struct ferrule_backend *backend,
                               const struct ferrule_workload_info *info, void **workload,
                               char *reason, size_t reason_bytes)
{
    struct convolution *convolution = NULL;
    int32_t status = supports(backend, info->layer, reason, reason_bytes);

    if (status != FERRULE_OK) {
        return status;
    }
    convolution = calloc(1, sizeof(*convolution));
    if (convolution == NULL) {
        return FERRULE_ERR_MEMORY;
    }
    if (!prepare(convolution, info->layer)) {
        destroy_workload(convolution);
        return FERRULE_ERR_MEMORY;
    }
    *workload = convolution;
    return FERRULE_OK;
}

static int32_t execute(void *workload, const struct ferrule_tensor *const *inputs,
                       const struct ferrule_tensor *const *outputs, void **event, char *reason,
                       size_t reason_bytes)
{
    const struct convolution *convolution = workload;

    (void)event;
    (void)reason;
    (void)reason_bytes;
    if (convolution->is_float) {
        ferrule_conv2d_f32(&convolution->f32, inputs[0]->data, outputs[0]->data);
    } else {
        ferrule_conv2d_s8(&convolution->s8, inputs[0]->data, outputs[0]->data);
    }
    return FERRULE_OK;
}

static const struct ferrule_layer_support layer_support = {
    .size_bytes = sizeof(layer_support),
    .supports = supports,
};

static const struct ferrule_workloads workloads = {
    .size_bytes = sizeof(workloads),
    .create = create_workload,
    .execute = execute,
    .destroy = destroy_workload,
};

static const struct ferrule_backend backend = {
    .size_bytes = sizeof(backend),
    .api_major = FERRULE_BACKEND_API_MAJOR,
    .api_minor = FERRULE_BACKEND_API_MINOR,
    .layer_support = &layer_support,
    .workloads = &workloads,
};

const char *GetBackendId(void)
{
    return "CpuRef";
}

void GetVersion(uint32_t *major, uint32_t *minor)
{
    *major = FERRULE_BACKEND_API_MAJOR;
    *minor = FERRULE_BACKEND_API_MINOR;
}

const struct ferrule_backend *BackendFactory(void)
{
    return &backend;
}

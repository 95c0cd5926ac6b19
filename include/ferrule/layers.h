/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Layer types, element types and descriptors as dynamic backends see them.
 *
 * Made by ferrule.backends.dynamic.header from the descriptors of the Python package; do not edit.
 * Numbers are never given to something else. Arrays of a descriptor belong to the host and last as
 * long as the call that they are handed to.
 */
#ifndef FERRULE_LAYERS_H
#define FERRULE_LAYERS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What the elements of a tensor are. */
enum ferrule_data_type {
    FERRULE_TYPE_FLOAT32 = 1,
    FERRULE_TYPE_FLOAT16 = 2,
    FERRULE_TYPE_INT8 = 3,
    FERRULE_TYPE_INT16 = 4,
    FERRULE_TYPE_INT32 = 5,
    FERRULE_TYPE_INT64 = 6,
    FERRULE_TYPE_UINT8 = 7,
    FERRULE_TYPE_BOOL = 8,
};

/** The operators, and what the optimizer adds. */
enum ferrule_layer_type {
    FERRULE_LAYER_ADD = 1,
    FERRULE_LAYER_AVERAGE_POOL_2D = 2,
    FERRULE_LAYER_CONCATENATION = 3,
    FERRULE_LAYER_CONV_2D = 4,
    FERRULE_LAYER_DEPTHWISE_CONV_2D = 5,
    FERRULE_LAYER_DEQUANTIZE = 6,
    FERRULE_LAYER_EXPAND_DIMS = 7,
    FERRULE_LAYER_FULLY_CONNECTED = 8,
    FERRULE_LAYER_HARD_SWISH = 9,
    FERRULE_LAYER_LEAKY_RELU = 10,
    FERRULE_LAYER_LOGISTIC = 11,
    FERRULE_LAYER_MAXIMUM = 12,
    FERRULE_LAYER_MAX_POOL_2D = 13,
    FERRULE_LAYER_MEAN = 14,
    FERRULE_LAYER_MINIMUM = 15,
    FERRULE_LAYER_MUL = 16,
    FERRULE_LAYER_PAD = 17,
    FERRULE_LAYER_PADV2 = 18,
    FERRULE_LAYER_PRELU = 19,
    FERRULE_LAYER_QUANTIZE = 20,
    FERRULE_LAYER_RELU = 21,
    FERRULE_LAYER_RELU6 = 22,
    FERRULE_LAYER_RELU_N1_TO_1 = 23,
    FERRULE_LAYER_RESHAPE = 24,
    FERRULE_LAYER_SLICE = 25,
    FERRULE_LAYER_SOFTMAX = 26,
    FERRULE_LAYER_SPLIT = 27,
    FERRULE_LAYER_SQUEEZE = 28,
    FERRULE_LAYER_STRIDED_SLICE = 29,
    FERRULE_LAYER_SUB = 30,
    FERRULE_LAYER_SUM = 31,
    FERRULE_LAYER_TANH = 32,
    FERRULE_LAYER_TRANSPOSE = 33,
    FERRULE_LAYER_NEG = 34,
    FERRULE_LAYER_FLOOR = 35,
    FERRULE_LAYER_CEIL = 36,
    FERRULE_LAYER_CONVERT_FP16_TO_FP32 = 1001,
    FERRULE_LAYER_CONVERT_FP32_TO_FP16 = 1002,
    FERRULE_LAYER_DEBUG = 1003,
    FERRULE_LAYER_MEM_COPY = 1004,
    FERRULE_LAYER_MEM_IMPORT = 1005,
    FERRULE_LAYER_PRE_COMPILED = 1006,
};

/** A clamp that follows an operator. */
enum ferrule_activation {
    FERRULE_ACTIVATION_NONE = 0,
    FERRULE_ACTIVATION_RELU = 1,
    FERRULE_ACTIVATION_RELU6 = 2,
    FERRULE_ACTIVATION_RELU_N1_TO_1 = 3,
};

/** Pixels around an image; they hold zero, the zero point for integers. */
struct ferrule_padding {
    int32_t top;
    int32_t bottom;
    int32_t left;
    int32_t right;
};

/** ADD, MUL, SUB. Two inputs that broadcast as numpy's do, one output; for ADD, SUB and MUL. */
struct ferrule_binary_descriptor {
    int32_t activation;
};

/** AVERAGE_POOL_2D, MAX_POOL_2D. One input and one output, NHWC. Padded pixels do not count. */
struct ferrule_pool2d_descriptor {
    int32_t pool_h;
    int32_t pool_w;
    int32_t stride_h;
    int32_t stride_w;
    struct ferrule_padding padding;
    int32_t activation;
};

/** CONCATENATION. One or more inputs, one output. */
struct ferrule_concatenation_descriptor {
    /** Non-negative. */
    int32_t axis;
};

/** CONV_2D. Inputs: NHWC image, OHWI weights, optional bias [O]. One output, NHWC. */
struct ferrule_conv2d_descriptor {
    int32_t stride_h;
    int32_t stride_w;
    int32_t dilation_h;
    int32_t dilation_w;
    struct ferrule_padding padding;
    int32_t activation;
};

/**
 * DEPTHWISE_CONV_2D. Inputs: NHWC image, weights [1, H, W, C * multiplier], optional bias. One
 * output, NHWC.
 */
struct ferrule_depthwise_conv2d_descriptor {
    int32_t depth_multiplier;
    int32_t stride_h;
    int32_t stride_w;
    int32_t dilation_h;
    int32_t dilation_w;
    struct ferrule_padding padding;
    int32_t activation;
};

/** EXPAND_DIMS. One input, one output. */
struct ferrule_expand_dims_descriptor {
    /** Where the new axis stands in the output, non-negative. */
    int32_t axis;
};

/**
 * FULLY_CONNECTED. Inputs: data whose elements are a multiple of D, weights [O, D], optional bias
 * [O]. One output.
 */
struct ferrule_fully_connected_descriptor {
    /** The output keeps all dimensions of the input but the last; else it is [batch, O]. */
    bool keep_num_dims;
    int32_t activation;
};

/** LEAKY_RELU. One input, one output. */
struct ferrule_leaky_relu_descriptor {
    /** Factor of the negative values, exactly representable in float32. */
    double alpha;
};

/** MEAN, SUM. One input, one output. */
struct ferrule_reduce_descriptor {
    /** Non-negative, ascending, without repetition. */
    const int32_t *axes;
    uint32_t axes_count;
    bool keep_dims;
};

/** PAD. One input, one output. PAD fills with zero, as stored the output's zero point. */
struct ferrule_pad_descriptor {
    /** Elements added before, per axis. */
    const int32_t *before;
    uint32_t before_count;
    /** Elements added after, per axis. */
    const int32_t *after;
    uint32_t after_count;
};

/** PADV2. One input, one output. */
struct ferrule_pad_v2_descriptor {
    const int32_t *before;
    uint32_t before_count;
    const int32_t *after;
    uint32_t after_count;
    /** The fill, as stored (an int for integer tensors, in the output's quantisation). */
    double value;
};

/** RESHAPE. One input, one output. */
struct ferrule_reshape_descriptor {
    /** The new shape; at most one extent is -1 and is inferred. */
    const int32_t *shape;
    uint32_t shape_count;
};

/** SLICE. One input, one output. */
struct ferrule_slice_descriptor {
    const int32_t *begin;
    uint32_t begin_count;
    /** Per axis; -1 means up to the end. */
    const int32_t *size;
    uint32_t size_count;
};

/** SOFTMAX. One input, one output, over the last axis. */
struct ferrule_softmax_descriptor {
    /** Factor of the input, exactly representable in float32. */
    double beta;
};

/** SPLIT. One input, `splits` outputs of equal extent along the axis. */
struct ferrule_split_descriptor {
    /** Non-negative. */
    int32_t axis;
    int32_t splits;
};

/** SQUEEZE. One input, one output. */
struct ferrule_squeeze_descriptor {
    /** Axes of extent 1 to remove, non-negative and ascending; () removes all of extent 1. */
    const int32_t *axes;
    uint32_t axes_count;
};

/** STRIDED_SLICE. One input, one output; bit i of a mask stands for axis i, as in TensorFlow. */
struct ferrule_strided_slice_descriptor {
    const int32_t *begin;
    uint32_t begin_count;
    const int32_t *end;
    uint32_t end_count;
    const int32_t *strides;
    uint32_t strides_count;
    int32_t begin_mask;
    int32_t end_mask;
    int32_t shrink_axis_mask;
};

/** TRANSPOSE. One input, one output. */
struct ferrule_transpose_descriptor {
    /** Axis i of the output is axis permutation[i] of the input. */
    const int32_t *permutation;
    uint32_t permutation_count;
};

/** DEBUG. One input, one output; what is done with the values is the runtime's business. */
struct ferrule_debug_descriptor {
    /** The layer that computed the values. */
    const char *layer;
    /** Which of its outputs they are. */
    int32_t output;
};

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_LAYERS_H */

// SPDX-License-Identifier: Apache-2.0
// The parameters of the kernels, which parameters.py reads and fills. The first member is the number of work items that
// have work: one per output element, per row of a layer of rows, per pixel of a convolution. Arrays have a number for
// each of six axes; strides are steps in elements, 0 on axes along which the input is repeated.

// of convolutions and pools, and of resize_bilinear_s8 and resize_bilinear_f32, without a window
struct window_parameters {
    int items;
    int height, width, channels;
    int output_height, output_width;
    int output_channels; // those that the launch of a convolution computes
    int window_height, window_width;
    int stride_h, stride_w, dilation_h, dilation_w;
    int padding_top, padding_left;
    int multiplier;     // output channels per input channel; used by depthwise_conv2d_s8
    int channel_stride; // weights per tap: the output channels, rounded up to 8
    int input_zero_point, output_zero_point;
    int low, high;
    int groups; // of channels; used by conv2d_s8, which is launched once for each
    int group;  // the one that the launch computes
};

// of the kernels with one work item per element, which read neighbours of none; each uses some
struct elementwise_parameters {
    int items;
    int same_shape;
    int extents[6];
    int first_strides[6], second_strides[6], third_strides[6];
    int first_offset, second_offset;
    int left_shift;
    int first_multiplier, first_shift, second_multiplier, second_shift;
    int subtract;
    int multiplier, shift, zero_point;
    int low, high;               // the limits of results; the bits of float32 in binary_f32 and unary_f32
    int operation;               // the code of the layer type; in comparisons the sum of the relations that are true
    int factor;                  // a float32: the slope of LEAKY_RELU in unary_f32, the scale in quantize_f32_s8
    int input_type, output_type; // the codes of the element types; used by cast
};

// of move_8 to move_64
struct move_parameters {
    int items;
    int first;               // the number of the input's first element, counted from 1 through all inputs
    int count;               // the number of the input's elements
    int fills;               // whether the kernel writes the fill, too
    int fill_low, fill_high; // the fill, 32 bits each
};

// of the kernels of reductions
struct reduce_parameters {
    int items;
    int count;   // the number of elements that each result combines
    int largest; // whether the largest element is selected, or else the smallest
    int offset;  // the number with which an integer sum begins
    int divisor; // of a sum of floats
    int multiplier, shift, zero_point;
};

// of the kernels of softmax.cl and normalize.cl
struct row_parameters {
    int items;
    int length;
    int operation; // the code of the layer type, in normalize_f32
    int scale;     // a float32, in normalize_f32
    int zero_point;
    int multiplier, shift; // from Q5 to differences of stored values, in log_softmax_s8
    int least;             // the least difference whose exponential may count
};

// of gather_8 to gather_64
struct gather_parameters {
    int items;
    int run;        // elements of a run, which one group of indices selects
    int count;      // runs that are selected from a block of the data
    int outer;      // blocks from which the same indices select
    int block;      // elements of a block
    int depth;      // indices of a group
    int extents[6]; // the limit of each index of a group
    int strides[6];
};

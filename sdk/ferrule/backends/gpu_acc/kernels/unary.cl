// SPDX-License-Identifier: Apache-2.0
// Functions of one tensor, computed in float64 and rounded once: one element per work item.

#ifdef cl_khr_fp64
static double unary_of(__constant const struct elementwise_parameters *p, double x)
{
    switch (p->operation) {
    case LAYER_ABS:
        return fabs(x);
    case LAYER_CEIL:
        return ceil(x);
    case LAYER_COS:
        return cos(x);
    case LAYER_ELU:
        return x < 0.0 ? expm1(x) : x;
    case LAYER_EXP:
        return exp(x);
    case LAYER_FLOOR:
        return floor(x);
    case LAYER_HARD_SWISH:
        return x * fmin(fmax(x + 3.0, 0.0), 6.0) / 6.0;
    case LAYER_LEAKY_RELU:
        return x > 0.0 ? x : x * (double)as_float(p->factor);
    case LAYER_LOG:
        return log(x);
    case LAYER_LOGISTIC:
        return 1.0 / (1.0 + exp(-x));
    case LAYER_NEG:
        return -x;
    case LAYER_ROUND: {
        const double whole = rint(x); // halves to even; -0 only for -0
        return whole == 0.0 && x != 0.0 ? 0.0 : whole;
    }
    case LAYER_RSQRT:
        return 1.0 / (double)convert_float(sqrt(x));
    case LAYER_SIGN:
        return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x == 0.0 ? 0.0 : x; // 0 for -0, NaN for NaN
    case LAYER_SIN:
        return sin(x);
    case LAYER_SQRT:
        return sqrt(x);
    case LAYER_SQUARE:
        return x * x;
    case LAYER_TANH:
        return tanh(x);
    default:
        return x;
    }
}

__kernel void unary_f32(__constant const struct elementwise_parameters *p, __global const float *input,
                        __global float *output, const ulong4 starts)
{
    input += starts.s0 / sizeof(*input);
    output += starts.s3 / sizeof(*output);
    const int element = (int)get_global_id(0);
    if (element < p->items) {
        output[element] = limited(convert_float(unary_of(p, input[element])), p->low, p->high);
    }
}
#endif

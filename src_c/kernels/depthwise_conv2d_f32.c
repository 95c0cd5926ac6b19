/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/depthwise_conv2d.h"

#define FERRULE_KERNEL     ferrule_depthwise_conv2d_f32
#define FERRULE_PARAMS     ferrule_depthwise_conv2d_f32_params
#define FERRULE_VIEW       ferrule_whole_view(&params->window, params->output_c)
#define FERRULE_DEPTH      1
#define FERRULE_GROUP      params->output_c
#define FERRULE_OWN        1
#define FERRULE_MULTIPLIER params->depth_multiplier
#include "ferrule/kernels/float_rows.inc.h"

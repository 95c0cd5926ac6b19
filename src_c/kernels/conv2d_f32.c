/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/conv2d.h"

#define FERRULE_KERNEL     ferrule_conv2d_f32
#define FERRULE_PARAMS     ferrule_conv2d_f32_params
#define FERRULE_VIEW       params->view
#define FERRULE_DEPTH      window->input_c
#define FERRULE_GROUP      params->output_c
#define FERRULE_OWN        0
#define FERRULE_MULTIPLIER 1
#include "ferrule/kernels/float_rows.inc.h"

/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file DETECTION_POSTPROCESS. Any context; the kernel keeps no state between calls.
 */
#ifndef FERRULE_KERNELS_DETECTION_H_INCLUDED
#define FERRULE_KERNELS_DETECTION_H_INCLUDED

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { FERRULE_DETECTION_COORDINATES = 4 };

struct ferrule_detection_params {
    int32_t boxes;
    int32_t coordinates; /**< of an encoded box, of which the first four are used */
    int32_t classes;     /**< without the background */
    int32_t background;  /**< scores of a box in front of those of the classes: 0 or 1 */
    int32_t most;        /**< detections */
    int32_t most_of_a_class;
    bool regular; /**< whether classes are selected one by one */
    float y_scale;
    float x_scale;
    float h_scale;
    float w_scale;
    float score_threshold;
    float iou_threshold;
};

/**
 * @brief Decode boxes, and select the best ones that do not overlap a better one.
 *
 * What lies behind the selected boxes is 0. The scratch is aligned to 4 bytes and has
 * 4 * (5 * boxes + max(boxes, most)) + boxes bytes.
 */
void ferrule_detection_postprocess_f32(const struct ferrule_detection_params *params,
                                       const float *encoded, const float *scores,
                                       const float *anchors, float *boxes, float *classes,
                                       float *best, float *number, void *scratch);

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/detection.h"

#include "ferrule/kernels/math.h"

enum { TOP, LEFT, BOTTOM, RIGHT, SIDES = FERRULE_DETECTION_COORDINATES };

/* The boxes among which detections are selected. */
struct candidates {
    float (*boxes)[SIDES];
    float *scores;
    int32_t
        *notes; /* the class of a box; if classes are selected one by one, the box of a result */
    bool *active;
    int32_t count;
    float iou_threshold;
};

static void decode_axis(double offset, double extent, double centre, double size, float *begin,
                        float *end)
{
    float middle = (float)(offset * size + centre);
    float half = (float)(0.5 * ferrule_exp(extent) * size);

    *begin = middle - half;
    *end = middle + half;
}

static void decode(const struct ferrule_detection_params *params, const float *encoded,
                   const float *anchors, float (*boxes)[SIDES])
{
    for (int32_t i = 0; i < params->boxes; ++i) {
        decode_axis((double)encoded[0] / (double)params->y_scale,
                    (double)encoded[2] / (double)params->h_scale, (double)anchors[0],
                    (double)anchors[2], &boxes[i][TOP], &boxes[i][BOTTOM]);
        decode_axis((double)encoded[1] / (double)params->x_scale,
                    (double)encoded[3] / (double)params->w_scale, (double)anchors[1],
                    (double)anchors[3], &boxes[i][LEFT], &boxes[i][RIGHT]);
        encoded += params->coordinates;
        anchors += SIDES;
    }
}

static float larger(float a, float b)
{
    return a < b ? b : a;
}

static float smaller(float a, float b)
{
    return b < a ? b : a;
}

static float overlap(const float *a, const float *b)
{
    float area_a = (a[BOTTOM] - a[TOP]) * (a[RIGHT] - a[LEFT]);
    float area_b = (b[BOTTOM] - b[TOP]) * (b[RIGHT] - b[LEFT]);

    if (area_a <= 0.0f || area_b <= 0.0f) {
        return 0.0f;
    }

    float height = larger(smaller(a[BOTTOM], b[BOTTOM]) - larger(a[TOP], b[TOP]), 0.0f);
    float width = larger(smaller(a[RIGHT], b[RIGHT]) - larger(a[LEFT], b[LEFT]), 0.0f);
    float common = height * width;

    return common / (area_a + area_b - common);
}

static void activate(struct candidates *candidates, float score_threshold)
{
    for (int32_t i = 0; i < candidates->count; ++i) {
        candidates->active[i] = candidates->scores[i] >= score_threshold;
    }
}

/* Return the best active box, of equal ones the first, and deactivate it with those that overlap
 * it; -1 if no box is active. */
static int32_t take(struct candidates *candidates)
{
    int32_t best = -1;

    for (int32_t i = 0; i < candidates->count; ++i) {
        if (candidates->active[i] &&
            (best < 0 || candidates->scores[i] > candidates->scores[best])) {
            best = i;
        }
    }
    if (best < 0) {
        return best;
    }
    candidates->active[best] = false;
    for (int32_t i = 0; i < candidates->count; ++i) {
        if (candidates->active[i] &&
            overlap(candidates->boxes[best], candidates->boxes[i]) > candidates->iou_threshold) {
            candidates->active[i] = false;
        }
    }
    return best;
}

/* Select among all boxes, each with its best class, and return the number of results. */
static int32_t select_fast(const struct ferrule_detection_params *params, const float *scores,
                           struct candidates *candidates, float *classes, float *best,
                           float (*boxes)[SIDES])
{
    const int32_t stride = params->background + params->classes;
    int32_t number = 0;

    for (int32_t i = 0; i < params->boxes; ++i) {
        const float *own = scores + i * stride + params->background;
        int32_t class = 0;

        for (int32_t c = 1; c < params->classes; ++c) {
            class = own[c] > own[class] ? c : class;
        }
        candidates->notes[i] = class;
        candidates->scores[i] = own[class];
    }
    activate(candidates, params->score_threshold);
    while (number < params->most) {
        int32_t i = take(candidates);

        if (i < 0) {
            break;
        }
        for (int32_t side = 0; side < SIDES; ++side) {
            boxes[number][side] = candidates->boxes[i][side];
        }
        classes[number] = (float)candidates->notes[i];
        best[number++] = candidates->scores[i];
    }
    return number;
}

/* Insert a result behind all that are not worse, and return the number of results. */
static int32_t insert(int32_t number, int32_t most, struct candidates *candidates, int32_t box,
                      int32_t class, float *classes, float *best)
{
    float score = candidates->scores[box];
    int32_t place = number;

    while (place > 0 && best[place - 1] < score) {
        --place;
    }
    if (place == most) {
        return number;
    }
    number = number < most ? number + 1 : most;
    for (int32_t i = number - 1; i > place; --i) {
        candidates->notes[i] = candidates->notes[i - 1];
        classes[i] = classes[i - 1];
        best[i] = best[i - 1];
    }
    candidates->notes[place] = box;
    classes[place] = (float)class;
    best[place] = score;
    return number;
}

/* Select among the boxes of each class, and return the number of results. */
static int32_t select_regular(const struct ferrule_detection_params *params, const float *scores,
                              struct candidates *candidates, float *classes, float *best,
                              float (*boxes)[SIDES])
{
    const int32_t stride = params->background + params->classes;
    int32_t number = 0;

    for (int32_t class = 0; class < params->classes; ++class) {
        for (int32_t i = 0; i < params->boxes; ++i) {
            candidates->scores[i] = scores[i * stride + params->background + class];
        }
        activate(candidates, params->score_threshold);
        for (int32_t k = 0; k < params->most_of_a_class; ++k) {
            int32_t box = take(candidates);

            if (box < 0) {
                break;
            }
            number = insert(number, params->most, candidates, box, class, classes, best);
        }
    }
    for (int32_t i = 0; i < number; ++i) {
        for (int32_t side = 0; side < SIDES; ++side) {
            boxes[i][side] = candidates->boxes[candidates->notes[i]][side];
        }
    }
    return number;
}

void ferrule_detection_postprocess_f32(const struct ferrule_detection_params *params,
                                       const float *encoded, const float *scores,
                                       const float *anchors, float *boxes, float *classes,
                                       float *best, float *number, void *scratch)
{
    const int32_t notes = params->boxes > params->most ? params->boxes : params->most;
    float *decoded = scratch;
    float *of_boxes = decoded + SIDES * params->boxes;
    int32_t *noted = (void *)(of_boxes + params->boxes);
    struct candidates candidates = {(void *)decoded,         of_boxes,      noted,
                                    (void *)(noted + notes), params->boxes, params->iou_threshold};

    decode(params, encoded, anchors, candidates.boxes);

    int32_t found = params->regular
                        ? select_regular(params, scores, &candidates, classes, best, (void *)boxes)
                        : select_fast(params, scores, &candidates, classes, best, (void *)boxes);

    number[0] = (float)found;
    for (int32_t i = found; i < params->most; ++i) {
        for (int32_t side = 0; side < SIDES; ++side) {
            boxes[i * SIDES + side] = 0.0f;
        }
        classes[i] = 0.0f;
        best[i] = 0.0f;
    }
}

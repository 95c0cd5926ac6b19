/* SPDX-License-Identifier: Apache-2.0 */
/* Template, included once per element type: a depthwise convolution that processes an output row as
 * one run of elements. Required macros: KERNEL, PARAMS, SOURCE, TARGET (element of the image),
 * OUTPUT, STEP (elements of a vector), COMPUTE(params, image, output, place, count), LAY_OUT. */

FERRULE_TARGET static void FERRULE_JOIN(KERNEL, _rows)(const PARAMS *params, const TARGET *image,
                                                       OUTPUT *output, int32_t first, int32_t end)
{
    const PARAMS own = *params; /* which no store can change */

    for (int32_t row = first; row < end; ++row) {
        const TARGET *window = image + row * own.row_step;
        OUTPUT *target = output + row * own.row_elements;
        int32_t place = 0;

        for (int32_t i = 0; i < own.row_elements; i += STEP) {
            COMPUTE(&own, window + i, target + i, place, own.row_elements - i);
            place = place + 1 == own.period ? 0 : place + 1;
        }
    }
}

/* The data that the threads share. */
struct FERRULE_JOIN(KERNEL, _work) {
    const PARAMS *params;
    const TARGET *image;
    OUTPUT *output;
};

static void FERRULE_JOIN(KERNEL, _piece)(void *context, int32_t piece)
{
    const struct FERRULE_JOIN(KERNEL, _work) *work = context;
    struct ferrule_part part = ferrule_part_of(work->params->output_h, piece, work->params->pieces);

    FERRULE_JOIN(KERNEL, _rows)(work->params, work->image, work->output, part.first, part.end);
}

void KERNEL(const PARAMS *params, const SOURCE *input, OUTPUT *output, void *scratch,
            struct ferrule_pool *pool)
{
    const struct ferrule_host_image *image = &params->image;
    struct FERRULE_JOIN(KERNEL, _work) work = {params, scratch, output};

    for (int32_t b = 0; b < image->batches; ++b) {
        LAY_OUT(image, input, scratch);
        ferrule_divide(pool, FERRULE_JOIN(KERNEL, _piece), &work, params->pieces);
        input += image->input_h * image->input_w * image->input_c;
        work.output += params->output_h * params->row_elements;
    }
}

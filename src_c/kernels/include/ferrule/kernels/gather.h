/* SPDX-License-Identifier: Apache-2.0 */
/* Moves runs of bytes from or to places that indices name at run time. An index that is out of
 * range counts as the nearest one in range. Every function is reentrant; input and output must not
 * overlap. */
#ifndef FERRULE_KERNELS_GATHER_H
#define FERRULE_KERNELS_GATHER_H

#include "ferrule/kernels/copy.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FERRULE_GATHER_AXES 5

struct ferrule_gather_params {
    int32_t batches; /* each has indices of its own */
    int32_t outer;   /* blocks of the input per batch, all with the same indices */
    int32_t count;   /* runs that are taken from each block */
    int32_t depth;   /* indices per run, at most FERRULE_GATHER_AXES */
    int32_t limits[FERRULE_GATHER_AXES];  /* the largest value of each index */
    int32_t strides[FERRULE_GATHER_AXES]; /* bytes per step of each index */
    int32_t block;                        /* bytes of a block */
    int32_t run;                          /* bytes of a run */
};

struct ferrule_update_slice_params {
    struct ferrule_copy_params copy;      /* of the part at the start 0 of each axis; in bytes */
    int32_t axes;                         /* at most FERRULE_GATHER_AXES */
    int32_t limits[FERRULE_GATHER_AXES];  /* the largest start on each axis */
    int32_t strides[FERRULE_GATHER_AXES]; /* of the tensor that has the part, in bytes */
};

/** @brief Copy the runs that the indices name. */
void ferrule_gather(const struct ferrule_gather_params *params, const void *input,
                    const int32_t *indices, void *output);

/** @brief Copy the update into the part of the output that begins at the starts. */
void ferrule_update_slice(const struct ferrule_update_slice_params *params, const void *update,
                          const int32_t *starts, void *output);

/** @brief Copy the part of the input that begins at the starts. */
void ferrule_take_slice(const struct ferrule_update_slice_params *params, const void *input,
                        const int32_t *starts, void *output);

static inline int32_t ferrule_index_within(int32_t index, int32_t limit)
{
    if (index < 0) {
        return 0;
    }
    return index > limit ? limit : index;
}

#ifdef __cplusplus
}
#endif

#endif

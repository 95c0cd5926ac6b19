/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Chains of layers that run row by row through line buffers: the order of the bands.
 *
 * A chain has tensors and stages. A stage is a layer; it computes its output in bands of a few
 * rows. The rows of a tensor lie one behind the other in a buffer that holds some of them: when it
 * is full, the rows that are still needed move to its front. The next band is always one of the
 * last stage that has the rows it needs, so that rows are used as soon as possible. The buffers are
 * just large enough for this order. Any context; the state is in the caller's memory.
 */
#ifndef FERRULE_KERNELS_STREAM_H_INCLUDED
#define FERRULE_KERNELS_STREAM_H_INCLUDED

#include <stdbool.h>
#include <stdint.h>

/** The most tensors that a stage reads. */
#define FERRULE_STREAM_INPUTS 2

/** The memories of a chain; the index of its address in `struct ferrule_stream`. */
enum ferrule_stream_place {
    FERRULE_STREAM_INPUT = 0, /* the chain's input, which is only read */
    FERRULE_STREAM_LINES = 1, /* the line buffers */
    FERRULE_STREAM_OUTPUT = 2,
    FERRULE_STREAM_PLACES = 3,
};

/** A tensor of a chain; tensor 0 is the chain's input. */
struct ferrule_stream_tensor {
    uint32_t row_bytes;
    uint32_t offset;   /* of its buffer in its memory */
    uint16_t height;   /* rows of the tensor */
    uint16_t capacity; /* rows that fit into the buffer */
    uint8_t place;     /* enum ferrule_stream_place */
};

/** A tensor that a stage reads: band b needs `rows` rows from row `b * step - pad` on, as far as
 * the tensor has them. */
struct ferrule_stream_input {
    uint16_t rows;
    uint16_t step;
    uint16_t pad;
    uint8_t tensor;
};

/** A layer of a chain. */
struct ferrule_stream_stage {
    struct ferrule_stream_input inputs[FERRULE_STREAM_INPUTS];
    uint16_t bands;
    uint16_t late;   /* bands that write no row, before the first one that does */
    uint16_t rows;   /* rows that each later band writes; the last one may write fewer */
    uint16_t top;    /* bands before the equal ones in the middle; each is a part of its own */
    uint16_t middle; /* number of equal bands, which are one part */
    uint8_t input_count;
    uint8_t output;      /* the tensor that it writes */
    uint8_t last_reader; /* the last stage that reads that tensor; for the last stage, itself */
};

/** A chain. */
struct ferrule_stream_chain {
    const struct ferrule_stream_tensor *tensors;
    const struct ferrule_stream_stage *stages;
    uint16_t state_bytes; /* offset of the kernels' scratch behind the state */
    uint8_t tensor_count;
    uint8_t stage_count;
    uint8_t last_reader; /* the last stage that reads the chain's input */
};

/** The rows of a tensor that its buffer holds, and that were written so far: [first, end). */
struct ferrule_stream_rows {
    uint16_t first;
    uint16_t end;
};

/** The begin of the state; the rows by tensor and the bands by stage follow. */
struct ferrule_stream_state {
    const struct ferrule_stream_chain *owner; /* the chain that it belongs to, from begin to end */
    uint32_t from;                            /* the stage to look at first */
};

/** A running chain. */
struct ferrule_stream {
    const struct ferrule_stream_chain *chain;
    struct ferrule_stream_state *state;
    int8_t *places[FERRULE_STREAM_PLACES];
    void *scratch;                    /* of the kernels */
    struct ferrule_stream_rows *rows; /* by tensor */
    uint16_t *bands;                  /* by stage: the bands done */
};

/** The band to compute now. */
struct ferrule_stream_step {
    const int8_t *inputs[FERRULE_STREAM_INPUTS];
    int8_t *output;
    uint32_t stage;
    uint32_t part; /* the equal bands of a stage are one part; parts are counted from 0 */
};

/** @brief Set up a chain with its memories and its state: a struct ferrule_stream_state, 4 bytes
 * per tensor and 2 per stage, aligned to 8; the state keeps its values. The kernels' scratch
 * follows it. The input may be NULL if its rows are fed. */
void ferrule_stream_attach(struct ferrule_stream *stream, const struct ferrule_stream_chain *chain,
                           const int8_t *input, int8_t *lines, int8_t *output, void *state);

/** @brief Begin an inference, with `input_rows` rows of the input at hand: all of them, or none. */
void ferrule_stream_begin(const struct ferrule_stream *stream, uint32_t input_rows);

/** @brief Return whether a band can be computed, and which. The caller computes it at once. */
bool ferrule_stream_next(const struct ferrule_stream *stream, struct ferrule_stream_step *step);

/** @brief Begin an inference if `first` is 0, and check that `count` rows of the input from row
 * `first` on are the next ones.
 * @retval FERRULE_OK
 * @retval FERRULE_ERR_ARGUMENT the input has fewer rows
 * @retval FERRULE_ERR_STATE row `first` is not the next one, or no inference has begun */
int32_t ferrule_stream_expect(const struct ferrule_stream *stream, uint32_t first, uint32_t count);

/** @brief Copy one row of the input into its line buffer, move `rows` behind it and decrement
 * `count`; only when no band can be computed. Return whether there was one. */
bool ferrule_stream_feed(const struct ferrule_stream *stream, const int8_t **rows, uint32_t *count);

/** @brief End an inference.
 * @retval FERRULE_OK
 * @retval FERRULE_ERR_STATE no inference has begun, or rows of the input are missing */
int32_t ferrule_stream_end(const struct ferrule_stream *stream);

/** @brief A global average pool, in bands of rows. */
struct ferrule_stream_mean_s8_params {
    int32_t pixels; /* of a band */
    int32_t channels;
    int32_t count; /* pixels of all bands */
    int32_t low;
    int32_t high;
    bool first; /* whether the band is the first one */
    bool last;
};

/** @brief Add a band to the sums, an int32_t per channel; the last band writes the rounded means,
 * halves away from zero, to `output`. */
void ferrule_stream_mean_s8(const struct ferrule_stream_mean_s8_params *params, const int8_t *rows,
                            int8_t *output, void *sums);

#endif

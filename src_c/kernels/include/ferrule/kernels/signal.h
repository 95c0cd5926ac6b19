/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The signal library. Any context; the kernels keep no state between calls: they get the old
 * state and write the new one, which may lie over the old one, also partly if it starts below.
 * Every extent is positive.
 */
#ifndef FERRULE_KERNELS_SIGNAL_H_INCLUDED
#define FERRULE_KERNELS_SIGNAL_H_INCLUDED

#include <stdbool.h>
#include <stdint.h>

struct ferrule_signal_window_params {
    int32_t rows;
    int32_t samples; /**< of a row */
    int32_t shift;   /**< 0 to 31 */
};

struct ferrule_signal_framer_params {
    int32_t rows;
    int32_t frames; /**< of a row */
    int32_t size;
    int32_t step;
    int32_t kept;    /**< samples of a row from the runs before */
    int32_t missing; /**< frames before the first whole one */
};

struct ferrule_signal_delay_params {
    int32_t rows;
    int32_t samples; /**< of a row */
    int32_t delay;   /**< samples; may be 0 */
};

struct ferrule_signal_overlap_add_params {
    int32_t rows;
    int32_t frames; /**< of a row */
    int32_t size;
    int32_t step; /**< at most the size */
};

struct ferrule_signal_stacker_params {
    int32_t channels;
    int32_t frames; /**< of an output */
    int32_t left;   /**< frames that the first one stands for */
    int32_t step;   /**< 1 to `frames` */
};

struct ferrule_signal_fft_params {
    int32_t rows;
    int32_t samples;          /**< of a row of the input */
    int32_t points;           /**< half of the length: of a complex transform */
    const void *factors;      /**< [points][2] */
    const void *real_factors; /**< [points / 2][2] */
};

struct ferrule_signal_fft_auto_scale_params {
    int32_t samples;
};

struct ferrule_signal_energy_params {
    int32_t energies;
    int32_t start; /**< the first energy that is computed */
    int32_t end;   /**< behind the last one */
};

struct ferrule_signal_filter_bank_params {
    int32_t bands; /**< one more than there are channels */
    const int16_t *weights;
    const int16_t *unweights;
    const int16_t *frequency_starts; /**< by band */
    const int16_t *weight_starts;    /**< by band */
    const int16_t *widths;           /**< by band */
};

struct ferrule_signal_filter_bank_square_root_params {
    int32_t channels;
};

struct ferrule_signal_filter_bank_spectral_subtraction_params {
    int32_t channels;
    uint32_t smoothing[2]; /**< of channels with an even and with an odd number */
    uint32_t one_minus_smoothing[2];
    uint32_t min_signal_remaining;
    int32_t smoothing_bits;            /**< 0 to 31 */
    int32_t spectral_subtraction_bits; /**< 0 to 63 */
    bool clamping;
};

struct ferrule_signal_pcan_params {
    int32_t channels;
    int32_t snr_shift; /**< 0 to 63 */
};

struct ferrule_signal_filter_bank_log_params {
    int32_t channels;
    int32_t correction_bits; /**< 0 to 31 */
    uint32_t output_scale;
    const int16_t *table; /**< log2(1 + i / 128) - i / 128 in Q16, for i from 0 to 128 */
};

/** @brief Products, shifted to the right; the output may lie over the input. */
void ferrule_signal_window(const struct ferrule_signal_window_params *params, const int16_t *input,
                           const int16_t *weights, int16_t *output);

/** @brief Overlapping frames; those that begin before the first sample are 0. */
void ferrule_signal_framer(const struct ferrule_signal_framer_params *params, const int16_t *input,
                           const int16_t *samples, const int32_t *frames, int16_t *output,
                           bool *are_whole, int16_t *next_samples, int32_t *next_frames);

/** @brief The samples of `delay` before. */
void ferrule_signal_delay(const struct ferrule_signal_delay_params *params, const int16_t *input,
                          const int16_t *samples, int16_t *output, int16_t *next);

/** @brief Sums of overlapping frames; each sum saturates. */
void ferrule_signal_overlap_add_s16(const struct ferrule_signal_overlap_add_params *params,
                                    const int16_t *input, const int16_t *sums, int16_t *output,
                                    int16_t *next);

/** @brief Sums of overlapping frames. */
void ferrule_signal_overlap_add_f32(const struct ferrule_signal_overlap_add_params *params,
                                    const float *input, const float *sums, float *output,
                                    float *next);

/** @brief A frame with its neighbours; 0 if there are too few. */
void ferrule_signal_stacker(const struct ferrule_signal_stacker_params *params,
                            const int16_t *input, const int16_t *stored, const int32_t *count,
                            int16_t *output, bool *is_whole, int16_t *next_stored,
                            int32_t *next_count);

/** @brief The spectrum of real samples; zeros follow them. Products are rounded, sums wrap. */
void ferrule_signal_rfft_s16(const struct ferrule_signal_fft_params *params, const int16_t *input,
                             int16_t *output);

/** @brief As ferrule_signal_rfft_s16(). */
void ferrule_signal_rfft_s32(const struct ferrule_signal_fft_params *params, const int32_t *input,
                             int32_t *output);

/** @brief The spectrum of real samples; zeros follow them. */
void ferrule_signal_rfft_f32(const struct ferrule_signal_fft_params *params, const float *input,
                             float *output);

/** @brief The real samples of a spectrum. Products are rounded, sums wrap. */
void ferrule_signal_irfft_s16(const struct ferrule_signal_fft_params *params, const int16_t *input,
                              int16_t *output);

/** @brief As ferrule_signal_irfft_s16(). */
void ferrule_signal_irfft_s32(const struct ferrule_signal_fft_params *params, const int32_t *input,
                              int32_t *output);

/** @brief The real samples of a spectrum. */
void ferrule_signal_irfft_f32(const struct ferrule_signal_fft_params *params, const float *input,
                              float *output);

/** @brief The samples shifted to the left as far as all fit; the output may lie over the input. */
void ferrule_signal_fft_auto_scale(const struct ferrule_signal_fft_auto_scale_params *params,
                                   const int16_t *input, int16_t *output, int32_t *bits);

/** @brief The energies of a spectrum; 0 outside of the range. */
void ferrule_signal_energy(const struct ferrule_signal_energy_params *params, const int16_t *input,
                           uint32_t *output);

/** @brief Weighted sums of energies; they wrap. */
void ferrule_signal_filter_bank(const struct ferrule_signal_filter_bank_params *params,
                                const uint32_t *input, uint64_t *output);

/** @brief Rounded roots, shifted to the right. */
void ferrule_signal_filter_bank_square_root(
    const struct ferrule_signal_filter_bank_square_root_params *params, const uint64_t *input,
    const int32_t *bits, uint32_t *output);

/** @brief The channels less the noise; the output may lie over the input. */
void ferrule_signal_filter_bank_spectral_subtraction(
    const struct ferrule_signal_filter_bank_spectral_subtraction_params *params,
    const uint32_t *input, const uint32_t *noise, uint32_t *output, uint32_t *estimate,
    uint32_t *next);

/** @brief The channels amplified by the gains for their noise; the output may lie over the input.
 */
void ferrule_signal_pcan(const struct ferrule_signal_pcan_params *params, const uint32_t *input,
                         const uint32_t *noise, const int16_t *gains, uint32_t *output);

/** @brief Scaled logarithms. */
void ferrule_signal_filter_bank_log(const struct ferrule_signal_filter_bank_log_params *params,
                                    const uint32_t *input, int16_t *output);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "ethos_u/ethos_u.h"

#include <stddef.h>
#include <string.h>

#include "ethos_u/registers.h"
#include "ferrule/device.h"

#define FOURCC       0x31504f43u /* "COP1" */
#define TAG_CONFIG   0x01u       /* CONFIG and ID follow */
#define TAG_COMMANDS 0x02u       /* the command stream follows */
#define TAG_NOP      0x05u
#define TAG_MASK     0xffu
#define CONFIG_WORDS 2u

static uint32_t word_at(const struct ethos_u_stream *stream, uint32_t index)
{
    uint32_t word;

    (void)memcpy(&word, &stream->payload[index * sizeof(word)], sizeof(word));
    return word;
}

static bool is_aligned(const void *pointer, uint32_t bytes)
{
    return bytes == 0u || (pointer != NULL && (uintptr_t)pointer % ETHOS_U_ALIGNMENT == 0u);
}

int32_t ethos_u_read_header(const struct ethos_u_stream *stream, struct ethos_u_header *header)
{
    const uint32_t words = stream->payload_bytes / (uint32_t)sizeof(uint32_t);
    uint32_t index = 1;
    bool configured = false;

    if (words == 0u || word_at(stream, 0) != FOURCC) {
        return FERRULE_ERR_ARGUMENT;
    }
    while (index < words) {
        const uint32_t word = word_at(stream, index);

        index++;
        switch (word & TAG_MASK) {
        case TAG_NOP:
            break;
        case TAG_CONFIG:
            if (words - index < CONFIG_WORDS) {
                return FERRULE_ERR_ARGUMENT;
            }
            header->config = word_at(stream, index);
            header->id = word_at(stream, index + 1u);
            index += CONFIG_WORDS;
            configured = true;
            break;
        case TAG_COMMANDS: {
            const uint32_t length = (word >> 16) | ((word & 0xff00u) << 8);

            header->commands = &stream->payload[index * sizeof(word)];
            header->command_bytes = length * (uint32_t)sizeof(word);
            return configured && length != 0u && length <= words - index &&
                           is_aligned(header->commands, header->command_bytes)
                       ? FERRULE_OK
                       : FERRULE_ERR_ARGUMENT;
        }
        default:
            return FERRULE_ERR_ARGUMENT;
        }
    }
    return FERRULE_ERR_ARGUMENT;
}

bool ethos_u_is_compatible(const struct ethos_u_header *header, uint32_t config, uint32_t id)
{
    const bool custom_dma = (header->config & ETHOS_U_CONFIG_CUSTOM_DMA) != 0u;

    return ((header->config ^ config) & ETHOS_U_CONFIG_BITS) == 0u &&
           (!custom_dma || (config & ETHOS_U_CONFIG_CUSTOM_DMA) != 0u) &&
           ((header->id ^ id) & ETHOS_U_ID_ARCH_MAJOR_MASK) == 0u &&
           (id & ETHOS_U_ID_ARCH_MINOR_MASK) >= (header->id & ETHOS_U_ID_ARCH_MINOR_MASK);
}

const uint8_t *ethos_u_region(const struct ethos_u_work *work, uint32_t region)
{
    switch (region) {
    case ETHOS_U_READ_ONLY:
        return work->stream->read_only;
    case ETHOS_U_FAST_SCRATCH:
        return work->fast_scratch != NULL ? work->fast_scratch : work->scratch;
    default:
        return work->scratch;
    }
}

int32_t ethos_u_check_work(const struct ethos_u_work *work)
{
    const struct ethos_u_stream *stream = work->stream;

    return is_aligned(stream->payload, stream->payload_bytes) &&
                   is_aligned(stream->read_only, stream->read_only_bytes) &&
                   is_aligned(work->scratch, stream->scratch_bytes) &&
                   is_aligned(work->fast_scratch, stream->fast_scratch_bytes)
               ? FERRULE_OK
               : FERRULE_ERR_ARGUMENT;
}

int32_t ethos_u_start(void *resource_handle, const struct ethos_u_stream *stream, void *scratch,
                      void *fast_scratch)
{
    const struct ethos_u_work work = {
        .stream = stream, .scratch = scratch, .fast_scratch = fast_scratch};

    return stream == NULL ? FERRULE_ERR_ARGUMENT
                          : ferrule_device_submit(resource_handle, &ethos_u_driver, &work);
}

int32_t ethos_u_execute(void *resource_handle, const struct ethos_u_stream *stream, void *scratch,
                        void *fast_scratch)
{
    const int32_t status = ethos_u_start(resource_handle, stream, scratch, fast_scratch);

    return status == FERRULE_OK ? ferrule_device_finish(resource_handle, stream->timeout_us)
                                : status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses of the example's handles to a dma-buf; the linker puts __wrap_ioctl() in place of
 * ioctl().
 */
#include <errno.h>
#include <linux/dma-buf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "sample_handles.h"

#define FD 77

static int failures; /* calls that fail first */
static int error;    /* with which they fail */
static char log_of_calls[64];
static size_t calls;

int __wrap_ioctl(int fd, unsigned long request, ...);

int __wrap_ioctl(int fd, unsigned long request, ...)
{
    va_list arguments;
    va_start(arguments, request);
    const struct dma_buf_sync *sync = va_arg(arguments, const struct dma_buf_sync *);
    va_end(arguments);

    if (fd != FD || request != DMA_BUF_IOCTL_SYNC ||
        (sync->flags & DMA_BUF_SYNC_RW) != DMA_BUF_SYNC_RW || calls + 1 >= sizeof log_of_calls) {
        (void)fprintf(stderr, "ioctl(%d, %lu)\n", fd, request);
        exit(2);
    }
    if (failures > 0) {
        --failures;
        log_of_calls[calls++] = '!';
        errno = error;
        return -1;
    }
    log_of_calls[calls++] = (sync->flags & DMA_BUF_SYNC_END) != 0 ? 'e' : 'b';
    return 0;
}

static void show(const char *what, int32_t status)
{
    log_of_calls[calls] = '\0';
    (void)printf("%s: %d %s\n", what, (int)status, log_of_calls);
    calls = 0;
}

int main(void)
{
    const struct ferrule_handle_factory *factory = sample_handles.factories[0];
    static _Alignas(64) char block[128];
    struct ferrule_tensor tensor = {.name = "x", .size_bytes = 64};
    struct ferrule_memory_ref memory = {
        .source = FERRULE_MEMORY_MALLOC | FERRULE_MEMORY_DMA_BUF,
        .address = block,
        .fd = FD,
        .offset = 64,
        .bytes = 64,
        .block_bytes = sizeof block,
    };
    char reason[128] = "";
    void *data = NULL;

    if (factory->create(NULL, NULL, &tensor, true, &tensor.handle, reason, sizeof reason) != 0) {
        return 1;
    }
    show("own memory", sample_access(&tensor, true));
    if (!factory->import_ref(tensor.handle, &memory, false)) {
        return 1;
    }
    show("begin", sample_access(&tensor, true));
    show("end", sample_access(&tensor, false));
    show("map", factory->map(tensor.handle, &data, reason, sizeof reason));
    factory->unmap(tensor.handle);
    show("unmap", data == block + 64 ? 0 : 1);
    failures = 2;
    error = EINTR;
    show("interrupted", sample_access(&tensor, true));
    failures = 1;
    error = ENOTTY;
    show("a file in memory", sample_access(&tensor, true));
    failures = 1;
    error = EIO;
    show("refused", sample_access(&tensor, true));
    failures = 1;
    show("map refused", factory->map(tensor.handle, &data, reason, sizeof reason));
    (void)printf("%s\n", reason);
    (void)factory->import_ref(tensor.handle, NULL, false);
    show("own memory", sample_access(&tensor, true));
    factory->destroy(tensor.handle);
    return 0;
}

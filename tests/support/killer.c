// SPDX-License-Identifier: Apache-2.0
// Preloaded into a process: counts the calls that change files below a folder, and kills the
// process at one of them.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static char watched[PATH_MAX];
static long deadly;
static long seen;

/* Count the calls below `folder` from now on, and die at the call number `when`; 0 for never. */
void killer_arm(const char *folder, long when)
{
    seen = 0;
    deadly = when;
    (void)snprintf(watched, sizeof watched, "%s", folder);
}

long killer_seen(void)
{
    return seen;
}

static bool is_watched(const char *path)
{
    size_t length = strlen(watched);
    return length > 0 && strncmp(path, watched, length) == 0 &&
           (path[length] == '/' || path[length] == '\0');
}

static bool is_open_below(int handle)
{
    char link[64];
    char path[PATH_MAX];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) {
        return false;
    }
    path[length] = '\0';
    return is_watched(path);
}

static bool is_below(int folder, const char *path)
{
    return path[0] == '/' || folder == AT_FDCWD ? is_watched(path) : is_open_below(folder);
}

static bool is_last(bool counted)
{
    return counted && __sync_add_and_fetch(&seen, 1) == deadly;
}

static void count(bool counted)
{
    if (is_last(counted)) {
        (void)kill(getpid(), SIGKILL);
    }
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define OPEN(name, folder, ...)                                                                    \
    {                                                                                              \
        va_list arguments;                                                                         \
        va_start(arguments, flags);                                                                \
        mode_t mode = (flags & O_CREAT) != 0 ? (mode_t)va_arg(arguments, int) : 0;                 \
        va_end(arguments);                                                                         \
        count((flags & (O_CREAT | O_TRUNC)) != 0 && is_below(folder, path));                       \
        return REAL(name)(__VA_ARGS__, mode);                                                      \
    }

int open(const char *path, int flags, ...)
    OPEN(open, AT_FDCWD, path, flags) int open64(const char *path, int flags, ...)
        OPEN(open64, AT_FDCWD, path, flags) int openat(int folder, const char *path, int flags, ...)
            OPEN(openat, folder, folder, path, flags) int openat64(int folder, const char *path,
                                                                   int flags, ...)
                OPEN(openat64, folder, folder, path, flags)

                    ssize_t write(int handle, const void *data, size_t size)
{
    if (is_last(is_open_below(handle))) {
        (void)REAL(write)(handle, data, size / 2);
        (void)kill(getpid(), SIGKILL);
    }
    return REAL(write)(handle, data, size);
}

int rename(const char *from, const char *to)
{
    count(is_watched(from) || is_watched(to));
    return REAL(rename)(from, to);
}

int unlink(const char *path)
{
    count(is_watched(path));
    return REAL(unlink)(path);
}

int unlinkat(int folder, const char *path, int flags)
{
    count(is_below(folder, path));
    return REAL(unlinkat)(folder, path, flags);
}

int mkdir(const char *path, mode_t mode)
{
    count(is_watched(path));
    return REAL(mkdir)(path, mode);
}

int rmdir(const char *path)
{
    count(is_watched(path));
    return REAL(rmdir)(path);
}

int chmod(const char *path, mode_t mode)
{
    count(is_watched(path));
    return REAL(chmod)(path, mode);
}

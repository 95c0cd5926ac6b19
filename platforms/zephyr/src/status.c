/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/platform/zephyr_status.h"

#include <errno.h>
#include <stddef.h>
#include <zephyr/sys/util.h>

#include "ferrule/status.h"

/* ferrule_zephyr_status() uses the first row with an errno, ferrule_zephyr_errno() the first row
 * with a status.
 */
static const struct {
	int error;
	int32_t status;
} ERRORS[] = {
	{EINVAL, FERRULE_ERR_ARGUMENT},
	{ENOTSUP, FERRULE_ERR_UNSUPPORTED},
	{ENOSYS, FERRULE_ERR_UNSUPPORTED},
	{ENOMEM, FERRULE_ERR_MEMORY},
	{ECANCELED, FERRULE_ERR_FAILED},
	{ENODEV, FERRULE_ERR_UNAVAILABLE},
	{ENXIO, FERRULE_ERR_UNAVAILABLE},
	{EBADF, FERRULE_ERR_HANDLE},
	{EPROTO, FERRULE_ERR_STATE},
	{EBUSY, FERRULE_ERR_BUSY},
	{ETIMEDOUT, FERRULE_ERR_TIMEOUT},
	{EAGAIN, FERRULE_ERR_TIMEOUT}, /* from a mutex whose time has expired */
	{EWOULDBLOCK, FERRULE_ERR_INTERRUPT},
	{EPERM, FERRULE_ERR_OWNER},
	{EIO, FERRULE_ERR_DEVICE},
};

int32_t ferrule_zephyr_status(int error)
{
	if (error >= 0) {
		return FERRULE_OK; /* some functions return a count */
	}
	for (size_t row = 0; row < ARRAY_SIZE(ERRORS); row++) {
		if (ERRORS[row].error == -error) {
			return ERRORS[row].status;
		}
	}
	return FERRULE_ERR_FAILED;
}

int ferrule_zephyr_errno(int32_t status)
{
	if (status >= 0) {
		return 0;
	}
	for (size_t row = 0; row < ARRAY_SIZE(ERRORS); row++) {
		if (ERRORS[row].status == status) {
			return -ERRORS[row].error;
		}
	}
	return -ECANCELED;
}

/* Keeps the verdict about the places of host memory for later processes: a small file.
 *
 * It holds for one device, driver, start of the machine and set of the process's permissions. On a
 * real GPU it lies in the user's cache folder ($XDG_CACHE_HOME/spillway or ~/.cache/spillway), for
 * a simulated one, whose options may change, in the launcher's folder of the run. It is read only
 * if it belongs to the user and nobody else may write it, and is created anew under a name of its
 * own and renamed. Failures mean that the next process tries again. No locking. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "driver/cuda_api.h"

enum { SPW_VERDICT_KEY = 768 };

/* Writes what the verdict depends on: `device` names the device, `version` is the driver's. */
void spw_driver_host_verdict_key(const char *device, int version, char ret_key[SPW_VERDICT_KEY]);

/* Reads the verdict for `key`. False when there is none. *ret_works: `*ret_place` works; otherwise
 * no place does. */
bool spw_driver_host_verdict_read(bool simulated, const char *key, bool *ret_works,
                                  CUmemLocation *ret_place);

/* Writes a verdict. */
void spw_driver_host_verdict_write(bool simulated, const char *key, bool works,
                                   CUmemLocation place);

/* Keeps the verdict about the places of host memory for later processes: a small file.
 *
 * A verdict holds for one device, one driver, one start of the machine and one set of permissions
 * of the process. On a real GPU its file is in the user's cache folder ($XDG_CACHE_HOME/spillway or
 * ~/.cache/spillway). For a simulated GPU, whose options may change, and if there is no cache
 * folder, the file is in the launcher's folder of the run. The file is read only if it belongs to
 * the user and no other user may write it. It is replaced as a whole, by renaming a new file. After
 * a failure the next process tries again. No locking. */
#pragma once

#include <stdbool.h>

#include "driver/cuda_api.h"

enum { SPW_VERDICT_KEY = 768 };

/* Writes the facts for which a verdict holds. `device` names the device, `version` is the
 * driver's. */
void spw_driver_host_verdict_key(const char *device, int version, char ret_key[SPW_VERDICT_KEY]);

/* Reads the verdict for `key`. False when there is none. If *ret_works, `*ret_place` works;
 * otherwise no place does. */
bool spw_driver_host_verdict_read(bool simulated, const char *key, bool *ret_works,
                                  CUmemLocation *ret_place);

/* Writes a verdict. */
void spw_driver_host_verdict_write(bool simulated, const char *key, bool works,
                                   CUmemLocation place);

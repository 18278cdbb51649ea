/* Stores the verdict about the places of host memory for later processes, in a small file.
 *
 * A verdict is valid for one device, one driver, one start of the machine and one set of
 * permissions of the process. On a real GPU its file is in the user's cache folder
 * ($XDG_CACHE_HOME/spillway or ~/.cache/spillway). On a simulated GPU, whose options may change,
 * the file is in the launcher's folder of the run. It is also there if there is no cache folder.
 * The file is read only if it belongs to the user and no other user may write to it. It is always
 * replaced as a whole: a new file is written and renamed. If that fails, the next process tries the
 * places again. No locking. */
#pragma once

#include <stdbool.h>

#include "driver/cuda_api.h"

enum { SPW_VERDICT_KEY = 768 };

/* Writes the facts that identify a verdict. `device` is the name of the device, `version` is the
 * version of the driver. */
void spw_driver_host_verdict_key(const char *device, int version, char ret_key[SPW_VERDICT_KEY]);

/* Reads the verdict for `key`. Returns false if there is none. If *ret_works is true, host memory
 * works at *ret_place. Otherwise it works at no place. */
bool spw_driver_host_verdict_read(bool simulated, const char *key, bool *ret_works,
                                  CUmemLocation *ret_place);

/* Writes a verdict. */
void spw_driver_host_verdict_write(bool simulated, const char *key, bool works,
                                   CUmemLocation place);

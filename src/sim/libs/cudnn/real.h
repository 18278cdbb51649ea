/* NVIDIA's cuDNN, in whose place the simulated one is loaded. No locking. */
#pragma once

#include <limits.h>
#include <stdbool.h>

/* Finds it where the dynamic linker would look for it on behalf of the object that contains the
 * address `caller`. Writes its path without symbolic links. False if it is not there. */
bool sim_cudnn_real_find(const void *caller, char ret_path[PATH_MAX]);

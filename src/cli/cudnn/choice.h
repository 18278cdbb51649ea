/* The cuDNN that the user names in SPILLWAY_SIM_CUDNN, by its version or its path. One thread. */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "sim/cudnn_question.h"

struct spw_cli_cudnn_choice {
    char path[PATH_MAX]; /* of libcudnn.so.9; "": the user names none */
    char version[16];    /* "9.26.0" */
};

/* Finds the library that the option names. A version is looked for in spillway's cache folder and
 * in the folders of the system. Each library that is found is loaded in a process of its own, for
 * its version. If there is none that can be asked, writes a line for `command` to stderr and
 * returns false. */
bool spw_cli_cudnn_choose(const char *command, struct spw_cli_cudnn_choice *ret_choice);

/* Chooses the library for all following runs of this process, by SIM_CUDNN_LIBRARY in the
 * environment. Returns as spw_cli_cudnn_choose. */
bool spw_cli_cudnn_choose_for_runs(const char *command);

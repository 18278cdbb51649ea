/* NVIDIA's cuDNN, loaded to be asked without a device. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/cudnn_question.h"

/* Loads the library into this process, and returns its version, such as 92600. Returns 0 if it
 * cannot be loaded or is older than 9.8, or if another user can have written it. */
size_t spw_cli_cudnn_version(const char *path);

/* Answers the content of a question (sim/cudnn_question.h). Writes at most SIM_CUDNN_ENGINES
 * engines, and none if the library names none for the graph. Returns false if the library cannot be
 * loaded or is older than 9.8, if another user can have written it, or if the content is malformed.
 * Only the library of the first question is loaded, for the value of SIM_CUDNN_TF32 in it. */
bool spw_cli_cudnn_answer(const unsigned char *content, size_t bytes,
                          struct sim_cudnn_engine *ret_engines, size_t *ret_count);

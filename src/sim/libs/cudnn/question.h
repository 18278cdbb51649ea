/* Asks NVIDIA's cuDNN, through the launcher, for the engines that it would choose for a graph on
 * the current device (sim/cudnn_question.h).
 *
 * Locking: thread-safe; one question at a time. */
#pragma once

#include "sim/cudnn_question.h"
#include "sim/libs/cudnn/descriptor.h"

/* Asks for the engines of a heuristics descriptor that is not finalized yet. `caller` is an address
 * inside the program's library that calls cuDNN; NVIDIA's cuDNN is where that library would find
 * it. Returns the number of engines, in memory that the caller frees; 0: there is no answer, and
 * the caller must guess. */
size_t sim_cudnn_question_ask(const struct sim_cudnn_descriptor *heuristics, const void *caller,
                              struct sim_cudnn_engine **ret_engines);

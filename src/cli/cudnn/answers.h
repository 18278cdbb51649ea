/* The answers that the library has given before, in a file of the user's cache folder. The library
 * is loaded only for new questions. One thread.
 *
 * The file is used only if it belongs to the user, nobody else may write it, and no other launcher
 * has it locked. It grows by one record for each new question, and is begun anew when it
 * has 16 MiB. Without the file, answers are kept in memory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sim/cudnn_question.h"

/* Reads the file. Must be called once, before the other functions. */
void spw_cli_cudnn_answers_open(void);

/* Returns true if the content of a question was answered before by the library as it is now, and
 * writes the answer. */
bool spw_cli_cudnn_answers_find(const unsigned char *content, size_t bytes,
                                struct sim_cudnn_engine *ret_engines, size_t *ret_count);

/* Keeps an answer. An empty one is kept in memory alone, because its reason may pass, such as a
 * lack of memory. */
void spw_cli_cudnn_answers_add(const unsigned char *content, size_t bytes,
                               const struct sim_cudnn_engine *engines, size_t count);

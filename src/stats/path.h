/* The path of the statistics file, and its owner (see spw_stats_write). No locking, no
 * allocation. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Expands %p, %r (0 without a rank), %h and %% in `pattern` and makes it absolute, from the folder
 * where the process started. False when it does not fit, or that folder is not known. */
bool spw_stats_path_expand(const char *pattern, char *path, size_t capacity);

/* True if the pattern has this directive, such as 'r'. */
bool spw_stats_path_has(const char *pattern, char directive);

/* The rank in a distributed job, from the launcher's variables; -1: none. */
int64_t spw_stats_rank(void);

/* The number of ranks of the job on this machine, from the launcher's variables; 0: not known. */
uint32_t spw_stats_local_ranks(void);

/* Removes the statistics file (or the empty file) of an earlier run at `path`, and no other file.
 * `start` is when this process began, in ticks. */
void spw_stats_path_clear(const char *path, uint64_t start);

/* The pid in the first bytes of a statistics file; 0 for any other file. */
int spw_stats_path_owner(const char *path);

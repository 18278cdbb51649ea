/* The path of the statistics file, and the process that owns the file (see spw_stats_write). No
 * locking, no allocation. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Expands %p, %r (0 without a rank), %h and %% in `pattern`. Makes the result absolute: a relative
 * path begins at the folder where the process started. Returns false if the result does not fit, or
 * if that folder is not known. */
bool spw_stats_path_expand(const char *pattern, char *path, size_t capacity);

/* Does the same with the rank of another process. */
bool spw_stats_path_expand_for(const char *pattern, const char *rank, char *path, size_t capacity);

/* Returns true if the pattern contains this directive, such as 'r'. */
bool spw_stats_path_has(const char *pattern, char directive);

/* Returns the rank in a distributed job, from the launcher's variables; -1 if there is none. */
int64_t spw_stats_rank(void);

/* Returns the number of the job's ranks, from the launcher's variables; 0 if unknown. */
uint32_t spw_stats_ranks(void);

/* Returns the number of the job's ranks on this machine, from the launcher's variables; 0 if
 * unknown. */
uint32_t spw_stats_local_ranks(void);

/* Removes the statistics file, or the empty file, of an earlier run at `path`. Removes no other
 * file. `start` is the time when this process began, in ticks. */
void spw_stats_path_clear(const char *path, uint64_t start);

/* Returns the pid in the first bytes of a statistics file; 0 for any other file. */
int spw_stats_path_owner(const char *path);

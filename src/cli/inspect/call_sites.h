/* Reads the call sites of another process, running or ended, from its shared memory and the files
 * of its libraries. One thread, one process at a time. */
#pragma once

#include "callsite/shm.h"

/* Copies the call sites of a process from its file (callsite/shm.h). The result holds the charges;
 * until it is closed, the functions of src/callsite describe the sites of that process. NULL when
 * the file is not valid. The caller keeps the descriptor. */
struct spw_callsite_shm *spw_cli_call_sites_read(int fd);

/* Makes src/callsite describe the sites in *share, which must be mapped in full. */
bool spw_cli_call_sites_adopt(struct spw_callsite_shm *share);

/* Frees the copy; takes NULL. */
void spw_cli_call_sites_close(struct spw_callsite_shm *share);

/* Reads the call sites of another process from its shared memory and from the files of its
 * libraries. The process may be running or have ended. One thread, one process at a time. */
#pragma once

#include "callsite/shm.h"

/* Copies the call sites of a process from the process's file (callsite/shm.h). The result holds the
 * bytes charged to each site. Until the result is closed, the functions of src/callsite describe
 * the sites of this process. Returns NULL if the file is not valid. The caller keeps ownership of
 * the descriptor. */
struct spw_callsite_shm *spw_cli_call_sites_read(int fd);

/* Makes the functions of src/callsite describe the sites in *share. *share must be mapped in
 * full. */
bool spw_cli_call_sites_adopt(struct spw_callsite_shm *share);

/* Frees the copy. Does nothing if `share` is NULL. */
void spw_cli_call_sites_close(struct spw_callsite_shm *share);

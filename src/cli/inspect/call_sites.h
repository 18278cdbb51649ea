/* The call sites of another process, living or dead, as if they were this one's: from its shared
 * memory, and the files of its libraries. One thread, one at a time. */
#pragma once

#include "callsite/shm.h"

/* Reads the file of a process's sites (callsite/shm.h), as it is at this moment, into a copy. From
 * then on what src/callsite tells of sites is that process's, with its charges in the result. NULL
 * when it is no such file. The descriptor stays the caller's. */
struct spw_callsite_shm *spw_cli_call_sites_read(int fd);

/* Takes NULL. The sites are nobody's then. */
void spw_cli_call_sites_close(struct spw_callsite_shm *share);

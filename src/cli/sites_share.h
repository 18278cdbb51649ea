/* The call sites of another process, living or dead, as if they were this one's: from its shared
 * memory, and the files of its libraries. One thread, one at a time. */
#pragma once

#include "callsite/shm.h"

/* Opens the file of a process's sites (callsite/shm.h), as it is at this moment. From then on what
 * src/callsite tells of sites is that process's, with its charges in the result. NULL when it is no
 * such file, with errno set when it cannot be opened. */
struct spw_callsite_shm *spw_sites_share_open(const char *path);

/* Takes NULL. The sites are nobody's then. */
void spw_sites_share_close(struct spw_callsite_shm *share);

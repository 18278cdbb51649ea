/* The program's own virtual memory: which physical memory it holds, by handle and by mapping.
 *
 * Physical memory is held as long as a reference or a mapping is left; device memory counts against
 * the limit for that long.
 *
 * Locking: a mutex inside; pools are called without it. */
#pragma once

/* For fork: the lock around it, and empty tables for the child. */
void spw_serve_vmm_lock(void);
void spw_serve_vmm_unlock(void);
void spw_serve_vmm_reset(void);

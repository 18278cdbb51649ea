/* Keeps fork out of calls into the dynamic loader, and into libraries that call it.
 *
 * The C library does not take the loader's locks around fork. If another thread is inside
 * dl_iterate_phdr, dlopen or an unwinder at a fork, the child finds these locks held for good, and
 * hangs when it loads a library or unwinds a stack. So this object's calls of the loader stand
 * between spw_loader_enter and spw_loader_leave, and fork waits until no such call is under way.
 *
 * Any thread. Between enter and leave a thread does not fork, and takes no lock of lock.def but
 * those of SPW_LOCK_ALONE. A thread that forks waits at most SPW_LOADER_FORK_MS, other threads at
 * most SPW_LOADER_ENTER_MS: each may hold a loader lock that the other needs. */
#pragma once

#include <link.h>
#include <stdbool.h>

enum { SPW_LOADER_FORK_MS = 100, SPW_LOADER_ENTER_MS = 2000 };

/* Waits while a fork is under way. */
void spw_loader_enter(void);
void spw_loader_leave(void);

/* dl_iterate_phdr between enter and leave. */
int spw_loader_iterate(int (*visit)(struct dl_phdr_info *info, size_t size, void *context),
                       void *context);

/* Called around fork, on the thread that forks, while it holds the locks of lock.def. The first
 * waits until no other thread is inside; the second lets other threads in again. */
void spw_loader_before_fork(void);
void spw_loader_after_fork(bool child);

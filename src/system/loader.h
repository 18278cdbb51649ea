/* Prevents a fork during calls into the dynamic loader, and into libraries that call it.
 *
 * The C library does not take the loader's locks around fork. Suppose that another thread is inside
 * dl_iterate_phdr, dlopen or an unwinder at a fork. In the child, these locks are then held
 * forever, and the child hangs when it loads a library or unwinds a stack. This object therefore
 * calls the loader only between spw_loader_enter and spw_loader_leave, and fork waits until no such
 * call is in progress.
 *
 * Any thread. Between enter and leave, a thread must not fork, and may take only the locks of
 * SPW_LOCK_ALONE in lock.def. A thread that forks waits at most SPW_LOADER_FORK_MS; other threads
 * wait at most SPW_LOADER_ENTER_MS. The waits are limited because each thread may hold a loader
 * lock that the other needs. */
#pragma once

#include <link.h>
#include <stdbool.h>

enum { SPW_LOADER_FORK_MS = 100, SPW_LOADER_ENTER_MS = 2000 };

/* Enter waits while a fork is in progress. */
void spw_loader_enter(void);
void spw_loader_leave(void);

/* Calls dl_iterate_phdr between enter and leave. */
int spw_loader_iterate(int (*visit)(struct dl_phdr_info *info, size_t size, void *context),
                       void *context);

/* Called around fork, on the thread that forks, while it holds the locks of lock.def. The first
 * waits until no other thread is inside. The second lets other threads enter again. */
void spw_loader_before_fork(void);
void spw_loader_after_fork(bool child);

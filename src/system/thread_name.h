/* Names of threads. No locking. */
#pragma once

#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SPW_THREAD_NAME = 16 };

/* A frequent caller reads the name again only after a number of calls, because the read is a system
 * call. A thread may be renamed at any time. */
enum { SPW_THREAD_NAME_EVERY = 32 };

/* Returns true on the first thread of the process. The thread that forks is the first thread of the
 * child. */
static inline bool spw_thread_is_first(void)
{
    return getpid() == (pid_t)syscall(SYS_gettid);
}

/* Writes the name of the calling thread, which shows its role, followed by zeros. The first thread
 * has the program's name; "main" is written for it. */
static inline void spw_thread_name(char ret_name[SPW_THREAD_NAME])
{
    memset(ret_name, 0, SPW_THREAD_NAME);
    if (spw_thread_is_first()) {
        memcpy(ret_name, "main", sizeof("main"));
    } else {
        (void)prctl(PR_GET_NAME, ret_name);
    }
}

/* Returns true if the name of the calling thread is no longer `name`. */
static inline bool spw_thread_is_renamed(const char name[SPW_THREAD_NAME])
{
    char now[SPW_THREAD_NAME];

    spw_thread_name(now);
    return strncmp(now, name, SPW_THREAD_NAME) != 0;
}

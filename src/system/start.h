/* Tools of all folders for the operating system: files, threads, locks, clocks, waiting, the log.
 * It does not know the driver.
 *
 *   backoff        polling with pauses that grow, up to a limit of time
 *   cache          the folder that a user's caches belong in
 *   child          helper processes, which the program does not see
 *   clock          clocks, and the clock of the simulated GPU in their place
 *   create         opens files for writing, and follows no link of another user
 *   demangle       C++ names that people can read
 *   fd             file descriptors in the program's process: parks, reads and writes them
 *   file_limit     the limit on the size of files
 *   futex          waits for a word of memory, also for one shared with other processes
 *   keep           keeps memory forever, because something may still write to it
 *   loader         prevents a fork during calls into the dynamic loader
 *   lock           mutexes with ranks (lock.def), and the order that debug builds check
 *   log            messages on stderr or in a file
 *   pid            start, processor time and memory of a process, from /proc
 *   room           memory for objects that are too large for a stack
 *   safe_read      reads memory that may not be mapped
 *   sleep          sleeps for some nanoseconds
 *   stack          the free part of a thread's stack
 *   start          the folder at the start of the process, and paths relative to it
 *   thread_name    reads the name of a thread
 *   thread_slots   a record of each thread, which others read without a lock
 *   uncancelled    scopes in which a thread cannot be cancelled
 *   write          writes JSON to a file descriptor without allocation
 *
 * This header has the folder where the process started, paths that are relative to it, and the
 * environment variables at the start of spillway.
 *
 * A program may change its folder. A relative path that comes from the user (a file in a variable,
 * this object in LD_PRELOAD) is still relative to the folder at the start. The user did not choose
 * later folders, so no path is ever relative to them here.
 *
 * The folder is read with one system call, when the code is loaded or at an earlier first use. No
 * locking, no allocation. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* Returns the folder as an absolute path; NULL if it is not known. */
const char *spw_start_folder(void);

/* Writes an absolute path unchanged, and a relative path behind the folder at the start. If the
 * folder is not known, or if the path does not fit, writes "" and returns false. */
bool spw_start_path(const char *path, char *ret_path, size_t capacity);

/* Writes the path of the loaded object that contains `address`. Returns false if it is not
 * known. */
bool spw_start_object(const void *address, char ret_path[PATH_MAX]);

/* Returns the folder of the object that contains this code, which is written to `buffer`; NULL if
 * it is not known. */
const char *spw_start_own_folder(char buffer[PATH_MAX]);

/* Stores the variables that a helper process gets (child.h): those for the driver and the simulated
 * GPU. Later calls do nothing. Calls must not overlap. */
void spw_start_keep_environment(void);

/* Returns the stored variables, with NULL at the end. There are none before
 * spw_start_keep_environment. */
char *const *spw_start_environment(void);

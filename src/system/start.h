/* Tools of all folders for the operating system: files, threads, locks, clocks, waiting, the log.
 * It does not know the driver.
 *
 *   backoff        polling with pauses that grow, up to a limit of time
 *   child          helper processes, which the program does not see
 *   clock          clocks, and the clock of the simulated GPU in their place
 *   create         opens files for writing, and follows no link of another user
 *   demangle       C++ names that people can read
 *   fd             file descriptors in the program's process: parks, reads and writes them
 *   file_limit     the limit on the size of files
 *   futex          waits for a word of memory, also for one shared with other processes
 *   keep           keeps memory for ever, since something may still write to it
 *   loader         keeps fork out of calls into the dynamic loader
 *   lock           mutexes with ranks (lock.def), and the order that debug builds check
 *   log            messages on stderr or in a file
 *   pid            start and processor time of a process, from /proc
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
 * The folder at the start of the process, paths that are relative to it, and variables of the
 * environment at the start of spillway.
 *
 * A program may change its folder. A relative path of the user (a file in a variable, this object
 * in LD_PRELOAD) is still relative to the folder at the start. The user did not choose later
 * folders, so no path here is ever relative to them.
 *
 * The folder is read with one system call when the code is loaded, or at an earlier first use. No
 * locking, no allocation. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* The folder, absolute; NULL if it is not known. */
const char *spw_start_folder(void);

/* Writes an absolute path as it is, and a relative one behind that folder. False, with "", if the
 * folder is not known or the path does not fit. */
bool spw_start_path(const char *path, char *ret_path, size_t capacity);

/* The path of the loaded object that contains `address`. False if it is not known. */
bool spw_start_object(const void *address, char ret_path[PATH_MAX]);

/* The folder of the object that this code is part of, written to `buffer`; NULL if it is not
 * known. */
const char *spw_start_own_folder(char buffer[PATH_MAX]);

/* Keeps the variables that a helper process gets (child.h): those for the driver and the simulated
 * GPU. Later calls do nothing. Calls must not overlap. */
void spw_start_keep_environment(void);

/* The variables that were kept, NULL-terminated; none before spw_start_keep_environment. */
char *const *spw_start_environment(void);

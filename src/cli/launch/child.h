/* Starts a program under spillway: its environment, its libraries, its run directory. It does not
 * know results of runs.
 *
 *   child           runs the program, and waits for it
 *   driver_check    tests for a working CUDA driver
 *   flags           flags for the options of common/options.def
 *   installation    finds the command's installed files
 *   leftovers       removes the run directories of killed launchers
 *   members         the processes of a run
 *   policy_file     finds a policy by path or by name, and loads it
 *   preload         changes LD_PRELOAD
 *   program         finds out from a program's file if spillway can be preloaded
 *   run_directory   the private directory of a run
 *   sim_libraries   the libraries of a program on the simulated GPU
 *   world           runs single ranks of a PyTorch job
 *
 * The program of `run` and `sim` is a child process with this process's environment. One thread;
 * one child at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Runs the program in `arguments` (NULL-terminated), which is searched in PATH. Forwards signals to
 * the program and waits for it. Returns the program's exit code, or a code of enum spw_cli_exit
 * with one line of `command` on stderr if it cannot be started. *ret_started, unless NULL, is true
 * if it was started. */
int spw_cli_launch(const char *command, char **arguments, bool *ret_started);

/* Why spillway was not preloaded into the latest program, after the path of its file: "/bin/true is
 * static, ..."; "" if the file shows no reason. Valid until the next launch. */
const char *spw_cli_launch_lack(void);

/* From now on calls `tick` about every `seconds` while a program runs: on this thread, outside
 * signal handlers. */
void spw_cli_launch_watch(unsigned seconds, void (*tick)(void));

/* From now on kills a program that still runs `seconds` after Ctrl-C (SIGINT), and all processes of
 * the run (members.h), as soon as all of them are idle. A second Ctrl-C kills them at once. */
void spw_cli_launch_end_within(unsigned seconds);

/* Sets the descriptor for messages about such an end, instead of stderr: for a program with hidden
 * output. */
void spw_cli_launch_speak_on(int fd);

/* The `seconds` of spw_cli_launch_end_within for runs on the simulated GPU. */
enum { SPW_CLI_LAUNCH_GRACE = 10 };

/* The exit code to report for a program that ended with `code`: 130 for any failure after Ctrl-C,
 * since some programs end with another code (torchrun with 1). */
int spw_cli_launch_code(int code);

/* True if SIGHUP, SIGINT, SIGQUIT or SIGTERM asked this process to end while a program ran;
 * *ret_number is the last such signal. */
bool spw_cli_launch_was_interrupted(int *ret_number);

/* Tests for a working CUDA driver: loads libcuda.so.1 and calls cuInit in a child process, because
 * a broken driver may crash. On failure returns false and writes the reason. */
bool spw_cli_driver_check(char *reason, size_t capacity);

/* Map and unmap zeroed memory that this process shares with its forked children; NULL with errno
 * set without memory. Unlike a pipe it needs no descriptor, and its content is complete once the
 * child has ended. */
void *spw_cli_shared_map(size_t bytes);
void spw_cli_shared_unmap(void *memory, size_t bytes);

/* Starts a program under spillway with its environment, libraries and run directory. It does not
 * know results of runs.
 *
 *   child           runs the program, and waits for it
 *   driver_check    tests for a working CUDA driver
 *   flags           flags for the options of common/options.def
 *   installation    finds the command's installed files
 *   job             the launcher of a job in a command, such as torchrun
 *   leftovers       removes the run directories of killed launchers
 *   members         the processes of a run
 *   open            opens a file with the program of the desktop
 *   other_ranks     the ranks of a job that have launchers of their own
 *   policy_file     finds a policy by path or by name, and loads it
 *   preload         changes LD_PRELOAD
 *   program         finds out from a program's file if spillway can be preloaded
 *   run_directory   the private directory of a run
 *   sim_libraries   the libraries of a program on the simulated GPU
 *   world           runs single ranks of a PyTorch job
 *
 * `run` and `sim` start the program as a child process that inherits this process's environment.
 * One thread; one child at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Runs the program in `arguments` (NULL-terminated). The program is searched in PATH. Forwards
 * signals to the program and waits until it ends. Returns the exit code of the program. If the
 * program cannot be started, writes one line for `command` to stderr and returns a code of enum
 * spw_cli_exit. If `ret_started` is not NULL, sets *ret_started to true if the program was started
 * and to false otherwise. */
int spw_cli_launch(const char *command, char **arguments, bool *ret_started);

/* Returns the reason why spillway was not preloaded into the latest program, such as "/bin/true is
 * static, ...". Returns "" if the program's file shows no reason. The text is valid until the next
 * launch. */
const char *spw_cli_launch_lack(void);

/* From now on, calls `tick` about every `seconds` while a program runs. The call is made on this
 * thread, outside signal handlers. */
void spw_cli_launch_watch(unsigned seconds, void (*tick)(void));

/* From now on, Ctrl-C (SIGINT) ends a run within a limited time. If the program still runs
 * `seconds` after Ctrl-C, the program and all processes of the run (members.h) are killed as soon
 * as all of them are idle. A second Ctrl-C kills them at once. */
void spw_cli_launch_end_within(unsigned seconds);

/* Sets the descriptor that receives messages about such a kill, instead of stderr. It is used when
 * the output of the program is hidden. */
void spw_cli_launch_speak_on(int fd);

/* The argument `seconds` of spw_cli_launch_end_within for runs on the simulated GPU. */
enum { SPW_CLI_LAUNCH_GRACE = 10 };

/* Returns the exit code to report for a program that ended with `code`. After Ctrl-C, every failure
 * is reported as 130, because some programs end with another code (torchrun ends with 1). */
int spw_cli_launch_code(int code);

/* Returns true if this process received SIGHUP, SIGINT, SIGQUIT or SIGTERM while a program ran.
 * *ret_number is the last of these signals. */
bool spw_cli_launch_was_interrupted(int *ret_number);

enum { SPW_CLI_CARD = 192 };

/* Device 0 of the machine. */
struct spw_cli_card {
    char text[SPW_CLI_CARD]; /* name and memory, as "NVIDIA L4, 22478 MiB"; "": not known */
    uint64_t one_memory; /* its total bytes, if it uses the host's memory as its own; otherwise 0 */
    bool wsl;            /* the machine is Windows's Linux (WSL2) */
};

/* Tests if the machine has a working CUDA driver. Loads libcuda.so.1 and calls cuInit in a child
 * process, because a broken driver may crash. On failure, writes the reason and returns false. */
bool spw_cli_driver_check(char *reason, size_t capacity, struct spw_cli_card *ret_card);

/* Map and unmap zeroed memory that this process shares with its forked children. If memory runs
 * out, spw_cli_shared_map sets errno and returns NULL. Unlike a pipe, shared memory needs no
 * descriptor, and its content is complete as soon as the child has ended. */
void *spw_cli_shared_map(size_t bytes);
void spw_cli_shared_unmap(void *memory, size_t bytes);

#include "cli/inspect/running.h"

#include "system/clock.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { SCAN_MS = 2000, SCAN_SHARE = 20 }; /* scans take at most 1/20 of the time */

static volatile sig_atomic_t reading; /* the pid that is being read; 0: none */

static bool is_listed(const struct spw_cli_running *running, int pid)
{
    for (int i = 0; i < running->count; i++) {
        if (running->list[i]->pid == pid) {
            return true;
        }
    }
    return false;
}

/* Adds a process if it runs under spillway and may be read. *spare is memory for one process, or
 * NULL. It is set to NULL if it is used. */
static void consider(struct spw_cli_running *running, int pid, struct spw_cli_watched **spare)
{
    if (*spare == NULL) {
        *spare = malloc(sizeof(**spare));
    }
    if (*spare == NULL) {
        return;
    }
    reading = pid;
    if (spw_cli_watched_open(pid, *spare) == SPW_CLI_WATCH_OPENED) {
        if (running->count < SPW_CLI_RUNNING_MOST) {
            running->list[running->count++] = *spare;
            *spare = NULL;
        } else {
            spw_cli_watched_close(*spare);
            running->full = true;
        }
    }
    reading = 0;
}

static void scan(struct spw_cli_running *running)
{
    struct spw_cli_watched *spare = NULL;
    DIR *processes = opendir("/proc");
    const struct dirent *entry;

    running->full = false;
    while (processes != NULL && !running->full && (entry = readdir(processes)) != NULL) {
        int pid = (int)strtol(entry->d_name, NULL, 10);

        if (pid > 0 && pid != getpid() && !is_listed(running, pid)) {
            consider(running, pid, &spare);
        }
    }
    if (processes != NULL) {
        closedir(processes);
    }
    free(spare);
}

/* Removes ended processes; with `checking`, also processes that execute another program. */
static void read_known(struct spw_cli_running *running, bool checking)
{
    int kept = 0;

    for (int i = 0; i < running->count; i++) {
        struct spw_cli_watched *watched = running->list[i];

        reading = watched->pid;
        if (spw_cli_watched_lives(watched) && !(checking && spw_cli_watched_replaced(watched)) &&
            spw_cli_watched_read(watched)) {
            running->list[kept++] = watched;
        } else {
            spw_cli_watched_close(watched);
            free(watched);
        }
    }
    reading = 0;
    running->count = kept;
}

void spw_cli_running_read(struct spw_cli_running *running)
{
    uint64_t begin = spw_clock_ns() / 1000000;
    bool due = begin >= running->next_scan_ms;

    read_known(running, /* checking */ due);
    if (due) {
        uint64_t took, wait;

        scan(running);
        took = spw_clock_ns() / 1000000 - begin;
        wait = took * SCAN_SHARE;
        running->next_scan_ms = begin + (wait > SCAN_MS ? wait : SCAN_MS);
    }
}

void spw_cli_running_close(struct spw_cli_running *running)
{
    for (int i = 0; i < running->count; i++) {
        spw_cli_watched_close(running->list[i]);
        free(running->list[i]);
    }
    running->count = 0;
}

int spw_cli_running_now(void)
{
    return reading;
}

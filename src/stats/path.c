#include "stats/path.h"

#include "common/options.h"
#include "system/pid.h"
#include "system/start.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FIRST_BYTES "{\"schema\": 1, \"pid\": "

/* The variables of the common launchers: torchrun (and Accelerate, Ray Train), Open MPI, MPICH,
 * Slurm. */
enum { LAUNCHERS = 4 };

static const char *find(const char *const names[LAUNCHERS])
{
    for (size_t i = 0; i < LAUNCHERS; i++) {
        const char *value = spw_option_environment(names[i]);

        if (value != NULL && *value != '\0' && strchr(value, '/') == NULL) {
            return value;
        }
    }
    return NULL;
}

static const char *find_rank(void)
{
    static const char *const names[LAUNCHERS] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                                 "SLURM_PROCID"};

    return find(names);
}

static uint32_t find_count(const char *const names[LAUNCHERS])
{
    const char *text = find(names);
    long number = text != NULL ? strtol(text, NULL, 10) : 0;

    return number > 0 && number <= INT32_MAX ? (uint32_t)number : 0;
}

uint32_t spw_stats_ranks(void)
{
    static const char *const names[LAUNCHERS] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                                 "SLURM_NTASKS"};

    return find_count(names);
}

uint32_t spw_stats_local_ranks(void)
{
    /* Slurm writes "8" or, for several machines, "8(x2),4": the first number is close enough. */
    static const char *const names[LAUNCHERS] = {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
                                                 "MPI_LOCALNRANKS", "SLURM_TASKS_PER_NODE"};

    return find_count(names);
}

int64_t spw_stats_rank(void)
{
    const char *text = find_rank();
    char *end;
    long long number = text != NULL ? strtoll(text, &end, 10) : -1;

    return text != NULL && *end == '\0' && number >= 0 ? number : -1;
}

static bool append(char *path, size_t capacity, size_t *used, const char *text)
{
    size_t length = strlen(text);

    if (length >= capacity - *used) {
        return false;
    }
    memcpy(path + *used, text, length + 1);
    *used += length;
    return true;
}

static bool append_directive(char *path, size_t capacity, size_t *used, char directive,
                             const char *rank)
{
    char text[256] = {'%', directive, '\0'};

    switch (directive) {
    case 'p':
        snprintf(text, sizeof(text), "%d", (int)getpid());
        break;
    case 'r':
        snprintf(text, sizeof(text), "%s", rank != NULL ? rank : "0");
        break;
    case 'h':
        gethostname(text, sizeof(text) - 1);
        break;
    case '%':
        text[1] = '\0';
        break;
    default:
        break;
    }
    return append(path, capacity, used, text);
}

bool spw_stats_path_expand(const char *pattern, char *path, size_t capacity)
{
    return spw_stats_path_expand_for(pattern, find_rank(), path, capacity);
}

bool spw_stats_path_expand_for(const char *pattern, const char *rank, char *path, size_t capacity)
{
    size_t used = 0;

    path[0] = '\0';
    if (*pattern != '/') {
        if (!spw_start_path("", path, capacity)) {
            return false;
        }
        used = strlen(path);
    }
    for (; *pattern != '\0'; pattern++) {
        char letter[2] = {*pattern, '\0'};

        if (*pattern == '%' && pattern[1] != '\0') {
            if (!append_directive(path, capacity, &used, *++pattern, rank)) {
                return false;
            }
        } else if (!append(path, capacity, &used, letter)) {
            return false;
        }
    }
    return true;
}

bool spw_stats_path_has(const char *pattern, char directive)
{
    while ((pattern = strchr(pattern, '%')) != NULL && pattern[1] != '\0') {
        if (pattern[1] == directive) {
            return true;
        }
        pattern += 2;
    }
    return false;
}

int spw_stats_path_owner(const char *path)
{
    char text[sizeof(FIRST_BYTES) + 16] = "";
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t length;

    if (fd < 0) {
        return 0;
    }
    length = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (length < (ssize_t)sizeof(FIRST_BYTES) ||
        strncmp(text, FIRST_BYTES, sizeof(FIRST_BYTES) - 1) != 0) {
        return 0;
    }
    return atoi(text + sizeof(FIRST_BYTES) - 1);
}

static bool is_before(struct timespec a, struct timespec b)
{
    return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

/* Returns true for a process of this run: it has a mapping in the launcher's folder. */
static bool is_of_this_run(int pid)
{
    const char *folder = spw_option_environment("SPILLWAY_RUN_DIR");
    char path[1024];

    if (folder == NULL || pid == 0 || pid == (int)getpid()) {
        return false;
    }
    snprintf(path, sizeof(path), "%s/%d", folder, pid);
    return access(path, F_OK) == 0;
}

void spw_stats_path_clear(const char *path, uint64_t start)
{
    struct timespec began = spw_pid_start_time(start);
    struct stat status;
    int owner;

    if (lstat(path, &status) != 0 || !S_ISREG(status.st_mode)) {
        return;
    }
    owner = spw_stats_path_owner(path);
    if ((owner != 0 || status.st_size == 0) && is_before(status.st_mtim, began) &&
        !is_of_this_run(owner)) {
        unlink(path);
    }
}

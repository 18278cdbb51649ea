#include "cli/cudnn/answers.h"

#include "common/hash.h"
#include "common/map.h"
#include "system/cache.h"
#include "system/create.h"
#include "system/fd.h"

#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NAME "cudnn-answers-4" /* the number changes with the form of records */

enum { MOST_BYTES = 16 << 20, MAGIC = 0x4e4e4441 };

/* The engines follow. */
struct record {
    uint32_t magic;
    uint32_t count; /* of engines */
    uint64_t key;   /* hash of the question and of the library's files */
    uint64_t sum;   /* hash of the engines */
};

static int file = -1;
static struct spw_map answers; /* struct record by `key` */

static size_t record_bytes(const struct record *record)
{
    return sizeof(*record) + record->count * sizeof(struct sim_cudnn_engine);
}

static uint64_t sum_of(const struct record *record)
{
    return spw_hash_bytes(record + 1, record_bytes(record) - sizeof(*record));
}

/* ---- the file ---- */

/* Keeps a copy of a record in memory. */
static bool keep(const struct record *record)
{
    struct record *copy = malloc(record_bytes(record));
    void *older;

    if (copy == NULL) {
        return false;
    }
    memcpy(copy, record, record_bytes(record));
    older = spw_map_get(&answers, record->key);
    if (!spw_map_put(&answers, record->key, copy)) {
        free(copy);
        return false;
    }
    free(older);
    return true;
}

/* Keeps the records in `bytes` bytes. Returns the number of bytes before the first bad record. The
 * sizes of records are multiples of 8, so that each is aligned. */
static size_t read_records(const unsigned char *from, size_t bytes)
{
    size_t at = 0;

    while (bytes - at >= sizeof(struct record)) {
        const struct record *record = (const struct record *)(const void *)(from + at);

        if (record->magic != MAGIC || record->count > SIM_CUDNN_ENGINES ||
            record_bytes(record) > bytes - at || record->sum != sum_of(record) || !keep(record)) {
            break;
        }
        at += record_bytes(record);
    }
    return at;
}

/* Reads the file, and drops what a process that was killed has left at its end. */
static void read_file(void)
{
    off_t bytes = lseek(file, 0, SEEK_END);
    unsigned char *content = bytes >= 0 && bytes <= MOST_BYTES ? malloc((size_t)bytes + 1) : NULL;
    size_t good = 0;

    if (content != NULL && spw_fd_read_at(file, content, (size_t)bytes, 0)) {
        good = read_records(content, (size_t)bytes);
    }
    if ((off_t)good != bytes) {
        (void)ftruncate(file, (off_t)good);
    }
    free(content);
}

void spw_cli_cudnn_answers_open(void)
{
    char folder[PATH_MAX - sizeof("/" FILE_NAME)], path[PATH_MAX];

    if (!spw_cache_folder(/* make */ true, folder, sizeof(folder))) {
        return;
    }
    (void)snprintf(path, sizeof(path), "%s/" FILE_NAME, folder);
    file = spw_create_open(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK, 0600);
    /* Another launcher may be stopped while it has the lock. */
    if (file >= 0 && spw_fd_is_own(file, S_IFREG) && flock(file, LOCK_EX | LOCK_NB) == 0) {
        read_file();
        (void)flock(file, LOCK_UN);
    } else if (file >= 0) {
        close(file);
        file = -1;
    }
}

/* ---- answers ---- */

/* Hashes what changes when another file is put at a path. */
static uint64_t add_file(uint64_t hash, const char *path)
{
    struct stat status;

    if (stat(path, &status) != 0) {
        return hash;
    }
    hash = spw_hash_mix(hash, (uint64_t)status.st_ino);
    hash = spw_hash_mix(hash, (uint64_t)status.st_size);
    hash = spw_hash_mix(hash, (uint64_t)status.st_ctim.tv_sec);
    return spw_hash_mix(hash, (uint64_t)status.st_ctim.tv_nsec);
}

/* Hashes the files of the library, whose path begins the content: libcudnn.so.9 loads the others
 * from its own folder. It names more engines if it finds a driver. */
static uint64_t add_files(uint64_t hash, const unsigned char *content, size_t bytes)
{
    static const char *const parts[] = {"_graph", "_heuristic", "_engines_precompiled",
                                        "_engines_runtime_compiled"};
    static const char *const drivers[] = {
        "/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib/aarch64-linux-gnu/libcuda.so.1",
        "/usr/lib64/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"};
    const char *path = (const char *)content, *end;

    if (memchr(content, '\0', bytes) == NULL || (end = strstr(path, ".so")) == NULL) {
        return hash;
    }
    hash = add_file(hash, path);
    for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
        hash = add_file(hash, drivers[i]);
    }
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        char part[PATH_MAX];

        if (snprintf(part, sizeof(part), "%.*s%s.so.9", (int)(end - path), path, parts[i]) <
            (int)sizeof(part)) {
            hash = add_file(hash, part);
        }
    }
    return hash;
}

static uint64_t key_of(const unsigned char *content, size_t bytes)
{
    return add_files(spw_hash_bytes(content, bytes), content, bytes);
}

bool spw_cli_cudnn_answers_find(const unsigned char *content, size_t bytes,
                                struct sim_cudnn_engine *ret_engines, size_t *ret_count)
{
    const struct record *found = spw_map_get(&answers, key_of(content, bytes));

    if (found == NULL) {
        return false;
    }
    memcpy(ret_engines, found + 1, record_bytes(found) - sizeof(*found));
    *ret_count = found->count;
    return true;
}

/* Appends a record, or leaves the file as it was. */
static void write_record(const struct record *record)
{
    off_t end;

    if (file < 0 || flock(file, LOCK_EX | LOCK_NB) != 0) {
        return;
    }
    end = lseek(file, 0, SEEK_END);
    if (!spw_fd_write(file, (const char *)record, record_bytes(record)) && end >= 0) {
        (void)ftruncate(file, end);
    }
    (void)flock(file, LOCK_UN);
}

void spw_cli_cudnn_answers_add(const unsigned char *content, size_t bytes,
                               const struct sim_cudnn_engine *engines, size_t count)
{
    struct record *record = malloc(sizeof(*record) + count * sizeof(*engines));

    if (record == NULL) {
        return;
    }
    *record = (struct record){MAGIC, (uint32_t)count, key_of(content, bytes), 0};
    memcpy(record + 1, engines, count * sizeof(*engines));
    record->sum = sum_of(record);
    (void)keep(record);
    if (count > 0) {
        write_record(record);
    }
    free(record);
}

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

#define FILE_NAME "cudnn-answers-1" /* the number changes with the form of records */

enum { MOST_BYTES = 16 << 20, MAGIC = 0x4e4e4441 };

/* The engines follow. */
struct record {
    uint32_t magic;
    uint32_t count; /* of engines */
    uint64_t key;   /* two hashes of the question and of the library's file */
    uint64_t check;
};

static int file = -1;
static struct spw_map answers; /* struct record by `key` */

static size_t record_bytes(const struct record *record)
{
    return sizeof(*record) + record->count * sizeof(struct sim_cudnn_engine);
}

/* ---- the file ---- */

static bool is_private(int fd, off_t *ret_bytes)
{
    struct stat status;

    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid() ||
        (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return false;
    }
    *ret_bytes = status.st_size;
    return true;
}

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
            record_bytes(record) > bytes - at || !keep(record)) {
            break;
        }
        at += record_bytes(record);
    }
    return at;
}

/* Reads the file, and drops what a process that was killed has left at its end. */
static void read_file(off_t bytes)
{
    unsigned char *content = bytes <= MOST_BYTES ? malloc((size_t)bytes + 1) : NULL;
    size_t good = 0;

    if (content != NULL && spw_fd_read_at(file, content, (size_t)bytes, 0)) {
        good = read_records(content, (size_t)bytes);
    }
    if (good != (size_t)bytes) {
        (void)ftruncate(file, (off_t)good);
    }
    free(content);
}

void spw_cli_cudnn_answers_open(void)
{
    char folder[PATH_MAX - sizeof("/" FILE_NAME)], path[PATH_MAX];
    off_t bytes;

    if (!spw_cache_folder(/* make */ true, folder, sizeof(folder))) {
        return;
    }
    (void)snprintf(path, sizeof(path), "%s/" FILE_NAME, folder);
    file = spw_create_open(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (file < 0) {
        return;
    }
    if (is_private(file, &bytes) && flock(file, LOCK_EX) == 0) {
        if (is_private(file, &bytes)) { /* the size, now that nobody writes */
            read_file(bytes);
        }
        (void)flock(file, LOCK_UN);
    } else {
        close(file);
        file = -1;
    }
}

/* ---- answers ---- */

/* Hashes a question, and what changes when another version is installed at the library's path,
 * which begins the content. */
static struct record key_of(const unsigned char *content, size_t bytes)
{
    struct record record = {.magic = MAGIC};
    struct stat status = {0};

    if (memchr(content, '\0', bytes) != NULL) {
        (void)stat((const char *)content, &status);
    }
    record.key = spw_hash_mix(spw_hash_bytes(content, bytes), (uint64_t)status.st_size);
    record.key = spw_hash_mix(record.key, (uint64_t)status.st_mtim.tv_sec);
    record.check = record.key;
    for (size_t i = 0; i < bytes; i++) {
        record.check = (record.check ^ content[i]) * UINT64_C(0x100000001b3);
    }
    return record;
}

bool spw_cli_cudnn_answers_find(const unsigned char *content, size_t bytes,
                                struct sim_cudnn_engine *ret_engines, size_t *ret_count)
{
    struct record wanted = key_of(content, bytes);
    const struct record *found = spw_map_get(&answers, wanted.key);

    if (found == NULL || found->check != wanted.check) {
        return false;
    }
    memcpy(ret_engines, found + 1, record_bytes(found) - sizeof(*found));
    *ret_count = found->count;
    return true;
}

void spw_cli_cudnn_answers_add(const unsigned char *content, size_t bytes,
                               const struct sim_cudnn_engine *engines, size_t count)
{
    struct record head = key_of(content, bytes), *record;

    head.count = (uint32_t)count;
    record = malloc(record_bytes(&head));
    if (record == NULL) {
        return;
    }
    *record = head;
    memcpy(record + 1, engines, record_bytes(&head) - sizeof(head));
    (void)keep(record);
    if (file >= 0 && flock(file, LOCK_EX) == 0) {
        (void)spw_fd_write(file, (const char *)record, record_bytes(record));
        (void)flock(file, LOCK_UN);
    }
    free(record);
}

#include "ipc/table.h"

#include "common/map.h"
#include "system/lock.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct spw_ipc_exports *const exports = &spw_ipc.exports;

/* A descriptor, and the identity of its file: a program may close every descriptor it knows, and
 * open files of its own under the same number. */
struct guarded_fd {
    int fd;
    dev_t device;
    ino_t inode;
};

struct entry {
    uint64_t address, block, offset, bytes;
    const void *context;
    uint64_t export_id;
    uint8_t key[SPW_IPC_KEY_BYTES];
    size_t count;
    uint64_t *chunks;
    struct guarded_fd *fds;
};

static void guard(int fd, struct guarded_fd *ret_guarded)
{
    struct stat status;

    *ret_guarded = (struct guarded_fd){.fd = fd};
    if (fstat(fd, &status) == 0) {
        ret_guarded->device = status.st_dev;
        ret_guarded->inode = status.st_ino;
    }
}

static bool is_ours(const struct guarded_fd *guarded)
{
    struct stat now;

    return fstat(guarded->fd, &now) == 0 && now.st_dev == guarded->device &&
           now.st_ino == guarded->inode;
}

static void free_entry(struct entry *entry, bool close_fds)
{
    for (size_t i = 0; close_fds && i < entry->count; i++) {
        if (is_ours(&entry->fds[i])) {
            close(entry->fds[i].fd);
        }
    }
    free(entry->chunks);
    free(entry->fds);
    free(entry);
}

static struct entry *new_entry(const struct spw_ipc_export *export)
{
    struct entry *entry = calloc(1, sizeof(*entry));

    if (entry == NULL) {
        return NULL;
    }
    entry->address = export->address;
    entry->block = export->block;
    entry->offset = export->offset;
    entry->bytes = export->bytes;
    entry->context = export->context;
    entry->count = export->count;
    entry->chunks = calloc(export->count, sizeof(*entry->chunks));
    entry->fds = calloc(export->count, sizeof(*entry->fds));
    if (entry->chunks == NULL || entry->fds == NULL ||
        !spw_ipc_random(entry->key, sizeof(entry->key))) {
        free_entry(entry, false);
        return NULL;
    }
    for (size_t i = 0; i < export->count; i++) {
        entry->chunks[i] = export->chunks[i];
        guard(export->fds[i], &entry->fds[i]);
    }
    return entry;
}

static void fill_in(const struct entry *entry, struct spw_ipc_handle *handle)
{
    handle->export_id = entry->export_id;
    memcpy(handle->key, entry->key, sizeof(handle->key));
}

/* False when the program has closed a descriptor of the export. */
static bool is_whole(const struct entry *entry)
{
    size_t i = 0;

    while (i < entry->count && is_ours(&entry->fds[i])) {
        i++;
    }
    return i == entry->count;
}

bool spw_ipc_table_find(uint64_t address, uint64_t block, struct spw_ipc_handle *handle)
{
    const struct entry *entry;
    bool found;

    spw_lock(&spw_locks.exports);
    entry = spw_map_get(&exports->entries, address);
    found = entry != NULL && entry->block == block && is_whole(entry);
    if (found) {
        fill_in(entry, handle);
    }
    spw_unlock(&spw_locks.exports);
    return found;
}

bool spw_ipc_table_add(const struct spw_ipc_export *export, struct spw_ipc_handle *handle)
{
    struct entry *entry = new_entry(export), *old = NULL;
    bool added = false;

    if (entry == NULL) {
        return false;
    }
    spw_lock(&spw_locks.exports);
    entry->export_id = ++exports->last_id;
    old = spw_map_take(&exports->entries, export->address);
    added = spw_map_put(&exports->entries, export->address, entry);
    if (added) {
        fill_in(entry, handle);
    }
    atomic_store(&exports->count, exports->entries.count);
    spw_unlock(&spw_locks.exports);
    if (old != NULL) {
        free_entry(old, true);
    }
    if (!added) {
        free_entry(entry, false);
    }
    return added;
}

void spw_ipc_table_remove(uint64_t address)
{
    struct entry *entry;

    spw_lock(&spw_locks.exports);
    entry = spw_map_take(&exports->entries, address);
    atomic_store(&exports->count, exports->entries.count);
    if (entry != NULL) {
        free_entry(entry, true); /* under the lock: an answer may be sending its descriptors */
    }
    spw_unlock(&spw_locks.exports);
}

/* Returns an entry of `context`, or of any context if `context` is NULL. NULL when there is no
 * entry. */
static struct entry *find_of(const void *context)
{
    struct entry *entry;
    size_t cursor = 0;

    do {
        entry = spw_map_next(&exports->entries, &cursor);
    } while (entry != NULL && context != NULL && entry->context != context);
    return entry;
}

void spw_ipc_table_end_context(const void *context)
{
    struct entry *entry;

    spw_lock(&spw_locks.exports);
    while ((entry = find_of(context)) != NULL) {
        (void)spw_map_take(&exports->entries, entry->address);
        free_entry(entry, true);
    }
    atomic_store(&exports->count, exports->entries.count);
    spw_unlock(&spw_locks.exports);
}

/* ---- answers ---- */

/* Takes the same time wherever the keys first differ. */
static bool same_key(const uint8_t *a, const uint8_t *b)
{
    uint8_t difference = 0;

    for (int i = 0; i < SPW_IPC_KEY_BYTES; i++) {
        difference |= a[i] ^ b[i];
    }
    return difference == 0;
}

/* Returns the entry that a request names, if its key is right. */
static const struct entry *find_requested(const struct spw_ipc_request *request)
{
    const struct entry *entry;
    size_t cursor = 0;

    while ((entry = spw_map_next(&exports->entries, &cursor)) != NULL) {
        if (entry->export_id == request->export_id) {
            return same_key(entry->key, request->key) ? entry : NULL;
        }
    }
    return NULL;
}

/* Fills in the sizes and descriptors from chunk `first` on. Returns their number, or 0 when the
 * program has closed one of them. */
static size_t fill_batch(const struct entry *entry, size_t first, struct spw_ipc_answer *answer,
                         int *ret_fds)
{
    size_t count = 0;

    for (; count < SPW_IPC_BATCH && first + count < entry->count; count++) {
        answer->chunks[count] = entry->chunks[first + count];
        ret_fds[count] = entry->fds[first + count].fd;
        if (!is_ours(&entry->fds[first + count])) {
            return 0;
        }
    }
    return count;
}

void spw_ipc_table_answer(const struct spw_ipc_request *request, int socket)
{
    struct spw_ipc_answer *answer = &exports->answer;
    const struct entry *entry;
    size_t count = 0;

    spw_lock(&spw_locks.exports);
    memset(answer, 0, sizeof(*answer));
    answer->status = SPW_IPC_UNKNOWN;
    entry = find_requested(request);
    if (entry != NULL && request->first < entry->count) {
        count = fill_batch(entry, request->first, answer, exports->fds);
    }
    if (count > 0) {
        answer->status = SPW_IPC_GRANTED;
        answer->count = (uint32_t)entry->count;
        answer->offset = entry->offset;
        answer->bytes = entry->bytes;
    }
    (void)spw_ipc_send(socket, answer, sizeof(*answer), exports->fds, count);
    spw_unlock(&spw_locks.exports);
}

#include "sim/libs/nccl/board.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "system/file_limit.h"

#define CAPACITY      4096
#define COMMUNICATORS 64
#define RANKS         64
#define WAIT_SECONDS  60
#define WAIT_STEP_NS  1000000L

static const char id_magic[8] = "spillway";

/* The contents of a unique id. */
struct id_content {
    char mark[sizeof(id_magic)];
    uint64_t nonce;
    int pid;
    int file;
};

struct slot {
    uint32_t is_ready;
    struct sim_nccl_board_entry entry;
};

/* The shared memory. */
struct shared {
    uint64_t nonce;
    uint32_t used;
    struct slot slots[CAPACITY];
    uint64_t owners[COMMUNICATORS]; /* owner of each row of boxes: communicator + 1; 0: free */
    struct sim_nccl_board_box boxes[COMMUNICATORS][RANKS];
};

struct sim_nccl_board {
    unsigned int refs;
    bool kept; /* stays mapped until the process ends */
    struct shared *shared;
};

static struct shared *map_file(int file)
{
    void *memory = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

/* The file stays open: other processes open the memory through it. */
bool sim_nccl_board_create(ncclUniqueId *ret_id)
{
    struct id_content id = {.pid = getpid()};
    struct shared *shared = NULL;

    memcpy(id.mark, id_magic, sizeof(id_magic));
    if (getrandom(&id.nonce, sizeof(id.nonce), 0) != (ssize_t)sizeof(id.nonce)) {
        return false;
    }
    id.file = memfd_create("spillway-nccl", MFD_CLOEXEC);
    if (id.file < 0) {
        return false;
    }
    if (spw_file_may_have(sizeof(*shared)) && ftruncate(id.file, sizeof(*shared)) == 0) {
        shared = map_file(id.file);
    }
    if (shared == NULL) {
        (void)close(id.file);
        return false;
    }
    shared->nonce = id.nonce;
    (void)munmap(shared, sizeof(*shared));
    memset(ret_id, 0, sizeof(*ret_id));
    memcpy(ret_id->internal, &id, sizeof(id));
    return true;
}

/* Maps the memory of an id. NULL if the process that created the id has ended. The nonce detects a
 * later process with the same pid. */
static struct shared *find(const struct id_content *id)
{
    char path[64];
    struct shared *shared;
    int file;

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", id->pid, id->file);
    file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) {
        return NULL;
    }
    shared = lseek(file, 0, SEEK_END) == (off_t)sizeof(*shared) ? map_file(file) : NULL;
    (void)close(file);
    if (shared != NULL && shared->nonce != id->nonce) {
        (void)munmap(shared, sizeof(*shared));
        return NULL;
    }
    return shared;
}

struct sim_nccl_board *sim_nccl_board_open(const ncclUniqueId *id)
{
    struct id_content content;
    struct sim_nccl_board *board;

    memcpy(&content, id->internal, sizeof(content));
    if (memcmp(content.mark, id_magic, sizeof(id_magic)) != 0) {
        return NULL;
    }
    board = malloc(sizeof(*board));
    if (board == NULL) {
        return NULL;
    }
    board->refs = 1;
    board->kept = false;
    board->shared = find(&content);
    if (board->shared == NULL) {
        free(board);
        return NULL;
    }
    return board;
}

struct sim_nccl_board *sim_nccl_board_ref(struct sim_nccl_board *board)
{
    if (board != NULL) {
        __atomic_add_fetch(&board->refs, 1, __ATOMIC_RELAXED);
    }
    return board;
}

void sim_nccl_board_unref(struct sim_nccl_board *board)
{
    if (board != NULL && __atomic_sub_fetch(&board->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        if (!board->kept) {
            (void)munmap(board->shared, sizeof(*board->shared));
        }
        free(board);
    }
}

void sim_nccl_board_keep(struct sim_nccl_board *board)
{
    __atomic_store_n(&board->kept, true, __ATOMIC_RELAXED);
}

bool sim_nccl_board_post(struct sim_nccl_board *board, const struct sim_nccl_board_entry *entry)
{
    uint32_t index = __atomic_fetch_add(&board->shared->used, 1, __ATOMIC_RELAXED);
    struct slot *slot;

    if (index >= CAPACITY) {
        return false;
    }
    slot = &board->shared->slots[index];
    slot->entry = *entry;
    __atomic_store_n(&slot->is_ready, 1, __ATOMIC_RELEASE);
    return true;
}

static size_t gather(const struct shared *shared, uint64_t communicator, uint32_t split,
                     struct sim_nccl_board_entry *entries, size_t count)
{
    uint32_t used = __atomic_load_n(&shared->used, __ATOMIC_RELAXED);
    size_t found = 0;

    for (uint32_t i = 0; i < used && i < CAPACITY && found < count; i++) {
        const struct slot *slot = &shared->slots[i];

        if (__atomic_load_n(&slot->is_ready, __ATOMIC_ACQUIRE) &&
            slot->entry.communicator == communicator && slot->entry.split == split) {
            entries[found++] = slot->entry;
        }
    }
    return found;
}

struct sim_nccl_board_entry *sim_nccl_board_collect(struct sim_nccl_board *board,
                                                    uint64_t communicator, uint32_t split,
                                                    size_t count)
{
    struct timespec step = {0, WAIT_STEP_NS};
    struct sim_nccl_board_entry *entries = calloc(count, sizeof(*entries));
    long steps = WAIT_SECONDS * (1000000000L / WAIT_STEP_NS);

    if (entries == NULL) {
        return NULL;
    }
    while (gather(board->shared, communicator, split, entries, count) < count) {
        if (steps-- == 0) {
            free(entries);
            return NULL;
        }
        (void)nanosleep(&step, NULL);
    }
    return entries;
}

struct sim_nccl_board_box *sim_nccl_board_boxes(struct sim_nccl_board *board, uint64_t communicator,
                                                int ranks)
{
    uint64_t owner = communicator + 1;

    for (int i = 0; i < COMMUNICATORS && ranks <= RANKS; i++) {
        uint64_t found = 0;

        if (__atomic_compare_exchange_n(&board->shared->owners[i], &found, owner, false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
            found == owner) {
            return board->shared->boxes[i];
        }
    }
    return NULL;
}

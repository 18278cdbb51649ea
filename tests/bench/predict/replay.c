/* Demand paging of a recorded program, with evictions chosen by predictions.
 *
 *     replay PERCENT [marked] < TRACE
 *
 * The device holds PERCENT of the most bytes that are in use at once: in blocks that were used and
 * are not freed yet. Before a call, the blocks that it uses are brought in. They take the place of
 * those whose next use is predicted to be the last; among equals, of those that were not used for
 * longest. Any part of a block can be evicted, so Belady's choice, which knows the future, brings
 * in the fewest bytes. A block has content once it was used. A call that uses more than the device
 * holds uses the rest over the link, which counts as brought in. With `marked` the predictions are
 * told where steps begin. Lines of the trace:
 *
 *     l BLOCK BYTES SITE    a block that is there at the beginning
 *     a BLOCK BYTES SITE    allocated
 *     f BLOCK               freed
 *     u BLOCK...            a call uses them
 *     s                     a step begins
 *
 * For each of the predictions, and for Belady's choice, it prints the bytes brought in, in the
 * whole trace and in its second half: "NAME, all BYTES" and "NAME, late BYTES". */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "predict/predictions.h"

enum { USED_MOST = 256, LINE_BYTES = 4096, CALLS = 1 << 19, USES = 1 << 21 };

struct act {
    char kind;
    uint32_t block; /* of `u`: the number of blocks */
    uint32_t site;
    uint64_t bytes; /* of `u`: the place in `uses` */
};

/* The trace. */
static struct act acts[CALLS];
static uint32_t uses[USES];
static uint64_t next_call[USES]; /* by place: the act that uses the block next */
static size_t act_count, use_count;
static uint64_t peak_bytes;

struct resident {
    uint64_t bytes;
    uint64_t here;      /* of them, on the device */
    uint64_t last;      /* the act that used it last */
    uint64_t next_call; /* the act that uses it next, in fact */
    bool filled;
};

/* A device that pages. */
struct pager {
    const struct predictions *predictions; /* NULL: Belady */
    void *self;
    struct resident blocks[PREDICT_BLOCKS];
    uint32_t here[PREDICT_BLOCKS]; /* the blocks on the device, in no order */
    size_t here_count;
    uint64_t room, in_bytes;
};

static void fail(const char *what)
{
    fprintf(stderr, "replay: %s\n", what);
    exit(1);
}

/* ---- the trace ---- */

static void read_uses(struct act *act, const char *text)
{
    char *end;

    act->bytes = use_count;
    for (;; text = end) {
        unsigned long block = strtoul(text, &end, 10);

        if (end == text) {
            break;
        }
        if (block >= PREDICT_BLOCKS || use_count == USES) {
            fail("the trace is too long");
        }
        uses[use_count++] = (uint32_t)block;
        act->block++;
    }
}

static void read_trace(void)
{
    char line[LINE_BYTES];

    while (fgets(line, sizeof(line), stdin) != NULL) {
        struct act *act = &acts[act_count++];

        if (act_count == CALLS) {
            fail("the trace is too long");
        }
        act->kind = line[0];
        if (act->kind == 'u') {
            read_uses(act, line + 1);
        } else if (act->kind != 's') {
            sscanf(line + 1, "%" SCNu32 "%" SCNu64 "%" SCNu32, &act->block, &act->bytes,
                   &act->site);
        }
        if (act->kind == '\0' || strchr("lafus", act->kind) == NULL ||
            act->block >= PREDICT_BLOCKS) {
            fail("this is not a trace");
        }
    }
}

/* Finds the peak of what was used and is not freed yet. */
static void find_peak(void)
{
    static uint64_t sizes[PREDICT_BLOCKS];
    static bool used[PREDICT_BLOCKS];
    uint64_t live = 0;

    for (size_t i = 0; i < act_count; i++) {
        const struct act *act = &acts[i];

        if (act->kind == 'l' || act->kind == 'a') {
            sizes[act->block] = act->bytes;
        } else if (act->kind == 'f') {
            live -= used[act->block] ? sizes[act->block] : 0;
        }
        for (uint32_t j = 0; act->kind == 'u' && j < act->block; j++) {
            uint32_t block = uses[act->bytes + j];

            live += used[block] ? 0 : sizes[block];
            used[block] = true;
        }
        peak_bytes = live > peak_bytes ? live : peak_bytes;
    }
}

/* Finds the next use after each use. */
static void look_ahead(void)
{
    static uint64_t coming[PREDICT_BLOCKS];

    memset(coming, 0xff, sizeof(coming));
    for (size_t i = act_count; i-- > 0;) {
        for (uint32_t j = 0; acts[i].kind == 'u' && j < acts[i].block; j++) {
            next_call[acts[i].bytes + j] = coming[uses[acts[i].bytes + j]];
        }
        for (uint32_t j = 0; acts[i].kind == 'u' && j < acts[i].block; j++) {
            coming[uses[acts[i].bytes + j]] = i;
        }
    }
}

/* ---- paging ---- */

static uint64_t when_next(const struct pager *pager, uint32_t block)
{
    uint32_t next;

    if (pager->predictions == NULL) {
        return pager->blocks[block].next_call;
    }
    next = pager->predictions->next_use(pager->self, block);
    return next == PREDICT_NEVER ? UINT64_MAX : next;
}

/* The block that goes next; 0: all are used now. */
static uint32_t find_victim(const struct pager *pager, size_t now)
{
    uint32_t victim = 0;
    uint64_t latest = 0;

    for (size_t i = 0; i < pager->here_count; i++) {
        uint32_t block = pager->here[i];
        uint64_t next;

        if (pager->blocks[block].last == now) {
            continue;
        }
        next = when_next(pager, block);
        if (victim == 0 || next > latest ||
            (next == latest && pager->blocks[block].last < pager->blocks[victim].last)) {
            victim = block;
            latest = next;
        }
    }
    return victim;
}

/* Takes bytes of a block off the device. */
static void take(struct pager *pager, uint32_t block, uint64_t bytes)
{
    size_t i = 0;

    pager->blocks[block].here -= bytes;
    pager->room += bytes;
    if (bytes == 0 || pager->blocks[block].here > 0) {
        return;
    }
    while (pager->here[i] != block) {
        i++;
    }
    pager->here[i] = pager->here[--pager->here_count];
}

static void make_room(struct pager *pager, uint64_t bytes, size_t now)
{
    uint32_t victim;

    if (pager->room < bytes && pager->predictions != NULL) {
        pager->predictions->forecast(pager->self);
    }
    while (pager->room < bytes && (victim = find_victim(pager, now)) != 0) {
        uint64_t here = pager->blocks[victim].here, more = bytes - pager->room;
        uint64_t taken = here < more ? here : more;

        take(pager, victim, taken);
    }
}

static void bring_in(struct pager *pager, uint32_t number)
{
    struct resident *block = &pager->blocks[number];
    uint64_t missing = block->bytes - block->here;
    uint64_t fitting = missing < pager->room ? missing : pager->room;

    pager->in_bytes += block->filled ? missing : missing - fitting;
    block->filled = true;
    if (block->here == 0 && fitting > 0) {
        pager->here[pager->here_count++] = number;
    }
    block->here += fitting;
    pager->room -= fitting;
}

static void call(struct pager *pager, const struct act *act, size_t now)
{
    uint64_t missing = 0;

    for (uint32_t i = 0; i < act->block; i++) {
        struct resident *block = &pager->blocks[uses[act->bytes + i]];

        missing += block->last == now ? 0 : block->bytes - block->here;
        block->last = now;
        block->next_call = next_call[act->bytes + i];
        if (pager->predictions != NULL) {
            pager->predictions->use(pager->self, uses[act->bytes + i]);
        }
    }
    make_room(pager, missing, now);
    for (uint32_t i = 0; i < act->block; i++) {
        bring_in(pager, uses[act->bytes + i]);
    }
}

static void play(struct pager *pager, const struct act *act, size_t now, bool marked)
{
    const struct predictions *predictions = pager->predictions;

    switch (act->kind) {
    case 'l':
    case 'a':
        pager->blocks[act->block] =
            (struct resident){.bytes = act->bytes, .last = now, .next_call = UINT64_MAX};
        if (predictions != NULL) {
            (act->kind == 'l' ? predictions->live : predictions->alloc)(pager->self, act->block,
                                                                        act->bytes, act->site);
        }
        break;
    case 'f':
        take(pager, act->block, pager->blocks[act->block].here);
        if (predictions != NULL) {
            predictions->free(pager->self, act->block);
        }
        break;
    case 'u':
        call(pager, act, now);
        break;
    default:
        if (predictions != NULL && marked) {
            predictions->step(pager->self);
        }
    }
}

static void replay(const struct predictions *predictions, uint64_t capacity, bool marked)
{
    struct pager *pager = calloc(1, sizeof(*pager));
    const char *name = predictions != NULL ? predictions->name : "belady";
    uint64_t early = 0;

    if (pager == NULL) {
        fail("no memory");
    }
    pager->predictions = predictions;
    pager->self = predictions != NULL ? predictions->open() : NULL;
    pager->room = capacity;
    for (size_t i = 0; i < act_count; i++) {
        play(pager, &acts[i], i + 1, marked);
        early = i < act_count / 2 ? pager->in_bytes : early;
    }
    printf("%s, all %" PRIu64 "\n", name, pager->in_bytes);
    printf("%s, late %" PRIu64 "\n", name, pager->in_bytes - early);
    if (predictions != NULL) {
        predictions->close(pager->self);
    }
    free(pager);
}

int main(int argc, char **argv)
{
    static const struct predictions *const all[] = {NULL, &predict_nothing, &predict_last_period,
                                                    &predict_spillway};
    unsigned long percent = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    bool marked = argc > 2 && strcmp(argv[2], "marked") == 0;

    if (percent == 0) {
        fputs("usage: replay PERCENT [marked] < TRACE\n", stderr);
        return 2;
    }
    read_trace();
    find_peak();
    look_ahead();
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        replay(all[i], peak_bytes * percent / 100, marked);
    }
    return 0;
}

#include "callsite/capture.h"

#include "callsite/code_frees.h"
#include "callsite/cpython/python_modules.h"
#include "callsite/modules.h"
#include "callsite/native.h"
#include "callsite/python.h"
#include "callsite/stack_cache.h"
#include "callsite/tag.h"
#include "common/hash.h"
#include "common/likely.h"
#include "system/lock.h"
#include "system/stack.h"
#include "system/thread_name.h"
#include "system/uncancelled.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum {
    TEXT_BYTES = 16 << 20,
    TEXT_SLOTS = 1 << 16,
    SITE_BYTES = 32 << 20,
    STACK_LEAST = 8 << 10, /* bytes: libunwind takes 5 to 8 KiB */
    LOOK_EVERY = 64,       /* new stacks between two searches for an interpreter */
};

/* The state of one thread, in memory of its own. */
struct thread {
    bool inside;
    bool first; /* the first thread of the process, whose name never changes */
    unsigned misses;
    unsigned looked; /* misses plus 1 at the last search for an interpreter */
    unsigned hits;
    char name[SPW_THREAD_NAME];
    uint32_t name_text;
    struct spw_callsite_stack_cache *cache;
    struct spw_stack stack;
    struct spw_python_stack python;
    char modules[SPW_PYTHON_MODULES];
};

static struct spw_callsite_capture *const capture = &spw_callsite_state.capture;

static _Thread_local struct thread *this_thread __attribute__((tls_model("initial-exec")));

/* ---- threads ---- */

static void end_thread(void *kept)
{
    struct thread *thread = kept;

    this_thread = NULL;
    spw_callsite_stack_cache_destroy(thread->cache);
    (void)munmap(thread, sizeof(*thread));
}

static __attribute__((noinline)) struct thread *begin_thread(void)
{
    SPW_UNCANCELLED;
    struct thread *thread;

    if (!atomic_load_explicit(&capture->started, memory_order_acquire) ||
        spw_stack_left() < STACK_LEAST) {
        return NULL;
    }
    if (capture->native) {
        spw_callsite_native_open(); /* calls the dynamic loader: no lock may be held */
    }
    thread =
        mmap(NULL, sizeof(*thread), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (thread == MAP_FAILED) {
        return NULL;
    }
    thread->cache = spw_callsite_stack_cache_create();
    if (thread->cache == NULL || pthread_setspecific(capture->key, thread) != 0) {
        spw_callsite_stack_cache_destroy(thread->cache);
        (void)munmap(thread, sizeof(*thread));
        return NULL;
    }
    this_thread = thread;
    return thread;
}

/* The number of the thread's name. After a change of the name the cache is cleared, since its sites
 * have the old name. The caller holds the lock. */
static uint32_t role_of(struct thread *thread)
{
    char name[SPW_THREAD_NAME];

    spw_thread_name(name);
    if (memcmp(name, thread->name, sizeof(name)) != 0) {
        if (thread->name[0] != '\0') {
            spw_callsite_stack_cache_clear(thread->cache);
        }
        memcpy(thread->name, name, sizeof(name));
        thread->first = spw_thread_is_first();
        thread->name_text =
            spw_callsite_strings_intern(&capture->strings, name, strnlen(name, sizeof(name)));
    }
    return thread->name_text;
}

/* The number of the thread's tag. The caller holds the lock. */
static uint32_t tag_of_thread(void)
{
    const struct spw_callsite_tag *tag = &spw_callsite_this_tag;

    return tag->hash == 0
               ? 0
               : spw_callsite_strings_intern(&capture->strings, tag->name, strlen(tag->name));
}

/* ---- new stacks ---- */

/* A capture, for a guard. */
struct place {
    const char *api;
    struct spw_callsite_place at;
    const struct spw_python *python; /* the interpreter of `at.state`, if there is one */
    uint64_t key;
};

static void add_guard(struct thread *thread, const struct place *place, uint32_t site)
{
    struct spw_callsite_guard *guard = spw_callsite_stack_cache_place(thread->cache, place->key);

    if (capture->native) {
        spw_callsite_native_guard(guard, place->at.frame, thread->stack.native,
                                  thread->stack.native_count);
    }
    if (place->at.state != 0) {
        spw_lock(&spw_locks.sites);
        spw_callsite_python_guard(place->python, place->at.state, &thread->python,
                                  &capture->strings, guard);
        spw_unlock(&spw_locks.sites);
    }
    if (!guard->broken) {
        guard->site = site;
        guard->place = place->at;
        guard->key = place->key;
    }
}

static void publish(void)
{
    spw_lock(&spw_locks.sites);
    if (capture->share != NULL) {
        spw_callsite_shm_publish(capture->share, &capture->sites, &capture->strings);
    }
    spw_unlock(&spw_locks.sites);
}

/* Enters a stack in the table. Reads the classes of modules, once for each site, without a lock. */
static uint32_t enter(struct thread *thread, const struct place *place)
{
    struct spw_stack *stack = &thread->stack;
    size_t length =
        place->at.state == 0
            ? 0
            : spw_callsite_python_modules(place->python, &thread->python, thread->modules);
    uint32_t known, site;

    spw_lock(&spw_locks.sites);
    stack->modules = spw_callsite_strings_intern(&capture->strings, thread->modules, length);
    known = spw_callsite_table_count(&capture->sites);
    if (capture->share != NULL) {
        spw_callsite_shm_expect(capture->share, known);
    }
    site = spw_callsite_table_intern(&capture->sites, stack);
    spw_unlock(&spw_locks.sites);
    if (site > known) {
        spw_callsite_modules_note();
        publish();
    }
    return site;
}

/* Walks a stack that is not in the cache. Returns its site; 0 when less than STACK_LEAST bytes of
 * the thread's stack are left. */
static __attribute__((noinline)) uint32_t see(struct thread *thread, const struct place *place)
{
    SPW_UNCANCELLED;
    struct spw_stack *stack = &thread->stack;
    uint32_t site;

    if (spw_stack_left() < STACK_LEAST) {
        return 0;
    }
    thread->misses++;
    stack->api = place->api;
    stack->native_count = 0;
    stack->python_count = 0;
    stack->cut = false;
    if (capture->native) {
        stack->native_count =
            (uint16_t)spw_callsite_native_walk(stack->native, SPW_CALLSITE_NATIVE, &stack->cut);
    }
    if (place->at.state != 0) {
        spw_callsite_python_walk(place->python, place->at.state, &thread->python);
        stack->cut |= thread->python.cut;
    }
    spw_lock(&spw_locks.sites);
    if (place->at.state != 0) {
        stack->python_count = (uint16_t)spw_callsite_python_lines(place->python, &thread->python,
                                                                  &capture->strings, stack->python);
    }
    stack->thread = role_of(thread);
    stack->tag = tag_of_thread();
    site = spw_callsite_table_find(&capture->sites, stack);
    spw_unlock(&spw_locks.sites);
    if (site == 0) {
        site = enter(thread, place);
    }
    if (site != 0 && spw_callsite_stack_cache_again(thread->cache, place->key, site)) {
        add_guard(thread, place, site);
    }
    return site;
}

/* True at the first stack and after every LOOK_EVERY new stacks: a program may load Python
 * later. */
static bool is_to_look(struct thread *thread)
{
    bool due = thread->misses % LOOK_EVERY == 0 && thread->looked != thread->misses + 1;

    if (SPW_UNLIKELY(due)) {
        thread->looked = thread->misses + 1;
    }
    return due;
}

/* Returns true if the thread's name differs from the name in its sites. Checks only one of
 * SPW_THREAD_NAME_EVERY calls. */
static bool is_renamed(struct thread *thread)
{
    return !thread->first && SPW_UNLIKELY(++thread->hits % SPW_THREAD_NAME_EVERY == 0) &&
           spw_thread_is_renamed(thread->name);
}

/* A hash of the innermost frames of a stack, and of all else that a guard needs; not 0. */
static uint64_t key_of(const struct place *place, const void *caller)
{
    uint64_t key = spw_hash_mix(place->at.call, place->at.frame);

    if (capture->native) {
        key = spw_hash_mix(key, (uintptr_t)caller);
    }
    if (place->at.state != 0) {
        key = spw_callsite_python_key(place->python, place->at.state, key);
    }
    return key | 1;
}

__attribute__((noinline)) uint32_t spw_callsite_capture(const char *api)
{
    struct thread *thread = this_thread != NULL ? this_thread : begin_thread();
    struct place place = {.api = api,
                          .at = {.call = (uintptr_t)api ^ spw_callsite_this_tag.hash,
                                 .frame = (uintptr_t)__builtin_frame_address(0)}};
    uint32_t site;
    bool renamed;

    if (thread == NULL || thread->inside) {
        return 0;
    }
    thread->inside = true;
    if (capture->python) {
        place.at.state = spw_callsite_python_thread(is_to_look(thread), &place.python);
        place.at.frees = place.at.state != 0 ? spw_callsite_code_frees(place.python->code_type) : 1;
    }
    renamed = is_renamed(thread);
    site = renamed ? 0 : spw_callsite_stack_cache_expect(thread->cache, &place.at);
    if (SPW_UNLIKELY(site == 0)) {
        place.key = key_of(&place, __builtin_return_address(0));
        site = renamed ? 0 : spw_callsite_stack_cache_find(thread->cache, place.key, &place.at);
    }
    if (SPW_UNLIKELY(site == 0)) {
        int saved = errno;

        site = see(thread, &place);
        errno = saved;
    }
    thread->inside = false;
    return site;
}

/* ---- start, publishing, fork ---- */

void spw_callsite_start(enum spw_sites mode)
{
    if (mode == SPW_SITES_OFF || atomic_load(&capture->started)) {
        return;
    }
    if (!spw_callsite_strings_init(&capture->strings, TEXT_BYTES, TEXT_SLOTS) ||
        !spw_callsite_table_init(&capture->sites, SPW_CALLSITE_MOST, SITE_BYTES) ||
        pthread_key_create(&capture->key, end_thread) != 0) {
        return;
    }
    capture->native = mode == SPW_SITES_NATIVE || mode == SPW_SITES_BOTH;
    capture->python = mode == SPW_SITES_PYTHON || mode == SPW_SITES_BOTH;
    atomic_store_explicit(&capture->started, true, memory_order_release);
}

void spw_callsite_publish(struct spw_callsite_shm *share)
{
    capture->share = share;
    publish();
}

bool spw_callsite_adopt(struct spw_callsite_shm *share,
                        uint64_t (*move)(uint64_t address, void *context), void *context)
{
    if (share == NULL) {
        capture->sites = (struct spw_callsite_table){0};
        capture->strings = (struct spw_strings){0};
        return true;
    }
    return spw_callsite_shm_read(share, move, context, &capture->sites, &capture->strings);
}

const struct spw_callsite_table *spw_callsite_known(void)
{
    return &capture->sites;
}

const struct spw_strings *spw_callsite_texts(void)
{
    return &capture->strings;
}

unsigned spw_callsite_walks(void)
{
    return this_thread == NULL ? 0 : this_thread->misses;
}

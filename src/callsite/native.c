#define UNW_LOCAL_ONLY
#include "callsite/native.h"

#include "system/backoff.h"
#include "system/loader.h"
#include "system/log.h"
#include "system/room.h"
#include "system/start.h"

#include <dlfcn.h>
#include <libunwind.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define TEXT_OF(name) #name
#define NAME_OF(name) TEXT_OF(name)
#define LIBRARY       "libunwind.so.8"

/* OWN_MOST: most frames of this object at the inner end of a stack. WAIT_NS: how long a thread
 * waits for another one that opens the library. */
enum { OWN_MOST = 16, WAIT_NS = 20000000 };

#if defined(__x86_64__)
enum { FRAME_POINTER = UNW_X86_64_RBP };
#endif

struct unwinder {
    int (*backtrace)(void **, int);
    int (*get_context)(unw_context_t *);
    int (*init_local)(unw_cursor_t *, unw_context_t *);
    int (*step)(unw_cursor_t *);
    int (*get_reg)(unw_cursor_t *, unw_regnum_t, unw_word_t *);
    int (*get_save_loc)(unw_cursor_t *, int, unw_save_loc_t *);
    int (*is_signal_frame)(unw_cursor_t *);
    uintptr_t own_begin, own_end; /* addresses of this object */
};

static struct {
    _Atomic int state;
    struct unwinder functions;
} unwind;

enum { CLOSED, BUSY, OPEN, MISSING };

/* ---- opening ---- */

static void *open_beside(void)
{
    char SPW_ROOM *folder = spw_room_take(PATH_MAX);
    char SPW_ROOM *path = spw_room_take(PATH_MAX);

    if (folder == NULL || path == NULL || spw_start_own_folder(folder) == NULL ||
        snprintf(path, PATH_MAX, "%s/lib/" LIBRARY, folder) >= PATH_MAX) {
        return NULL;
    }
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* Finds the addresses of this object. */
static int visit(struct dl_phdr_info *info, size_t size, void *context)
{
    struct unwinder *found = context;
    uintptr_t here = (uintptr_t)spw_callsite_native_open;
    uintptr_t begin = UINTPTR_MAX;
    uintptr_t end = 0;

    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t at = info->dlpi_addr + segment->p_vaddr;

        if (segment->p_type == PT_LOAD) {
            begin = at < begin ? at : begin;
            end = at + segment->p_memsz > end ? at + segment->p_memsz : end;
        }
    }
    if (here < begin || here >= end) {
        return 0;
    }
    found->own_begin = begin;
    found->own_end = end;
    return 1;
}

/* Stores the address of a function in `ret_function`. C has no cast from a data pointer to a
 * function pointer. */
static void find(void *library, const char *name, void *ret_function)
{
    void *found = dlsym(library, name);

    memcpy(ret_function, &found, sizeof(found));
}

static bool look_up(struct unwinder *found)
{
    void *library = open_beside();

    if (library == NULL) {
        library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    }
    if (library == NULL) {
        return false;
    }
    find(library, NAME_OF(unw_init_local), &found->init_local);
    find(library, NAME_OF(unw_step), &found->step);
    find(library, NAME_OF(unw_get_reg), &found->get_reg);
    find(library, NAME_OF(unw_get_save_loc), &found->get_save_loc);
    find(library, NAME_OF(unw_is_signal_frame), &found->is_signal_frame);
#if defined(__x86_64__)
    find(library, NAME_OF(unw_tdep_getcontext), &found->get_context);
#endif
    find(library, "unw_backtrace", &found->backtrace);
    (void)dl_iterate_phdr(visit, found);
    return found->backtrace != NULL;
}

/* Calls libunwind once before several threads may call it. Later calls read, without libunwind's
 * lock, data that the first call writes (libunwind 1.6: unwi_full_mask). */
static void set_up(void)
{
    void *here[1];

    spw_loader_enter();
    (void)unwind.functions.backtrace(here, 1);
    spw_loader_leave();
}

/* Waits until another thread has opened the library, at most WAIT_NS. */
static void await_open(void)
{
    struct spw_backoff backoff = {.limit_ns = WAIT_NS};

    while (atomic_load_explicit(&unwind.state, memory_order_acquire) == BUSY &&
           spw_backoff_pause(&backoff)) {
    }
}

void spw_callsite_native_open(void)
{
    struct unwinder found = {0};
    int closed = CLOSED;
    bool there;

    if (atomic_load_explicit(&unwind.state, memory_order_acquire) != CLOSED) {
        await_open();
        return;
    }
    spw_loader_enter();
    there = look_up(&found);
    spw_loader_leave();
    if (!atomic_compare_exchange_strong(&unwind.state, &closed, BUSY)) {
        await_open();
        return;
    }
    unwind.functions = found;
    if (there) {
        set_up();
    }
    atomic_store_explicit(&unwind.state, there ? OPEN : MISSING, memory_order_release);
    if (!there) {
        spw_log_always("call sites: " LIBRARY " is not found; native frames are missing");
    }
}

/* ---- walking ---- */

static bool is_own(uint64_t address)
{
    return address - unwind.functions.own_begin <
           unwind.functions.own_end - unwind.functions.own_begin;
}

int spw_callsite_native_walk(uint64_t *ret_addresses, int most, bool *ret_cut)
{
    void *found[SPW_CALLSITE_NATIVE + OWN_MOST];
    int own = 0;
    int count;

    *ret_cut = false;
    if (atomic_load_explicit(&unwind.state, memory_order_acquire) != OPEN) {
        return 0;
    }
    spw_loader_enter();
    count = unwind.functions.backtrace(found, most + OWN_MOST);
    spw_loader_leave();
    while (own < count && own < OWN_MOST && is_own((uintptr_t)found[own])) {
        own++;
    }
    *ret_cut = count - own > most;
    count = *ret_cut ? most : count - own;
    for (int i = 0; i < count; i++) {
        ret_addresses[i] = (uintptr_t)found[own + i];
    }
    return count;
}

/* ---- guarding ---- */

#if defined(__x86_64__)

static uint64_t word_at(uintptr_t address)
{
    return *(const uint64_t *)address;
}

/* The stack at one step of the cursor. */
struct step {
    unw_word_t address; /* of the instruction */
    unw_word_t stack;
    unw_word_t frame_pointer;
};

static bool read_step(unw_cursor_t *cursor, struct step *ret_step)
{
    return unwind.functions.get_reg(cursor, UNW_REG_IP, &ret_step->address) == 0 &&
           unwind.functions.get_reg(cursor, UNW_REG_SP, &ret_step->stack) == 0 &&
           unwind.functions.get_reg(cursor, FRAME_POINTER, &ret_step->frame_pointer) == 0 &&
           unwind.functions.is_signal_frame(cursor) <= 0;
}

/* The address where the current frame saved its caller's frame pointer. It is on the stack or, when
 * no function has changed the register, in the frame at the bottom. 0 when it is not known. */
static uintptr_t saved_frame_pointer(unw_cursor_t *cursor, uintptr_t bottom)
{
    unw_save_loc_t saved;

    if (unwind.functions.get_save_loc(cursor, FRAME_POINTER, &saved) != 0) {
        return 0;
    }
    return saved.type == UNW_SLT_MEMORY && saved.u.addr > bottom ? saved.u.addr : bottom;
}

/* Returns true when the unwinder may have found the outer frame by the inner one's frame pointer.
 * There are two such cases: the function keeps a frame pointer, or it aligns its stack and stores
 * its caller's stack address below its frame pointer. In all other functions the register is
 * general-purpose. */
static bool depends_on_pointer(struct spw_callsite_guard *guard, const struct step *inner,
                               const struct step *outer)
{
    uintptr_t kept = inner->frame_pointer - sizeof(uint64_t);

    if (inner->frame_pointer + 2 * sizeof(uint64_t) == outer->stack) {
        return true;
    }
    if (inner->frame_pointer <= inner->stack || inner->frame_pointer >= outer->stack ||
        kept % sizeof(uint64_t) != 0 || word_at(kept) != outer->stack) {
        return false;
    }
    spw_callsite_guard_add(guard, kept, outer->stack);
    return true;
}

/* Guards the words that lead from one frame to the next outer one. */
static bool add_link(struct spw_callsite_guard *guard, uintptr_t saved, const struct step *inner,
                     const struct step *outer)
{
    uintptr_t returns = outer->stack - sizeof(uint64_t);

    if (outer->stack <= inner->stack || word_at(returns) != outer->address) {
        return false;
    }
    if (depends_on_pointer(guard, inner, outer)) {
        if (saved == 0 || word_at(saved) != inner->frame_pointer) {
            return false;
        }
        spw_callsite_guard_add(guard, saved, inner->frame_pointer);
    }
    spw_callsite_guard_add(guard, returns, outer->address);
    return true;
}

/* Steps to the caller of the function whose frame address is `frame`. */
static bool step_to_bottom(unw_cursor_t *cursor, uintptr_t frame, struct step *ret_step)
{
    for (int i = 0; i < OWN_MOST; i++) {
        if (unwind.functions.step(cursor) <= 0 || !read_step(cursor, ret_step)) {
            return false;
        }
        if (ret_step->stack > frame) {
            return ret_step->stack == frame + 2 * sizeof(uint64_t);
        }
    }
    return false;
}

/* The state of libunwind, which is larger than a function's stack may be. */
struct unwinding {
    unw_context_t context;
    unw_cursor_t cursor;
};

static bool add_guard(struct spw_callsite_guard *guard, uintptr_t frame, const uint64_t *addresses,
                      int count)
{
    struct unwinding SPW_ROOM *at = spw_room_take(sizeof(*at));
    struct step inner, step;
    int matched = 0;

    if (at == NULL || unwind.functions.get_context(&at->context) != 0 ||
        unwind.functions.init_local(&at->cursor, &at->context) != 0 ||
        !step_to_bottom(&at->cursor, frame, &step)) {
        return false;
    }
    spw_callsite_guard_add(guard, frame + sizeof(uint64_t), word_at(frame + sizeof(uint64_t)));
    for (;;) {
        uintptr_t saved;

        if (matched > 0 || !is_own(step.address)) {
            if (step.address != addresses[matched]) {
                return false;
            }
            matched++;
        }
        if (matched == count) {
            return true;
        }
        inner = step;
        saved = saved_frame_pointer(&at->cursor, frame);
        if (unwind.functions.step(&at->cursor) <= 0 || !read_step(&at->cursor, &step) ||
            !add_link(guard, saved, &inner, &step)) {
            return false;
        }
    }
}

void spw_callsite_native_guard(struct spw_callsite_guard *guard, uintptr_t frame,
                               const uint64_t *addresses, int count)
{
    spw_loader_enter();
    if (unwind.functions.get_context == NULL || unwind.functions.init_local == NULL ||
        unwind.functions.step == NULL || unwind.functions.get_reg == NULL ||
        unwind.functions.get_save_loc == NULL || unwind.functions.is_signal_frame == NULL ||
        count == 0 || !add_guard(guard, frame, addresses, count)) {
        guard->broken = true;
    }
    spw_loader_leave();
}

#else

void spw_callsite_native_guard(struct spw_callsite_guard *guard, uintptr_t frame,
                               const uint64_t *addresses, int count)
{
    guard->broken = true; /* on this processor every stack is walked */
}

#endif

#include "callsite/python.h"

#include "callsite/code_frees.h"
#include "callsite/cpython/python_check.h"
#include "callsite/state.h"
#include "common/likely.h"
#include "system/backoff.h"
#include "system/loader.h"
#include "system/log.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static struct spw_callsite_interpreter *const process = &spw_callsite_state.interpreter;

enum { ABSENT, BUSY, UNCHECKED, READY, OFF };

/* The longest wait for another thread that looks up or checks the interpreter, which takes some
 * microseconds. That thread may need the loader's lock, which this thread may hold. */
enum { WAIT_NS = 20000000 };

/* ---- finding the interpreter ---- */

static void *find(const char *name)
{
    void *program = dlopen(NULL, RTLD_LAZY);
    void *found = program == NULL ? NULL : dlsym(program, name);

    if (program != NULL) {
        (void)dlclose(program);
    }
    return found;
}

static void switch_off(const char *version, const char *why)
{
    spw_log_always("call sites: Python %.40s cannot be read (%s); sites are native frames only",
                   version, why);
    atomic_store(&process->state, OFF);
}

/* Looks up the interpreter's functions and types, and its layout by version. */
static void note_interpreter(void)
{
    const char *(*get_version)(void) = (const char *(*)(void))(uintptr_t)find("Py_GetVersion");
    const char *version = get_version != NULL ? get_version() : "?";
    int major = 0, minor = 0;

    process->thread_state = (uintptr_t(*)(void))(uintptr_t)find("PyGILState_GetThisThreadState");
    process->python.is_initialized = (int (*)(void))(uintptr_t)find("Py_IsInitialized");
    process->is_finalizing = (int (*)(void))(uintptr_t)find("Py_IsFinalizing");
    if (process->is_finalizing == NULL) {
        process->is_finalizing = (int (*)(void))(uintptr_t)find("_Py_IsFinalizing");
    }
    process->python.code_type = (uintptr_t)find("PyCode_Type");
    process->python.text_type = (uintptr_t)find("PyUnicode_Type");
    process->python.bytes_type = (uintptr_t)find("PyBytes_Type");
    process->python.cell_type = (uintptr_t)find("PyCell_Type");
    if (sscanf(version, "%d.%d", &major, &minor) != 2 || major != 3) {
        switch_off(version, "unknown version");
        return;
    }
    process->python.layout = spw_callsite_python_layout_of(minor);
    if (process->python.layout == NULL) {
        switch_off(version, "unknown version");
    } else if (strstr(version, "free-threading") != NULL) {
        switch_off(version, "a build without the GIL");
    } else if (process->thread_state == NULL || process->python.is_initialized == NULL ||
               process->is_finalizing == NULL || process->python.code_type == 0 ||
               process->python.text_type == 0 || process->python.bytes_type == 0) {
        switch_off(version, "it lacks an export that spillway needs");
    } else {
        atomic_store(&process->state, UNCHECKED);
    }
}

static void look_for(void)
{
    int absent = ABSENT;

    spw_loader_enter();
    if (find("PyGILState_GetThisThreadState") != NULL &&
        atomic_compare_exchange_strong(&process->state, &absent, BUSY)) {
        note_interpreter();
    }
    spw_loader_leave();
}

/* Checks the interpreter on the first stack that has Python frames. */
static void check(uintptr_t thread)
{
    int unchecked = UNCHECKED;
    int frames = 0;
    const char *(*get_version)(void);
    const char *wrong;

    if (!atomic_compare_exchange_strong(&process->state, &unchecked, BUSY)) {
        return;
    }
    wrong = spw_callsite_python_check(&process->python, thread, &frames);
    if (wrong == NULL) {
        spw_callsite_code_frees_count(process->python.code_type);
        atomic_store(&process->state, frames > 0 ? READY : UNCHECKED);
        return;
    }
    get_version = (const char *(*)(void))(uintptr_t)find("Py_GetVersion");
    switch_off(get_version(), wrong);
}

/* Waits for another thread's look-up or check. After one time-out no thread waits again. */
static __attribute__((noinline)) int await_state(void)
{
    struct spw_backoff backoff = {.limit_ns = WAIT_NS};
    int state = atomic_load_explicit(&process->state, memory_order_acquire);

    while (state == BUSY && !atomic_load(&process->given_up)) {
        if (!spw_backoff_pause(&backoff)) {
            atomic_store(&process->given_up, true);
        }
        state = atomic_load_explicit(&process->state, memory_order_acquire);
    }
    return state;
}

static int settled_state(void)
{
    int state = atomic_load_explicit(&process->state, memory_order_acquire);

    return SPW_UNLIKELY(state == BUSY) ? await_state() : state;
}

void spw_callsite_python_reset(void)
{
    int busy = BUSY;

    atomic_compare_exchange_strong(&process->state, &busy, ABSENT);
}

uintptr_t spw_callsite_python_thread(bool look, const struct spw_python **ret_python)
{
    int state = settled_state();
    uintptr_t thread;

    if (state == ABSENT && look) {
        look_for();
        state = settled_state();
    }
    if ((state != READY && state != UNCHECKED) || !process->python.is_initialized() ||
        process->is_finalizing()) {
        return 0;
    }
    thread = process->thread_state();
    if (state == UNCHECKED && thread != 0) {
        check(thread);
        state = settled_state();
    }
    *ret_python = &process->python;
    return state == READY ? thread : 0;
}

/* The call sites of this process, and the tables that are used to find and name sites. All zero
 * bytes is the state before the start.
 *
 * The comment of a part names the lock that guards it. Atomic members may be used without the lock.
 * The state lives as long as the process, and a child after fork keeps it. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "callsite/cpython/python_walk.h"
#include "callsite/strings.h"
#include "callsite/table.h"

struct spw_callsite_shm;

/* Makes a part of the shared memory writable; see spw_stats_shm_back. */
typedef bool spw_callsite_shm_back(const void *from, size_t bytes);

/* A loaded object. */
enum { SPW_MODULE_MOST = 1024, SPW_MODULE_PATH = 512, SPW_MODULE_ID = 20 };

struct spw_module {
    uintptr_t base;            /* load address; an address minus this is the address in the file */
    uintptr_t begin, end;      /* addresses of its code and data */
    uintptr_t dynamic;         /* address of its dynamic section; 0: none */
    uint8_t id[SPW_MODULE_ID]; /* build ID */
    uint8_t id_bytes;          /* 0: unknown */
    char path[SPW_MODULE_PATH];
};

/* A function, found by an address inside it. */
struct spw_symbol {
    uintptr_t address;               /* the address inside the function */
    const struct spw_module *module; /* the module that contains the address; NULL: none */
    uintptr_t name;                  /* address of the function's name; 0: unknown */
};

/* Reads memory, as spw_safe_read does. */
typedef bool spw_peek_function(uintptr_t address, void *ret_bytes, size_t bytes);

/* The tables. Guarded by spw_locks.sites. The members before `strings` are set once, at the
 * start. */
struct spw_callsite_capture {
    _Atomic bool started;                    /* set last */
    bool native, python;                     /* kinds of frames that are captured */
    pthread_key_t key;                       /* frees the state of a thread when the thread ends */
    _Alignas(64) struct spw_strings strings; /* on another cache line, because new sites change
                                                it */
    struct spw_callsite_table sites;
    struct spw_callsite_shm *share; /* sites are published here; NULL: nowhere */
};

/* The writer's view of the share: how much of it is filled, and how much is writable. Guarded by
 * spw_locks.sites. */
struct spw_callsite_published {
    spw_callsite_shm_back *back;
    bool full; /* there was no memory, so nothing more is ever published */
    uint32_t backed_sites, backed_modules;
    size_t backed_texts, backed_bytes;
    uint32_t modules;
    size_t bytes;
};

/* The interpreter of this process. No lock: the thread that has set `state` to BUSY writes the
 * other members. */
struct spw_callsite_interpreter {
    _Atomic int state;     /* enum of python.c */
    _Atomic bool given_up; /* a wait for another thread has timed out */
    struct spw_python python;
    uintptr_t (*thread_state)(void);
    int (*is_finalizing)(void);
};

/* The interpreter's function that frees a code object. */
typedef void spw_callsite_free_code(void *code);

/* The count of freed code objects. `free` is written once, before `count` changes. */
struct spw_callsite_code_frees {
    spw_callsite_free_code *free;
    _Atomic uint64_t count;
};

enum { SPW_NATIVE_NAME = 4096 };

/* Names of native functions. Guarded by spw_locks.names. */
struct spw_callsite_names {
    struct spw_callsite_name_slot *slots; /* names.c */
    size_t used;
    struct spw_symbol missing[SPW_CALLSITE_NATIVE]; /* functions that are being looked up */
    char text[SPW_NATIVE_NAME];
};

/* The loaded objects. Guarded by spw_locks.modules. The list only grows. */
struct spw_callsite_modules {
    _Atomic uint64_t changes; /* the loader's count of changes when its list was last read */
    _Atomic size_t count;
    _Atomic(spw_peek_function *) read; /* reads memory of another process; NULL: the objects are in
                                          this process */
    struct spw_module list[SPW_MODULE_MOST];
};

struct spw_callsite_state {
    struct spw_callsite_capture capture;
    struct spw_callsite_published published;
    struct spw_callsite_interpreter interpreter;
    struct spw_callsite_code_frees code_frees;
    struct spw_callsite_names names;
    struct spw_callsite_modules modules;
};

extern struct spw_callsite_state spw_callsite_state;

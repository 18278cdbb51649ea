/* The table of call sites. Every stack that asked for memory is stored once, and has a small
 * number.
 *
 * Two stacks are the same site if all their entries are equal. Hashes only make the search faster.
 * The classes of modules are not compared: a site has those of its first stack. The table is
 * bounded. When it is full, new stacks become site 0, "not known". Sites never move and are never
 * removed. Locking: the caller serialises interning. The other functions take no lock and may run
 * at the same time. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPW_CALLSITE_NATIVE = 64, SPW_CALLSITE_PYTHON = 64 };

/* A Python frame. File and function are numbers of interned strings. */
struct spw_callsite_line {
    uint32_t file;
    uint32_t function;
    uint32_t line; /* 0: unknown */
};

/* A stack that will be entered in the table. Frames are innermost first. */
struct spw_stack {
    const char *api;  /* name of the function that the program called; static storage */
    uint32_t thread;  /* name of the thread, interned */
    uint32_t tag;     /* tag of the thread (tag.h), interned; 0: none */
    uint32_t modules; /* path of the modules' classes (python_modules.h), interned; 0: none */
    uint16_t native_count;
    uint16_t python_count;
    bool cut;                             /* the stack has more frames than are stored */
    uint64_t native[SPW_CALLSITE_NATIVE]; /* return addresses */
    struct spw_callsite_line python[SPW_CALLSITE_PYTHON];
};

/* A stack in the table. */
struct spw_callsite {
    uint64_t hash;
    const char *api;
    uint32_t thread;
    uint32_t tag;
    uint32_t modules;
    uint16_t native_count;
    uint16_t python_count;
    bool cut;
    uint64_t native[]; /* the Python frames follow: spw_callsite_lines */
};

struct spw_callsite_table {
    char *base;            /* the sites */
    uint32_t *offsets;     /* by number: offset of a site, in units of 8 bytes */
    uint32_t *slots;       /* numbers, by hash; 0: unused slot */
    size_t used, capacity; /* in bytes */
    uint32_t most;         /* most sites; a power of two, half the number of slots */
    _Atomic uint32_t count;
    _Atomic uint64_t refused; /* number of stacks that found no room */
};

/* Reserves room for `most` sites (a power of two) and `bytes` of stacks. Memory is committed when
 * it is first accessed. Returns false if no address space is available. */
bool spw_callsite_table_init(struct spw_callsite_table *sites, uint32_t most, size_t bytes);
void spw_callsite_table_fini(struct spw_callsite_table *sites);

/* Returns the number of the site with this stack; 0 if the stack is new. */
uint32_t spw_callsite_table_find(const struct spw_callsite_table *sites,
                                 const struct spw_stack *stack);

/* Returns the number of the site with this stack, from 1. Enters the stack if it is new; returns 0
 * if there is no room for it. */
uint32_t spw_callsite_table_intern(struct spw_callsite_table *sites, const struct spw_stack *stack);

/* Returns the site with a number that spw_callsite_table_intern returned; NULL for 0 and for any
 * other number. */
const struct spw_callsite *spw_callsite_table_get(const struct spw_callsite_table *sites,
                                                  uint32_t number);

/* Returns the number of sites. They are numbered from 1. */
static inline uint32_t spw_callsite_table_count(const struct spw_callsite_table *sites)
{
    return atomic_load_explicit(&sites->count, memory_order_acquire);
}

/* Returns the Python frames of a site. */
static inline const struct spw_callsite_line *spw_callsite_lines(const struct spw_callsite *site)
{
    return (const struct spw_callsite_line *)(site->native + site->native_count);
}

/* Returns an address inside the call instruction that a return address belongs to. The return
 * address itself may already be behind the end of the function. */
static inline uintptr_t spw_callsite_call(uint64_t address)
{
    return (uintptr_t)address - 1;
}

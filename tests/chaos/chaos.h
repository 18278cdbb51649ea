/* A random program: threads that draw what they do next from a seed.
 *
 * Every block has content that follows from its id (content.h), which checks compare with what a
 * copy to the host finds. A block belongs to one thread at a time. What the program does is legal,
 * so that every call must succeed, or fail with an error that the options of the run allow
 * (errors.h).
 *
 * Lock: `world` is held for reading during each act of a thread, and for writing where others must
 * be at rest. */
#pragma once

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "content.h"

enum { STREAMS = 6, OWN_STREAMS = 3, BLOCKS = 12, SHELF = 16, DEVICES = 4 };
enum { BUFFER_WORDS = 64 << 10 };

/* How a block was allocated, and so how it can be freed. */
enum kind { PLAIN, PITCH, ORDERED, NAMED_POOL, OWN_POOL, MANAGED, MAPPED, KINDS };

struct block {
    CUdeviceptr address; /* 0: none */
    enum kind kind;
    int device;
    unsigned int id;
    bool lost; /* its order is not known, since a call failed: it can be freed at the end only */
    CUevent written; /* after the last work that uses it; NULL: there is none */
    struct content content;
    CUmemGenericAllocationHandle handle; /* MAPPED */
    size_t mapped_bytes;
};

/* A graph that is launched now and then. It works on a block that it keeps. */
struct loop {
    CUgraphExec graph; /* NULL: none */
    struct block block;
    unsigned int count;
    struct change {
        bool adds; /* `value` to each word; else sets them to it */
        size_t begin, end;
        uint32_t value;
    } changes[4];
};

struct worker {
    uint32_t random;
    int number;
    int device;
    CUcontext context;
    CUmodule module;   /* of a context of its own; else NULL */
    CUfunction add;    /* NULL: there are no kernels */
    CUmemoryPool pool; /* NULL: none */
    CUstream streams[STREAMS];
    struct block blocks[BLOCKS];
    struct loop loop;
    uint32_t *buffer;   /* of BUFFER_WORDS, page-locked now and then */
    uint32_t *expected; /* of as many */
    bool registered;    /* the buffer is page-locked */
    bool alone;         /* no other thread acts now */
    bool stopped;       /* it cannot go on */
};

/* The options of the run, as the head of chaos.c explains them. */
extern struct options {
    unsigned int seed;
    int threads, steps, devices, size_log2, spread;
    bool forks, contexts, captures, functions, holds, signals, faults, storm;
    bool confined; /* something was taken from the process */
    const char *leave, *self;
} options;

extern struct program {
    pthread_rwlock_t world;
    pthread_mutex_t shelf_lock;
    struct block shelf[SHELF];
    CUcontext contexts[DEVICES]; /* primary ones */
    CUfunction adds[DEVICES];
    _Atomic unsigned int ids, acts, losses;
    _Atomic bool leaving;
} program;

/* A number below `below`, which is not 0. */
uint32_t draw(struct worker *worker, uint32_t below);

/* True one time of `times`. */
bool once_in(struct worker *worker, uint32_t times);

/* blocks.c: each works in the worker's context, and leaves errors to errors.h. */

/* A new block of a random size and kind; false: there is none. */
bool block_allocate(struct worker *worker, struct block *ret_block);

/* Makes a context current, or ends the worker, which cannot go on in any other. */
void go_to(struct worker *worker, CUcontext context);

/* Frees the block in one of the ways that its kind allows. A block that is lost stays. */
void block_free(struct worker *worker, struct block *block);

/* Makes `stream` wait for the work on a block; says that it is used by the stream's work so far. */
bool block_order(struct block *block, CUstream stream);
void block_used(struct block *block, CUstream stream);

/* Changes a part or all of the block. */
void block_write(struct worker *worker, struct block *block);

/* Submits one change of a graph or of block_write(). */
bool block_submit(struct worker *worker, const struct block *block, const struct change *change,
                  CUstream stream);
void block_apply(struct block *block, const struct change *change);

/* A change of the block that leaves room for more. */
struct change block_draw_change(struct worker *worker, const struct block *block);

/* Copies from one block to another, also between devices. */
void block_copy(struct worker *worker, struct block *to, struct block *from);

/* Compares a part or all of the block with what it must hold. */
void block_check(struct worker *worker, struct block *block);

CUstream any_stream(struct worker *worker);

/* acts.c: each is one thing that programs do besides. */
void act_question(struct worker *worker);
void act_capture(struct worker *worker);
void act_launch(struct worker *worker);
void act_end_loop(struct worker *worker);
void act_context(struct worker *worker);
void act_pool(struct worker *worker);
void act_stream(struct worker *worker);
void act_host_function(struct worker *worker);
void act_host_memory(struct worker *worker);
void act_limit(struct worker *worker);
void act_hint(struct worker *worker);
void act_rest(struct worker *worker);
void act_fork(struct worker *worker);

/* storm.c: allocates and frees on several threads at the same instant, on the first device. */
void storm(void);

/* Gives the free memory of a device back. A move may be under way when everything is freed: its
 * memory goes with a later call. */
void trim(int device);

/* Compares spillway's figures with the fact that everything was freed. Nothing if some was not. */
void check_books(void);

/* confine.c: takes limits and denials of this process as words, such as "nofile=64" or
 * "deny=membarrier". False: the word is not one. */
bool confine(const char *word);

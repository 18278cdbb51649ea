/* An answer to the question when each block is used next: the interface behind which the benchmark
 * `predict` compares several. A block is the caller's number, from 1 on. No locking. */
#pragma once

#include <stdint.h>

enum { PREDICT_BLOCKS = 1 << 16 };

/* No use is predicted. */
#define PREDICT_NEVER UINT32_MAX

struct predictions {
    const char *name;

    /* Makes one without a history. NULL when the process has no memory. */
    void *(*open)(void);
    void (*close)(void *self);

    /* Tell the events, in order. `live`: a block that was there before. `step`: the program marks
     * the beginning of a step. */
    void (*live)(void *self, uint32_t block, uint64_t bytes, uint32_t site);
    void (*alloc)(void *self, uint32_t block, uint64_t bytes, uint32_t site);
    void (*use)(void *self, uint32_t block);
    void (*free)(void *self, uint32_t block);
    void (*step)(void *self);

    /* Makes the answers for now. */
    void (*forecast)(void *self);
    /* A number that is the larger the later the block is used, or PREDICT_NEVER, by the last
     * forecast. */
    uint32_t (*next_use)(void *self, uint32_t block);
};

/* Predicts nothing: the order of the last uses decides. */
extern const struct predictions predict_nothing;
/* Expects the events that followed when the last few events came in the same order before. */
extern const struct predictions predict_last_period;
/* src/migrate/learn/predictor.h. */
extern const struct predictions predict_spillway;

#include "predict/predictions.h"

#include <stdlib.h>

#include "migrate/learn/predictor.h"

struct followed {
    struct spw_predictor predictor;
    uint32_t numbers[PREDICT_BLOCKS]; /* the predictor's, by the caller's */
};

static void *open(void)
{
    struct followed *self = calloc(1, sizeof(*self));

    if (self != NULL && !spw_migrate_predictor_init(&self->predictor)) {
        free(self);
        return NULL;
    }
    return self;
}

static void close(void *cookie)
{
    struct followed *self = cookie;

    spw_migrate_predictor_fini(&self->predictor);
    free(self);
}

static void live(void *cookie, uint32_t block, uint64_t bytes, uint32_t site)
{
    struct followed *self = cookie;

    self->numbers[block] = spw_migrate_predictor_add_block(&self->predictor, bytes, site, 0);
}

static void alloc(void *cookie, uint32_t block, uint64_t bytes, uint32_t site)
{
    struct followed *self = cookie;

    self->numbers[block] = spw_migrate_predictor_alloc(&self->predictor, bytes, site);
}

static void use(void *cookie, uint32_t block)
{
    struct followed *self = cookie;

    spw_migrate_predictor_use(&self->predictor, self->numbers[block]);
}

static void release(void *cookie, uint32_t block)
{
    struct followed *self = cookie;

    spw_migrate_predictor_free(&self->predictor, self->numbers[block]);
}

static void step(void *cookie)
{
    struct followed *self = cookie;

    spw_migrate_predictor_mark_step(&self->predictor);
}

static void forecast(void *cookie)
{
    struct followed *self = cookie;

    spw_migrate_predictor_forecast(&self->predictor, NULL, NULL);
}

static uint32_t next_use(void *cookie, uint32_t block)
{
    struct followed *self = cookie;
    uint32_t distance = spw_migrate_predictor_next_use(&self->predictor, self->numbers[block]);

    return distance == SPW_NEVER ? PREDICT_NEVER : distance;
}

const struct predictions predict_spillway = {
    .name = "spillway",
    .open = open,
    .close = close,
    .live = live,
    .alloc = alloc,
    .use = use,
    .free = release,
    .step = step,
    .forecast = forecast,
    .next_use = next_use,
};

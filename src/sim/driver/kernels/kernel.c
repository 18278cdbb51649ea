/* The built-in kernels. Their CUDA declarations:
 *
 *     spw_fill(uint32_t *p, size_t n_words, uint32_t value)
 *     spw_check(const uint32_t *p, size_t n_words, uint32_t value, uint64_t *bad_count)
 *         adds, to *bad_count, the number of words that differ from `value`
 *     spw_copy(uint32_t *dst, const uint32_t *src, size_t n_words)
 *     spw_add(uint32_t *p, size_t n_words, uint32_t value)
 *     spw_add_through_NAME(uint32_t *const *p, size_t n_words, uint32_t value)
 *         any NAME, or spw_add_through: adds at the address *p, read when the kernel runs
 *     spw_add_by_map(CUtensorMap map, size_t n_words, uint32_t value)
 *         adds at the address in a tensor map
 *     spw_spin(const uint32_t *flag)
 *         runs until *flag is not 0
 *     spw_touch_NAME(struct { void *address; size_t bytes; } ranges[8], uint64_t written,
 *                    uint64_t nanoseconds, uint32_t demand[6])
 *         any NAME; for the simulated libraries. Counts as reading the ranges, and as writing
 *         those with a set bit in `written`, but does not change memory. With SPILLWAY_SIM_TIME
 *         it takes `nanoseconds`; 0: the time of its bytes. `demand` is a struct sim_demand. Each
 *         64-bit word is a parameter */
#include "sim/driver/kernels/kernel.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "sim/driver/core/calls.h"
#include "sim/driver/core/clock.h"
#include "sim/driver/exec/stream.h"
#include "sim/driver/kernels/tensor_map.h"
#include "sim/driver/memory/content.h"

/* Words handled at a time. */
#define BLOCK_WORDS 4096

#define PARAM(type, field)                                                                         \
    {                                                                                              \
        offsetof(struct type, field), sizeof(((struct type *)0)->field),                           \
            sizeof(((struct type *)0)->field) == 8                                                 \
    }

/* Names memory that a kernel uses. A kernel cannot access pageable memory or unmapped addresses. */
static CUresult name_bytes(struct sim_op *op, CUdeviceptr address, size_t bytes, bool write)
{
    if (bytes > 0 && (bytes > SIZE_MAX - address || sim_mem_kind(address) == SIM_MEM_PAGEABLE)) {
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    return sim_op_add_span(op, (struct sim_span){address, bytes, write, false});
}

static CUresult name_words(struct sim_op *op, CUdeviceptr address, size_t words, bool write)
{
    return words > SIZE_MAX / sizeof(uint32_t)
               ? CUDA_ERROR_ILLEGAL_ADDRESS
               : name_bytes(op, address, words * sizeof(uint32_t), write);
}

struct fill_args {
    CUdeviceptr p;
    size_t n_words;
    uint32_t value;
};

static const struct sim_param fill_params[] = {PARAM(fill_args, p), PARAM(fill_args, n_words),
                                               PARAM(fill_args, value)};

static CUresult fill_memory(struct sim_op *op, const void *args)
{
    const struct fill_args *a = args;

    return name_words(op, a->p, a->n_words, true);
}

static enum sim_outcome fill_run(const void *args, struct sim_item *item)
{
    const struct fill_args *a = args;

    sim_mem_fill(a->p, a->value, sizeof(uint32_t), a->n_words * sizeof(uint32_t));
    return SIM_DONE;
}

struct check_args {
    CUdeviceptr p;
    size_t n_words;
    uint32_t value;
    CUdeviceptr bad_count;
};

static const struct sim_param check_params[] = {PARAM(check_args, p), PARAM(check_args, n_words),
                                                PARAM(check_args, value),
                                                PARAM(check_args, bad_count)};

static CUresult check_memory(struct sim_op *op, const void *args)
{
    const struct check_args *a = args;
    CUresult result = name_words(op, a->p, a->n_words, false);

    return result == CUDA_SUCCESS ? name_words(op, a->bad_count, 2, true) : result;
}

static enum sim_outcome check_run(const void *args, struct sim_item *item)
{
    const struct check_args *a = args;
    static uint32_t words[BLOCK_WORDS]; /* not on a stack, which may be small */
    uint64_t bad;

    sim_mem_read(&bad, a->bad_count, sizeof(bad));
    for (size_t done = 0; done < a->n_words; done += BLOCK_WORDS) {
        size_t count = a->n_words - done < BLOCK_WORDS ? a->n_words - done : BLOCK_WORDS;

        sim_mem_read(words, a->p + done * sizeof(uint32_t), count * sizeof(uint32_t));
        for (size_t i = 0; i < count; i++) {
            bad += words[i] != a->value;
        }
    }
    sim_mem_write(a->bad_count, &bad, sizeof(bad));
    return SIM_DONE;
}

struct copy_args {
    CUdeviceptr dst;
    CUdeviceptr src;
    size_t n_words;
};

static const struct sim_param copy_params[] = {PARAM(copy_args, dst), PARAM(copy_args, src),
                                               PARAM(copy_args, n_words)};

static CUresult copy_memory(struct sim_op *op, const void *args)
{
    const struct copy_args *a = args;
    CUresult result = name_words(op, a->dst, a->n_words, true);

    return result == CUDA_SUCCESS ? name_words(op, a->src, a->n_words, false) : result;
}

static enum sim_outcome copy_run(const void *args, struct sim_item *item)
{
    const struct copy_args *a = args;

    sim_mem_copy(a->dst, a->src, a->n_words * sizeof(uint32_t));
    return SIM_DONE;
}

struct add_args {
    CUdeviceptr p;
    size_t n_words;
    uint32_t value;
};

static const struct sim_param add_params[] = {PARAM(add_args, p), PARAM(add_args, n_words),
                                              PARAM(add_args, value)};

static CUresult add_memory(struct sim_op *op, const void *args)
{
    const struct add_args *a = args;

    return name_words(op, a->p, a->n_words, true);
}

static void add_to_words(CUdeviceptr p, size_t n_words, uint32_t value)
{
    static uint32_t words[BLOCK_WORDS]; /* not on a stack, which may be small */

    for (size_t done = 0; done < n_words; done += BLOCK_WORDS) {
        size_t count = n_words - done < BLOCK_WORDS ? n_words - done : BLOCK_WORDS;
        CUdeviceptr address = p + done * sizeof(uint32_t);

        sim_mem_read(words, address, count * sizeof(uint32_t));
        for (size_t i = 0; i < count; i++) {
            words[i] += value;
        }
        sim_mem_write(address, words, count * sizeof(uint32_t));
    }
}

static enum sim_outcome add_run(const void *args, struct sim_item *item)
{
    const struct add_args *a = args;

    add_to_words(a->p, a->n_words, a->value);
    return SIM_DONE;
}

/* With simulated time, logs the memory that a kernel writes at an address that was unknown until
 * the kernel ran. */
static void log_found(CUdeviceptr p, size_t n_words, const struct sim_item *item)
{
    char line[128];

    if (sim_calls_logged() && sim_clock_is_on()) {
        snprintf(line, sizeof(line), "  uses %llu.%llu w%#llx+%zu", item->stream->id,
                 (unsigned long long)item->number, (unsigned long long)p,
                 n_words * sizeof(uint32_t));
        sim_calls_log(line);
    }
}

/* Adds at an address that was not known when the kernel was submitted. */
static enum sim_outcome add_at_last(CUdeviceptr p, size_t n_words, uint32_t value,
                                    const struct sim_item *item)
{
    if (n_words > SIZE_MAX / sizeof(uint32_t) ||
        sim_mem_check(p, n_words * sizeof(uint32_t), item->op->device, true) != CUDA_SUCCESS) {
        return SIM_FAULT;
    }
    log_found(p, n_words, item);
    add_to_words(p, n_words, value);
    return SIM_DONE;
}

#define ADD_THROUGH_NAME "spw_add_through"

struct add_through_args {
    CUdeviceptr p;
    size_t n_words;
    uint32_t value;
};

static const struct sim_param add_through_params[] = {
    PARAM(add_through_args, p), PARAM(add_through_args, n_words), PARAM(add_through_args, value)};

static CUresult add_through_memory(struct sim_op *op, const void *args)
{
    const struct add_through_args *a = args;

    return name_bytes(op, a->p, sizeof(CUdeviceptr), false);
}

static enum sim_outcome add_through_run(const void *args, struct sim_item *item)
{
    const struct add_through_args *a = args;
    CUdeviceptr p;

    sim_mem_read(&p, a->p, sizeof(p));
    return add_at_last(p, a->n_words, a->value, item);
}

struct add_by_map_args {
    CUtensorMap map;
    size_t n_words;
    uint32_t value;
};

static const struct sim_param add_by_map_params[] = {
    PARAM(add_by_map_args, map), PARAM(add_by_map_args, n_words), PARAM(add_by_map_args, value)};

/* The address is known only when the kernel runs. */
static CUresult add_by_map_memory(struct sim_op *op, const void *args)
{
    return CUDA_SUCCESS;
}

static enum sim_outcome add_by_map_run(const void *args, struct sim_item *item)
{
    const struct add_by_map_args *a = args;

    return add_at_last(sim_tensor_map_address(&a->map), a->n_words, a->value, item);
}

struct spin_args {
    CUdeviceptr flag;
};

static const struct sim_param spin_params[] = {PARAM(spin_args, flag)};

static CUresult spin_memory(struct sim_op *op, const void *args)
{
    const struct spin_args *a = args;

    return name_words(op, a->flag, 1, false);
}

static enum sim_outcome spin_run(const void *args, struct sim_item *item)
{
    const struct spin_args *a = args;

    if (sim_op_poll(a->flag, sizeof(uint32_t)) != 0) {
        return SIM_DONE;
    }
    item->polls = true;
    return SIM_BLOCKED;
}

#define TOUCH_NAME   "spw_touch_"
#define TOUCH_RANGES 8

struct touch_args {
    struct {
        CUdeviceptr address;
        size_t bytes;
    } ranges[TOUCH_RANGES];
    uint64_t written;
    uint64_t nanoseconds;
    struct sim_demand demand; /* of 32-bit words; they are no addresses */
};

#define TOUCH_PARAM(i) PARAM(touch_args, ranges[i].address), PARAM(touch_args, ranges[i].bytes)

static const struct sim_param touch_params[] = {
    TOUCH_PARAM(0),
    TOUCH_PARAM(1),
    TOUCH_PARAM(2),
    TOUCH_PARAM(3),
    TOUCH_PARAM(4),
    TOUCH_PARAM(5),
    TOUCH_PARAM(6),
    TOUCH_PARAM(7),
    PARAM(touch_args, written),
    PARAM(touch_args, nanoseconds),
    PARAM(touch_args, demand.work),
    PARAM(touch_args, demand.type),
    PARAM(touch_args, demand.operations),
    PARAM(touch_args, demand.bytes),
    PARAM(touch_args, demand.besides),
    PARAM(touch_args, demand.guessed),
};

static CUresult touch_memory(struct sim_op *op, const void *args)
{
    const struct touch_args *a = args;
    CUresult result = CUDA_SUCCESS;

    op->nanoseconds = a->nanoseconds;
    op->demand = a->demand;
    for (size_t i = 0; i < TOUCH_RANGES && result == CUDA_SUCCESS; i++) {
        result = name_bytes(op, a->ranges[i].address, a->ranges[i].bytes, a->written >> i & 1);
    }
    return result;
}

/* Written ranges keep their content, which becomes unknown. */
static enum sim_outcome touch_run(const void *args, struct sim_item *item)
{
    const struct touch_args *a = args;

    for (size_t i = 0; i < TOUCH_RANGES; i++) {
        if (a->written >> i & 1) {
            sim_mem_set_known(a->ranges[i].address, a->ranges[i].bytes, false);
        }
    }
    return SIM_DONE;
}

#define BUILTIN(kernel)                                                                            \
    {                                                                                              \
        "spw_" #kernel, kernel##_params, sizeof(kernel##_params) / sizeof(kernel##_params[0]),     \
            sizeof(struct kernel##_args), kernel##_memory, kernel##_run                            \
    }

static const struct sim_builtin builtins[] = {
    BUILTIN(fill), BUILTIN(check), BUILTIN(copy), BUILTIN(add), BUILTIN(add_by_map), BUILTIN(spin),
};

static const struct sim_builtin touch = BUILTIN(touch);
static const struct sim_builtin add_through = BUILTIN(add_through);

const struct sim_builtin *sim_builtin_find(const char *name)
{
    if (strncmp(name, TOUCH_NAME, strlen(TOUCH_NAME)) == 0) {
        return &touch;
    }
    if (strncmp(name, ADD_THROUGH_NAME, strlen(ADD_THROUGH_NAME)) == 0) {
        return &add_through;
    }
    for (size_t i = 0; i < sizeof(builtins) / sizeof(builtins[0]); i++) {
        if (strcmp(builtins[i].name, name) == 0) {
            return &builtins[i];
        }
    }
    return NULL;
}

bool sim_builtin_computes(const struct sim_builtin *builtin)
{
    return builtin != NULL && builtin != &touch;
}

/* Plays a plan of allocations, frees and uses, step by step, on the simulated GPU.
 *
 *     play STEPS PLAN [marked]
 *
 * A line of the plan is one of (bench `spill` writes them, plans.py):
 *     a BUFFER BYTES                  allocate
 *     f BUFFER                        free
 *     s                               a step ends and another begins
 *     u NANOSECONDS WRITTEN BUFFER... a kernel runs so long, reads those buffers, at most 8, and
 *                                     writes those whose bit is set
 * The plan is played STEPS times. All is on one stream, with a wait for it after each step, as for
 * the loss. The kernel spw_touch_step marks where steps begin, and where the last one ends. With
 * `marked`, spillway_mark_step is called there too. Exit 1 when a call fails. */
#include <cuda.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANGES = 8, LINE_BYTES = 256 };

/* The parameters of spw_touch_NAME. */
struct touch {
    struct {
        CUdeviceptr address;
        size_t bytes;
    } ranges[RANGES];
    uint64_t written;
    uint64_t nanoseconds;
};

struct act {
    char kind;       /* the first letter of the line */
    uint64_t number; /* bytes or nanoseconds */
    uint64_t written;
    uint32_t buffers[RANGES];
    uint32_t count;
};

struct player {
    struct act *acts;
    size_t count;
    uint32_t buffers; /* one more than the highest */
    CUdeviceptr *addresses;
    uint64_t *bytes;
    CUfunction use, mark;
    int (*mark_step)(void); /* NULL: steps are not marked */
    CUstream stream;
};

static void must(CUresult result, const char *call)
{
    const char *name = "?";

    if (result != CUDA_SUCCESS) {
        (void)cuGetErrorName(result, &name);
        fprintf(stderr, "play: %s: %s\n", call, name);
        exit(1);
    }
}

/* Reads the numbers of a line after its letter; returns their count. */
static uint32_t numbers_of(const char *text, uint64_t *numbers, uint32_t most)
{
    uint32_t count = 0;
    char *end;

    for (; count < most; count++, text = end) {
        numbers[count] = strtoull(text, &end, 10);
        if (end == text) {
            break;
        }
    }
    return count;
}

static bool parse(const char *line, struct act *ret_act)
{
    uint64_t numbers[RANGES + 2];
    uint32_t count = numbers_of(line + 1, numbers, RANGES + 2);
    struct act act = {.kind = line[0], .count = 1};

    switch (act.kind) {
    case 'a':
        act.number = numbers[1];
        act.buffers[0] = (uint32_t)numbers[0];
        break;
    case 'f':
        act.buffers[0] = (uint32_t)numbers[0];
        break;
    case 'u':
        act.number = numbers[0];
        act.written = numbers[1];
        act.count = count - 2;
        for (uint32_t i = 0; i + 2 < count; i++) {
            act.buffers[i] = (uint32_t)numbers[i + 2];
        }
        break;
    case 's':
        act.count = 0;
        break;
    default:
        return false;
    }
    *ret_act = act;
    return count >= (act.kind == 's' ? 0 : act.kind == 'f' ? 1 : 2);
}

static bool read_plan(const char *path, struct player *player)
{
    char line[LINE_BYTES];
    FILE *file = fopen(path, "r");
    size_t capacity = 0;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        struct act *act;

        if (player->count == capacity) {
            capacity = capacity == 0 ? 1024 : 2 * capacity;
            player->acts = realloc(player->acts, capacity * sizeof(*player->acts));
        }
        act = &player->acts[player->count++];
        if (!parse(line, act)) {
            fprintf(stderr, "%s: line %zu: not a plan\n", path, player->count);
            return false;
        }
        for (uint32_t i = 0; i < act->count; i++) {
            if (act->buffers[i] >= player->buffers) {
                player->buffers = act->buffers[i] + 1;
            }
        }
    }
    if (file == NULL || ferror(file)) {
        perror(path);
        return false;
    }
    fclose(file);
    return player->count > 0;
}

static void launch(const struct player *player, CUfunction kernel, struct touch *touch)
{
    size_t size = sizeof(*touch);
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, touch, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};

    must(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, player->stream, NULL, extra),
         "cuLaunchKernel");
}

static void mark(const struct player *player)
{
    struct touch nothing = {0};

    launch(player, player->mark, &nothing);
    must(cuStreamSynchronize(player->stream), "cuStreamSynchronize");
    if (player->mark_step != NULL) {
        (void)player->mark_step();
    }
}

static void use(const struct player *player, const struct act *act)
{
    struct touch touch = {.written = act->written, .nanoseconds = act->number};

    for (uint32_t i = 0; i < act->count; i++) {
        touch.ranges[i].address = player->addresses[act->buffers[i]];
        touch.ranges[i].bytes = player->bytes[act->buffers[i]];
    }
    launch(player, player->use, &touch);
}

static void play(struct player *player)
{
    for (size_t i = 0; i < player->count; i++) {
        const struct act *act = &player->acts[i];
        uint32_t buffer = act->buffers[0];

        if (act->kind == 's') {
            mark(player);
        } else if (act->kind == 'u') {
            use(player, act);
        } else if (act->kind == 'a') {
            player->bytes[buffer] = act->number;
            must(cuMemAllocAsync(&player->addresses[buffer], act->number, player->stream),
                 "cuMemAllocAsync");
        } else {
            must(cuMemFreeAsync(player->addresses[buffer], player->stream), "cuMemFreeAsync");
        }
    }
}

int main(int argc, char **argv)
{
    struct player player = {0};
    CUcontext context = NULL;
    CUmodule module = NULL;
    unsigned steps = argc >= 3 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;

    if (steps == 0 || !read_plan(argv[2], &player)) {
        fputs("usage: play STEPS PLAN [marked]\n", stderr);
        return 2;
    }
    if (argc > 3) {
        *(void **)&player.mark_step = dlsym(RTLD_DEFAULT, "spillway_mark_step");
    }
    player.addresses = calloc(player.buffers, sizeof(*player.addresses));
    player.bytes = calloc(player.buffers, sizeof(*player.bytes));
    must(cuInit(0), "cuInit");
    must(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    must(cuModuleLoadData(&module, "any image will do"), "cuModuleLoadData");
    must(cuModuleGetFunction(&player.use, module, "spw_touch_use"), "cuModuleGetFunction");
    must(cuModuleGetFunction(&player.mark, module, "spw_touch_step"), "cuModuleGetFunction");
    must(cuStreamCreate(&player.stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    mark(&player);
    for (unsigned step = 0; step < steps; step++) {
        play(&player);
        mark(&player);
    }
    free(player.addresses);
    free(player.bytes);
    free(player.acts);
    return 0;
}

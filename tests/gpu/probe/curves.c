/* What a cost model of kernels needs: what a launch costs, and simple kernels by size. */
#include <stdio.h>

#include "kernels.h"
#include "memory.h"
#include "sections.h"

#define LAUNCHES 4000
#define NODES    64     /* of the longer graph */
#define TURN     4000.0 /* microseconds that a measurement of one size lasts, about */
#define TURNS    5

static struct {
    CUstream stream;
    CUdeviceptr from, to, sink;
    size_t bytes;
} test;

static void launch_nothing(void)
{
    kernels_launch("probe_nothing", 1, test.stream, NULL);
}

static void launch_many(void)
{
    static uint64_t values[64];
    void *params[64];

    for (size_t i = 0; i < 64; i++) {
        params[i] = &values[i];
    }
    kernels_launch("probe_many", 1, test.stream, params);
}

/* A graph of so many empty kernels, one behind the other. */
static CUgraphExec new_graph(size_t nodes)
{
    CUgraph graph;
    CUgraphExec ready;

    MUST(cuStreamBeginCapture(test.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    for (size_t i = 0; i < nodes; i++) {
        launch_nothing();
    }
    MUST(cuStreamEndCapture(test.stream, &graph));
    MUST(cuGraphInstantiateWithFlags(&ready, graph, 0));
    MUST(cuGraphDestroy(graph));
    return ready;
}

static CUgraphExec graph;

static void launch_graph(void)
{
    MUST(cuGraphLaunch(graph, test.stream));
}

/* The thread's time for a call, and the device's for what it launched, when many are queued. */
static void show_launch(const char *name, void (*launch)(void), size_t count)
{
    double submitted[TURNS], done[TURNS];

    for (size_t turn = 0; turn < TURNS; turn++) {
        const size_t few = count < 100 ? count : 100; /* less than a stream holds: none waits */

        launch();
        MUST(cuStreamSynchronize(test.stream));
        double begin = probe_now();
        for (size_t i = 0; i < few; i++) {
            launch();
        }
        submitted[turn] = (probe_now() - begin) / (double)few;
        for (size_t i = few; i < count; i++) {
            launch();
        }
        MUST(cuStreamSynchronize(test.stream));
        done[turn] = (probe_now() - begin) / (double)count;
    }
    probe_measure(probe_median(submitted, TURNS), "us", "launch of %s", name);
    probe_measure(probe_median(done, TURNS), "us", "launch of %s, until done", name);
}

void section_launch_cost(const char *argument)
{
    const size_t count = probe_repeat(LAUNCHES);
    char name[64];

    MUST(cuStreamCreate(&test.stream, CU_STREAM_NON_BLOCKING));
    show_launch("an empty kernel", launch_nothing, count);
    show_launch("a kernel of 64 arguments", launch_many, count);
    for (size_t nodes = 1; nodes <= NODES; nodes *= NODES) {
        graph = new_graph(nodes);
        snprintf(name, sizeof(name), "a graph of %zu empty kernels", nodes);
        show_launch(name, launch_graph, (count + nodes - 1) / nodes);
        MUST(cuGraphExecDestroy(graph));
    }
}

static void fill(void)
{
    kernels_fill(test.to, test.bytes / 4, 1, test.stream);
}

static void read(void)
{
    size_t quads = test.bytes / 16;
    void *params[] = {&test.from, &quads, &test.sink};

    kernels_launch("probe_read", 2048, test.stream, params);
}

static void copy(void)
{
    kernels_copy(test.to, test.from, test.bytes / 4, test.stream);
}

static void add(void)
{
    kernels_add(test.to, test.bytes / 4, 1, test.stream);
}

static void set(void)
{
    MUST(cuMemsetD32Async(test.to, 1, test.bytes / 4, test.stream));
}

static void copy_by_driver(void)
{
    MUST(cuMemcpyDtoDAsync(test.to, test.from, test.bytes, test.stream));
}

static double run(void (*call)(void), size_t count)
{
    double begin = probe_now();

    for (size_t i = 0; i < count; i++) {
        call();
    }
    MUST(cuStreamSynchronize(test.stream));
    return (probe_now() - begin) / (double)count;
}

static void show_size(const char *name, void (*call)(void), size_t bytes)
{
    double times[TURNS];

    test.bytes = bytes;
    run(call, 1);
    double count = TURN / (run(call, probe_repeat(10)) + 0.1);
    count = probe.tiny ? 2 : count < 3 ? 3 : count > 400 ? 400 : count;
    for (size_t turn = 0; turn < TURNS; turn++) {
        times[turn] = run(call, (size_t)count);
    }
    probe_measure(probe_median(times, TURNS), "us", "%s %zu KiB", name, bytes >> 10);
}

/* One kind of work by size; each works on the same memory again and again, so that what fits stays
 * in the cache. */
void section_curves(const char *argument)
{
    static const size_t kib[] = {4,    16,    64,    256,   1024,   2048,
                                 4096, 16384, 32768, 65536, 262144, 1048576};
    static const struct {
        const char *name;
        void (*call)(void);
    } kinds[] = {{"kernel writes", fill}, {"kernel reads", read},
                 {"kernel copies", copy}, {"kernel adds in place", add},
                 {"memset", set},         {"memcpy DtoD", copy_by_driver}};
    const size_t most = probe.tiny ? 4 * MIB : GIB;

    MUST(cuStreamCreate(&test.stream, CU_STREAM_NON_BLOCKING));
    MUST(cuMemAlloc(&test.from, most));
    MUST(cuMemAlloc(&test.to, most));
    MUST(cuMemAlloc(&test.sink, 4));
    MUST(cuMemsetD8(test.from, 0, most));
    for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
        for (size_t i = 0; i < sizeof(kib) / sizeof(kib[0]) && kib[i] << 10 <= most; i++) {
            show_size(kinds[kind].name, kinds[kind].call, kib[i] << 10);
        }
    }
}

/* Memory under tags, for test_tags.py.
 *
 *     regions api    pauses and resumes tags, and prints what is on the device and the host, in MiB
 *     regions rules  pauses and resumes the rule `cache`, and prints likewise
 *     regions serve  has memory under three tags, prints a line many times a second until its input
 *                   ends, and then checks the content */
#include "common.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>

#include "spillway.h"

enum { PARTS = 3, BLOCKS = 4, WORDS = 5 * MIB / 4, PRINT_MS = 20 };

static const char *const tags[PARTS] = {"weights", "kv-cache", ""};
static CUdeviceptr blocks[PARTS][BLOCKS];

/* Calls a function of spillway.h. */
static int call(const char *function_name, const char *tag)
{
    void *found = dlsym(RTLD_DEFAULT, function_name);
    int (*function)(const char *);

    memcpy(&function, &found, sizeof(function));
    return function(tag);
}

static void take(int part)
{
    for (int i = 0; i < BLOCKS; i++) {
        new_block(&blocks[part][i], part * BLOCKS + i, WORDS, NULL);
    }
}

static void *take_untagged(void *context)
{
    MUST(cuCtxSetCurrent(context));
    take(PARTS - 1);
    return NULL;
}

/* The last part is that of another thread, which has no tag. */
static void take_all(void)
{
    CUcontext context;
    pthread_t thread;

    MUST(call("spillway_tag", tags[0])); /* CUDA is not in use yet */
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    take(0);
    MUST(call("spillway_tag", tags[1]));
    take(1);
    MUST(cuCtxSynchronize());
    MUST(pthread_create(&thread, NULL, take_untagged, context));
    MUST(pthread_join(thread, NULL));
    MUST(call("spillway_tag", NULL));
}

static void check_all(void)
{
    MUST(cuCtxSynchronize());
    for (int part = 0; part < PARTS; part++) {
        for (int i = 0; i < BLOCKS; i++) {
            size_t wrong =
                count_wrong(blocks[part][i], WORDS, (uint32_t)(part * BLOCKS + i) * 1000);

            if (wrong > 0) {
                printf("%zu words wrong\n", wrong);
                exit(1);
            }
        }
    }
}

static void print_places(const char *words, int result)
{
    struct spillway_stats stats = {.size = sizeof(stats)};
    void *found = dlsym(RTLD_DEFAULT, "spillway_stats");
    int (*function)(int, struct spillway_stats *);

    memcpy(&function, &found, sizeof(function));
    MUST(function(0, &stats));
    check_all();
    printf("%s: %d, device %" PRIu64 ", host %" PRIu64 "\n", words, result,
           stats.committed_bytes / MIB, stats.host_bytes / MIB);
}

static void show(const char *function, const char *tag)
{
    print_places(function + strlen("spillway_"), call(function, tag));
}

static void use_api(void)
{
    char longest[64] = "", longer[65] = "";

    memset(longest, 'x', sizeof(longest) - 1);
    memset(longer, 'x', sizeof(longer) - 1);
    take_all();
    print_places("all", 0);
    show("spillway_pause_tag", "kv-cache");
    show("spillway_pause_tag", "weights");
    show("spillway_resume_tag", "weights");
    show("spillway_pause_tag", "weights");
    show("spillway_resume_tag", "kv-cache");
    show("spillway_resume_tag", "weights");
    show("spillway_pause", NULL);
    show("spillway_resume_tag", "weights");
    show("spillway_resume", NULL);
    show("spillway_pause_tag", "kv-cach");
    show("spillway_resume_tag", "kv-cach");
    show("spillway_pause_tag", "");
    show("spillway_pause_tag", NULL);
    printf("names %d %d %d %d %d\n", call("spillway_tag", longest), call("spillway_tag", longer),
           call("spillway_tag", "a\nb"), call("spillway_tag", "\xff"), call("spillway_tag", ""));
}

static void use_rules(void)
{
    take_all();
    show("spillway_pause_rule", "cache");
    show("spillway_resume_rule", "cach");
    show("spillway_resume_rule", "cache");
}

static void serve(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

    take_all();
    do {
        puts("1");
        fflush(stdout);
    } while (poll(&input, 1, PRINT_MS) == 0);
    check_all();
    for (int part = 0; part < PARTS; part++) {
        for (int i = 0; i < BLOCKS; i++) {
            MUST(cuMemFreeAsync(blocks[part][i], NULL));
        }
    }
    MUST(cuCtxSynchronize());
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "api") == 0) {
        use_api();
    } else if (argc == 2 && strcmp(argv[1], "rules") == 0) {
        use_rules();
    } else if (argc == 2 && strcmp(argv[1], "serve") == 0) {
        serve();
    } else {
        return 2;
    }
    puts("ok");
    return 0;
}

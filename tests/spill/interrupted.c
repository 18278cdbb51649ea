/* What else a program does while `spillway pause` moves its memory, for test_pause.py.
 *
 *     interrupted context   destroys its context
 *     interrupted fork      forks a child, which prints its pid and lives until the next line
 *     interrupted itself    pauses and resumes itself again and again until the next line
 *     interrupted cancelled the same, while it cancels other threads that want to pause it
 *
 * Prints "ready" with blocks of 256 MiB, and begins when it gets a line. */
#include "common.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>

enum { BLOCKS = 8, BYTES = 32 * MIB, WORDS = BYTES / 4, CANCELLED = 8, CANCEL_AFTER_US = 20000 };

static CUcontext context;
static CUdeviceptr blocks[BLOCKS];
static uint32_t values[BLOCKS];

static void say(const char *text)
{
    puts(text);
    fflush(stdout);
}

static void await_line(void)
{
    char line[8];

    (void)!fgets(line, sizeof(line), stdin);
}

static void destroy_context(void)
{
    MUST(cuCtxDestroy(context));
    say("destroyed");
}

static void fork_child(void)
{
    pid_t child = fork();

    if (child == 0) {
        printf("%d\n", (int)getpid());
        fflush(stdout);
        await_line();
        _exit(0);
    }
    (void)waitpid(child, NULL, 0);
}

static int call(const char *name)
{
    return ((int (*)(void))(uintptr_t)dlsym(RTLD_DEFAULT, name))();
}

static void *pause_often(void *ended)
{
    unsigned long rounds = 0, refused = 0;

    do {
        refused += call("spillway_pause") != 0;
        refused += call("spillway_resume") != 0;
        rounds++;
    } while (!atomic_load((_Atomic bool *)ended));
    printf("paused %lu times, %lu refused\n", rounds, refused);
    return NULL;
}

static void *pause_and_resume(void *unused)
{
    (void)call("spillway_pause");
    (void)call("spillway_resume");
    return unused;
}

static void cancel_others(void)
{
    for (int i = 0; i < CANCELLED; i++) {
        pthread_t thread;

        pthread_create(&thread, NULL, pause_and_resume, NULL);
        (void)usleep(CANCEL_AFTER_US);
        (void)pthread_cancel(thread);
        pthread_join(thread, NULL);
    }
    (void)call("spillway_resume"); /* what the last one has left */
}

static void pause_itself(bool cancels)
{
    _Atomic bool ended = false;
    pthread_t thread;
    size_t wrong = 0;

    pthread_create(&thread, NULL, pause_often, &ended);
    if (cancels) {
        cancel_others();
    } else {
        await_line();
    }
    atomic_store(&ended, true);
    pthread_join(thread, NULL);
    for (int i = 0; i < BLOCKS; i++) {
        wrong += count_wrong(blocks[i], WORDS, values[i]);
    }
    printf("%zu words wrong\n", wrong);
}

int main(int argc, char **argv)
{
    const char *what = argc == 2 ? argv[1] : "";

    MUST(cuInit(0));
    MUST(cuCtxCreate(&context, NULL, 0, 0));
    for (int i = 0; i < BLOCKS; i++) {
        values[i] = new_block(&blocks[i], i + 1, WORDS, NULL);
    }
    MUST(cuCtxSynchronize());
    say("ready");
    await_line();
    if (strcmp(what, "context") == 0) {
        destroy_context();
    } else if (strcmp(what, "fork") == 0) {
        fork_child();
    } else if (strcmp(what, "itself") == 0) {
        pause_itself(/* cancels */ false);
    } else if (strcmp(what, "cancelled") == 0) {
        pause_itself(/* cancels */ true);
    } else {
        return 2;
    }
    return 0;
}

#include "sim/driver/exec/callback.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "sim/driver/core/lock.h"

/* The maximum time that an API call waits for pending functions. After a timeout, API calls do not
 * wait again until every pending function has returned. */
#define SETTLE_NS 100000000L

struct sim_call {
    struct sim_call *next;
    unsigned int refs;
    bool done;
    CUhostFn fn;
    CUstreamCallback stream_fn; /* instead of fn */
    CUstream stream;
    CUresult status;
    void *data;
};

/* The simulator's lock protects `pending` and `slow`. `lock`, taken last, protects the rest. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t posted;
    pthread_cond_t returned;
    struct sim_call *first;
    struct sim_call *last;
    bool idle; /* nothing is queued or running */
    unsigned int pending;
    bool slow; /* a wait timed out; false again when nothing is pending */
} thread_state = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .posted = PTHREAD_COND_INITIALIZER,
    .returned = PTHREAD_COND_INITIALIZER,
    .idle = true,
};

static _Thread_local bool is_callback_thread;

static struct sim_call *take(void)
{
    struct sim_call *call;

    pthread_mutex_lock(&thread_state.lock);
    while (thread_state.first == NULL) {
        thread_state.idle = true;
        pthread_cond_broadcast(&thread_state.returned);
        pthread_cond_wait(&thread_state.posted, &thread_state.lock);
    }
    call = thread_state.first;
    thread_state.first = call->next;
    if (thread_state.first == NULL) {
        thread_state.last = NULL;
    }
    pthread_mutex_unlock(&thread_state.lock);
    return call;
}

void sim_callback_make(void)
{
    struct sim_call *call;

    is_callback_thread = true;
    call = take();
    if (call->stream_fn != NULL) {
        call->stream_fn(call->stream, call->status, call->data);
    } else {
        call->fn(call->data);
    }
    sim_lock();
    call->done = true;
    thread_state.pending--;
    if (thread_state.pending == 0) {
        thread_state.slow = false;
    }
    sim_call_unref(call);
}

static struct sim_call *post(struct sim_call call)
{
    struct sim_call *copy = malloc(sizeof(*copy));

    if (copy == NULL) {
        return NULL;
    }
    *copy = call;
    copy->refs = 2; /* the caller's, the thread's */
    thread_state.pending++;
    pthread_mutex_lock(&thread_state.lock);
    if (thread_state.last != NULL) {
        thread_state.last->next = copy;
    } else {
        thread_state.first = copy;
    }
    thread_state.last = copy;
    thread_state.idle = false;
    pthread_cond_signal(&thread_state.posted);
    pthread_mutex_unlock(&thread_state.lock);
    return copy;
}

struct sim_call *sim_callback_post(CUhostFn fn, void *data)
{
    return post((struct sim_call){.fn = fn, .data = data});
}

struct sim_call *sim_callback_post_stream(CUstreamCallback fn, CUstream stream, CUresult status,
                                          void *data)
{
    return post(
        (struct sim_call){.stream_fn = fn, .stream = stream, .status = status, .data = data});
}

bool sim_call_is_done(const struct sim_call *call)
{
    return call->done;
}

void sim_call_unref(struct sim_call *call)
{
    if (--call->refs == 0) {
        free(call);
    }
}

bool sim_callback_is_pending(void)
{
    return thread_state.pending > 0;
}

bool sim_callback_is_thread(void)
{
    return is_callback_thread;
}

void sim_callback_settle(void)
{
    struct timespec until;
    bool idle;

    if (thread_state.pending == 0 || thread_state.slow || is_callback_thread) {
        return;
    }
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += SETTLE_NS;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    sim_unlock();
    pthread_mutex_lock(&thread_state.lock);
    while (!thread_state.idle &&
           pthread_cond_timedwait(&thread_state.returned, &thread_state.lock, &until) == 0) {
    }
    idle = thread_state.idle;
    pthread_mutex_unlock(&thread_state.lock);
    sim_lock();
    if (!idle && thread_state.pending > 0) {
        thread_state.slow = true;
    }
}

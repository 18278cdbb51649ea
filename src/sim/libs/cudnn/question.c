#include "sim/libs/cudnn/question.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "sim/driver/core/control.h"
#include "sim/libs/common/driver.h"
#include "sim/libs/cudnn/content.h"
#include "sim/libs/cudnn/real.h"
#include "system/fd.h"

/* The longest wait for an answer. Loading the library takes 0.5 s, or some seconds from a cold
 * disk. */
enum { PATIENCE_SECONDS = 60 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool given_up;          /* nobody answers */
static char library[PATH_MAX]; /* NVIDIA's cuDNN; "": not found yet */

/* ---- the connection ---- */

/* Connects to the process that answers. Returns -1 on failure. */
static int open_connection(void)
{
    const struct timeval patience = {.tv_sec = PATIENCE_SECONDS};
    const char *name = getenv(SIM_CUDNN_SOCKET);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = name != NULL ? strlen(name) : 0;
    int connection, result;

    if (length == 0 || length >= sizeof(address.sun_path)) {
        return -1;
    }
    memcpy(address.sun_path + 1, name, length); /* a first 0 byte makes the name abstract */
    connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection < 0) {
        return -1;
    }
    connection = spw_fd_park(connection);
    (void)setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    (void)setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    do {
        result = connect(connection, (const struct sockaddr *)&address,
                         (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length));
    } while (result != 0 && errno == EINTR);
    if (result != 0) {
        close(connection);
        connection = -1;
    }
    return connection;
}

/* Sends a question and receives the engines. False if there was no answer. */
static bool exchange(int connection, const struct sim_cudnn_content *content,
                     struct sim_cudnn_engine **ret_engines, size_t *ret_count)
{
    struct sim_cudnn_header header = {SIM_CUDNN_MAGIC, (uint32_t)content->count};
    size_t most = SIM_CUDNN_ENGINES * sizeof(**ret_engines);
    struct sim_cudnn_engine *engines;

    if (!sim_cudnn_send(connection, &header, sizeof(header)) ||
        !sim_cudnn_send(connection, content->bytes, content->count) ||
        !sim_cudnn_receive(connection, &header, sizeof(header)) ||
        header.magic != SIM_CUDNN_MAGIC || header.bytes > most ||
        header.bytes % sizeof(*engines) != 0) {
        return false;
    }
    engines = malloc(header.bytes + 1);
    if (engines == NULL || !sim_cudnn_receive(connection, engines, header.bytes)) {
        free(engines);
        return false;
    }
    *ret_engines = engines;
    *ret_count = header.bytes / sizeof(*engines);
    return true;
}

/* Each question has a connection of its own: the program may fork, close all descriptors, and
 * become another user between two questions. */
static bool ask(const struct sim_cudnn_content *content, struct sim_cudnn_engine **ret_engines,
                size_t *ret_count)
{
    int connection = open_connection();
    bool answered = connection >= 0 && exchange(connection, content, ret_engines, ret_count);

    if (connection >= 0) {
        close(connection);
    }
    return answered;
}

/* ---- asking ---- */

/* Finds the library to ask, once. */
static bool find_library(const void *caller)
{
    const char *named = getenv(SIM_CUDNN_LIBRARY);

    if (library[0] == '\0' && named != NULL && strlen(named) < sizeof(library)) {
        strcpy(library, named);
    }
    return library[0] != '\0' || sim_cudnn_real_find(caller, library);
}

static __typeof__(&spillway_sim_engines) report; /* NULL: another driver */

static void find_report(void)
{
    *(void **)&report = sim_shim_simulator("spillway_sim_engines");
}

/* Reports to the driver where the engines of a graph come from. Programs ask for the fallback only
 * if they try all engines, or if the others have failed. */
static void note(const struct sim_cudnn_descriptor *heuristics, bool guessed)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const struct sim_shim_driver *driver = sim_shim_driver();
    int64_t mode = sim_cudnn_descriptor_integer(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, -1);
    CUdevice device;

    (void)pthread_once(&once, find_report);
    if (report != NULL && sim_shim_context() == CUDA_SUCCESS &&
        driver->cuCtxGetDevice(&device) == CUDA_SUCCESS) {
        report(device, guessed, mode == CUDNN_HEUR_MODE_FALLBACK);
    }
}

size_t sim_cudnn_question_ask(const struct sim_cudnn_descriptor *heuristics, const void *caller,
                              struct sim_cudnn_engine **ret_engines)
{
    struct sim_cudnn_content content = {.bytes = NULL};
    size_t count = 0;

    *ret_engines = NULL;
    (void)pthread_mutex_lock(&lock);
    if (!given_up && find_library(caller) &&
        sim_cudnn_content_make(library, heuristics, &content)) {
        given_up = !ask(&content, ret_engines, &count);
    }
    (void)pthread_mutex_unlock(&lock);
    free(content.bytes);
    note(heuristics, count == 0);
    return count;
}

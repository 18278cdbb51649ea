#include "cli/cudnn/server.h"

#include "cli/console/messages.h"
#include "cli/cudnn/answers.h"
#include "cli/cudnn/library.h"
#include "system/create.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* WAITING: programs that wait for their turn before others must try again. PATIENCE_SECONDS: the
 * longest wait for the rest of a question. KEPT: the descriptor of the listening socket. */
enum { WAITING = 512, PATIENCE_SECONDS = 5, KEPT = STDERR_FILENO + 1 };

static pid_t server; /* 0: none was started */

/* Writes the engines of an answer, which is empty if the library cannot be asked. Returns their
 * number. */
static size_t answer(const unsigned char *content, size_t bytes, struct sim_cudnn_engine *engines)
{
    size_t found = 0;

    if (!spw_cli_cudnn_answers_find(content, bytes, engines, &found) &&
        spw_cli_cudnn_answer(content, bytes, engines, &found)) {
        spw_cli_cudnn_answers_add(content, bytes, engines, found);
    }
    return found;
}

/* Receives a question, and sends the answer. A program gets none for what is no question. */
static void serve(int client)
{
    static unsigned char content[SIM_CUDNN_MOST];
    static struct sim_cudnn_engine engines[SIM_CUDNN_ENGINES];
    struct sim_cudnn_header header;

    if (sim_cudnn_receive(client, &header, sizeof(header)) && header.magic == SIM_CUDNN_MAGIC &&
        header.bytes <= sizeof(content) && sim_cudnn_receive(client, content, header.bytes)) {
        header.bytes = (uint32_t)(answer(content, header.bytes, engines) * sizeof(engines[0]));
        (void)(sim_cudnn_send(client, &header, sizeof(header)) &&
               sim_cudnn_send(client, engines, header.bytes));
    }
}

/* The socket has no file, so that any process could connect to it. Only processes of this user may
 * name a library that is loaded here. */
static bool is_own(int client)
{
    struct ucred peer;
    socklen_t bytes = sizeof(peer);

    return getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == geteuid();
}

/* Each connection is for one question. An answer takes a millisecond, so they wait for each other.
 */
static void serve_all(int listener)
{
    const struct timeval patience = {.tv_sec = PATIENCE_SECONDS};

    for (;;) {
        int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

        if (client < 0 && errno != EINTR && errno != ECONNABORTED) {
            return;
        }
        if (client >= 0 && is_own(client)) {
            (void)setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
            (void)setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
            serve(client);
        }
        if (client >= 0) {
            close(client);
        }
    }
}

int spw_cli_cudnn_server_child(int argc, char **argv)
{
    int listens = 0;
    socklen_t bytes = sizeof(listens);

    if (argc != 1 || getsockopt(KEPT, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) != 0 ||
        !listens) {
        spw_cli_complain(argv[0], "only spillway itself uses this command");
        return SPW_CLI_EXIT_USAGE;
    }
    (void)prctl(PR_SET_NAME, "spillway-cudnn");
    spw_cli_cudnn_answers_open();
    serve_all(KEPT);
    return SPW_CLI_EXIT_OK;
}

/* The process keeps nothing of the launcher open: pipes end when the launcher ends. Ctrl-C reaches
 * the whole group, and the program may ask until it has ended. It is executed anew, because the
 * dynamic linker reads LD_LIBRARY_PATH at the start: cuDNN must not find the simulated libraries.
 */
static void be_server(int listener, pid_t launcher)
{
    int null = spw_create_open("/dev/null", O_RDWR, 0);

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher || null < 0 || setpgid(0, 0) != 0) {
        return;
    }
    if (dup2(listener, KEPT) != KEPT || fcntl(KEPT, F_SETFD, 0) != 0) {
        return;
    }
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        (void)dup2(null, fd);
    }
    (void)syscall(__NR_close_range, KEPT + 1, ~0U, 0);
    unsetenv("LD_LIBRARY_PATH");
    unsetenv("LD_PRELOAD");
    (void)execl("/proc/self/exe", "spillway", SPW_CLI_CUDNN_SERVER, NULL);
}

/* Opens a socket with a name that the kernel chooses, and writes the name. Returns -1 on failure.
 */
static int open_socket(char *ret_name, size_t capacity)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t bytes = offsetof(struct sockaddr_un, sun_path);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (listener >= 0 && bind(listener, (const struct sockaddr *)&address, bytes) == 0 &&
        listen(listener, WAITING) == 0) {
        bytes = sizeof(address);
        if (getsockname(listener, (struct sockaddr *)&address, &bytes) == 0) {
            /* The path begins with a 0 byte, and does not end with one. */
            (void)snprintf(ret_name, capacity, "%.*s",
                           (int)(bytes - offsetof(struct sockaddr_un, sun_path) - 1),
                           address.sun_path + 1);
            return listener;
        }
    }
    if (listener >= 0) {
        close(listener);
    }
    return -1;
}

/* True if the process must be started. Ends one that was started for another library, because a
 * process can load only one. */
static bool must_start(void)
{
    static char *library;
    const char *named = getenv(SIM_CUDNN_LIBRARY);

    named = named != NULL ? named : "";
    if (server > 0 && library != NULL && strcmp(library, named) == 0) {
        return false;
    }
    if (server > 0) {
        (void)kill(server, SIGKILL);
        (void)waitpid(server, NULL, 0);
        server = 0;
    }
    free(library);
    library = strdup(named);
    return true;
}

void spw_cli_cudnn_server_start(void)
{
    struct sockaddr_un address;
    char name[sizeof(address.sun_path)];
    pid_t launcher = getpid(), pid;
    int listener = must_start() ? open_socket(name, sizeof(name)) : -1;

    if (listener < 0) {
        return;
    }
    pid = fork();
    if (pid == 0) {
        be_server(listener, launcher);
        _exit(0);
    }
    close(listener);
    if (pid > 0) {
        server = pid;
        setenv(SIM_CUDNN_SOCKET, name, 1);
    }
}

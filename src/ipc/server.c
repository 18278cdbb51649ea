#include "ipc/server.h"

#include "ipc/message.h"
#include "ipc/state.h"
#include "ipc/table.h"
#include "system/fd.h"

#include <errno.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

enum {
    BACKLOG = 128,
    REQUESTS = SPW_IPC_CHUNKS / SPW_IPC_BATCH + 1, /* on one connection */
    PATIENCE_S = 1,                                /* for a client that sends nothing */
    PAUSE_US = 100 * 1000
};

static struct spw_ipc_server *const server = &spw_ipc.server;

/* True if the descriptor is still the socket. A program may close every descriptor it knows, and
 * open files of its own under the same number. */
static bool is_ours(void)
{
    struct stat now;

    return server->inode != 0 && fstat(server->fd, &now) == 0 && now.st_dev == server->device &&
           now.st_ino == server->inode;
}

static void serve(int client)
{
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    struct spw_ipc_request request;
    size_t none;

    (void)setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (!spw_ipc_same_user(client)) {
        return;
    }
    for (int i = 0;
         i < REQUESTS && spw_ipc_receive(client, &request, sizeof(request), NULL, 0, &none); i++) {
        if (request.version != SPW_IPC_VERSION) {
            return;
        }
        spw_ipc_table_answer(&request, client);
    }
}

static void *answer_all(void *unused)
{
    struct pollfd watched = {.fd = server->fd, .events = POLLIN};

    (void)unused;
    (void)prctl(PR_SET_NAME, "spillway-ipc");
    for (;;) {
        int client;

        if (poll(&watched, 1, -1) < 0 && errno == EINTR) {
            continue;
        }
        if (!is_ours()) {
            return NULL;
        }
        client = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC);
        if (client >= 0) {
            serve(client);
            close(client);
        } else if (errno != EINTR && errno != ECONNABORTED) {
            (void)usleep(PAUSE_US); /* no descriptor is free, or no memory */
        }
    }
}

static bool open_socket(void)
{
    struct sockaddr_un address;
    struct stat status;
    socklen_t length;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0) {
        return false;
    }
    spw_ipc_handle_init(&server->handle);
    if (!spw_ipc_random(&server->handle.name, sizeof(server->handle.name))) {
        close(fd);
        return false;
    }
    length = spw_ipc_address(&server->handle, &address);
    if (bind(fd, (struct sockaddr *)&address, length) != 0 || listen(fd, BACKLOG) != 0) {
        close(fd);
        return false;
    }
    server->fd = spw_fd_park(fd);
    if (fstat(server->fd, &status) == 0) {
        server->device = status.st_dev;
        server->inode = status.st_ino;
    }
    return true;
}

bool spw_ipc_server_start(spw_ipc_start_thread *start, struct spw_ipc_handle *handle)
{
    if (server->runs && !is_ours()) {
        server->runs = false; /* the program has closed the socket: the thread ends */
    }
    if (!server->runs && open_socket()) {
        server->runs = start(answer_all, NULL);
        if (!server->runs) {
            close(server->fd);
            server->inode = 0;
        }
    }
    *handle = server->handle;
    return server->runs;
}

void spw_ipc_server_forget(void)
{
    if (is_ours()) {
        close(server->fd);
    }
    server->inode = 0;
    server->runs = false;
    spw_ipc_table_end_context(NULL);
}

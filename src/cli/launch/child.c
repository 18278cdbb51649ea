#include "cli/launch/child.h"

#include "cli/console/messages.h"
#include "cli/launch/members.h"
#include "cli/launch/program.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

void *spw_cli_shared_map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return memory != MAP_FAILED ? memory : NULL;
}

void spw_cli_shared_unmap(void *memory, size_t bytes)
{
    if (memory != NULL) {
        (void)munmap(memory, bytes);
    }
}

static const int forwarded[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

enum { FORWARDED = sizeof(forwarded) / sizeof(*forwarded) };

static volatile sig_atomic_t child;     /* 0: no program runs */
static volatile sig_atomic_t interrupt; /* the last signal that asked to end; 0: none */

static unsigned tick_seconds; /* 0: no watcher */
static void (*tick)(void);
static volatile sig_atomic_t ticks;  /* alarms that are not handled yet */
static unsigned grace_seconds;       /* 0: no limit */
static volatile sig_atomic_t ending; /* seconds since Ctrl-C, plus 1; 0: no Ctrl-C */
static volatile sig_atomic_t again;  /* a second Ctrl-C */
static int speaks_on = STDERR_FILENO;

/* The alarm repeats, because an alarm that fires just before waitpid does not interrupt the
 * call. */
static void note_tick(int number)
{
    ticks++;
    if (ending > 0) {
        ending = ending + 1;
        alarm(1);
    }
}

void spw_cli_launch_end_within(unsigned seconds)
{
    grace_seconds = seconds;
}

void spw_cli_launch_speak_on(int fd)
{
    speaks_on = fd;
}

void spw_cli_launch_watch(unsigned seconds, void (*tick_function)(void))
{
    tick_seconds = seconds;
    tick = tick_function;
}

/* SA_RESTART is not set, so that the signal interrupts waitpid. Children do not inherit the
 * timer. */
static void set_timer(unsigned seconds)
{
    const struct itimerval timer = {.it_interval.tv_sec = seconds, .it_value.tv_sec = seconds};
    struct sigaction action = {.sa_handler = note_tick};

    if (seconds == 0) {
        ending = again = 0;
    }
    if (tick_seconds > 0 || grace_seconds > 0) {
        sigaction(SIGALRM, &action, NULL);
        setitimer(ITIMER_REAL, &timer, NULL);
    }
}

/* Forwards a signal, unless the child already received it. A signal from the terminal reaches the
 * whole process group. */
static void forward(int number, siginfo_t *info, void *context)
{
    int saved = errno;
    bool from_kernel = info->si_code > 0;

    if (number != SIGUSR1 && number != SIGUSR2) {
        interrupt = number;
    }
    if (number == SIGINT && grace_seconds > 0 && child > 0) {
        again = ending > 1; /* timeout(1) sends the first signal twice */
        if (ending == 0) {
            ending = 1;
            alarm(1); /* instead of the ticks of a watcher */
        }
    }
    if (child > 0 && !(from_kernel && getpgid(child) == getpgrp())) {
        kill(child, number);
    }
    errno = saved;
}

/* A signal that is already ignored (nohup) stays ignored, here and in the child. */
static void catch_signals(void)
{
    for (int i = 0; i < FORWARDED; i++) {
        struct sigaction action = {.sa_flags = SA_SIGINFO};
        struct sigaction present;

        action.sa_sigaction = forward;
        if (sigaction(forwarded[i], NULL, &present) == 0 && present.sa_handler != SIG_IGN) {
            sigaction(forwarded[i], &action, NULL);
        }
    }
}

static void block_signals(sigset_t *ret_previous)
{
    sigset_t set;

    sigemptyset(&set);
    for (int i = 0; i < FORWARDED; i++) {
        sigaddset(&set, forwarded[i]);
    }
    sigprocmask(SIG_BLOCK, &set, ret_previous);
}

static struct spw_cli_program program; /* the launched program */
static char lack[PATH_MAX + 256];      /* spw_cli_launch_lack */

/* Returns true if SIGCHLD was ignored at the start. In this case, the launcher restores the default
 * action, so that it can read the exit status of the program. In the program, the signal is ignored
 * again. */
static bool ignores_children;

static void mind_children(void)
{
    if (!ignores_children) {
        ignores_children = signal(SIGCHLD, SIG_DFL) == SIG_IGN;
    }
}

/* Runs in the child and never returns. If the program cannot be executed, writes errno to `report`,
 * which the launcher shares. */
static void execute(char **arguments, volatile int *report, const sigset_t *signals)
{
    if (ignores_children) {
        (void)signal(SIGCHLD, SIG_IGN);
    }
    sigprocmask(SIG_SETMASK, signals, NULL);
    if (program.kind == SPW_CLI_PROGRAM_MUSL) {
        unsetenv("LD_PRELOAD"); /* glibc's libraries do not load */
    }
    if (program.kind == SPW_CLI_PROGRAM_FOREIGN) {
        execv(program.file, arguments); /* execvp would run it as a shell script */
    } else {
        execvp(arguments[0], arguments);
    }
    *report = errno;
    _exit(SPW_CLI_EXIT_NOT_FOUND);
}

static void end(pid_t pid)
{
    static bool said;

    if (!said && again) {
        dprintf(speaks_on, "spillway: killed by the second Ctrl-C\n");
    } else if (!said) {
        dprintf(speaks_on, "spillway: killed: it did not end within %u s of Ctrl-C, and is idle\n",
                grace_seconds);
    }
    said = true;
    spw_cli_members_kill();
    kill(pid, SIGKILL);
}

/* Called every second after Ctrl-C. Kills the program if its time is over and it is idle. A busy
 * program is not killed, because it will most likely end soon: interpreters take a while to exit on
 * a loaded machine. */
static void mind_end(pid_t pid)
{
    enum { IDLE_SECONDS = 3 };
    static bool reported;
    static int idle;
    bool late = ending > (sig_atomic_t)grace_seconds;

    idle = spw_cli_members_work(pid) ? 0 : idle + 1;
    if (again || (late && idle >= IDLE_SECONDS)) {
        end(pid);
    } else if (late && !reported) {
        reported = true;
        dprintf(speaks_on,
                "spillway: not ended yet, %u s after Ctrl-C, but still busy: Ctrl-C again kills "
                "it\n",
                grace_seconds);
    }
}

static int wait_for(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        if (ticks == 0 && !again) {
            continue;
        }
        ticks = 0;
        if (ending > 0) {
            mind_end(pid);
        } else if (tick != NULL) {
            tick();
        }
    }
    set_timer(0);
    child = 0;
    return WIFSIGNALED(status) ? SPW_CLI_EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

/* execvp also reports ENOENT for the missing interpreter of a script. */
static int explain(const char *command, const char *name, int error)
{
    bool has_path = strchr(name, '/') != NULL;

    if (error == ENOENT && !(has_path && access(name, F_OK) == 0)) {
        spw_cli_complain(command, "%s: %s", name, has_path ? "no such file" : "command not found");
        return SPW_CLI_EXIT_NOT_FOUND;
    }
    spw_cli_complain(command, "%s: cannot be started: %s", name,
                     error == ENOENT                     ? "its interpreter is missing"
                     : error == ENOEXEC && *lack != '\0' ? lack
                                                         : strerror(error));
    return SPW_CLI_EXIT_CANNOT_START;
}

static void look_at(const char *name)
{
    char reason[128];

    lack[0] = '\0';
    spw_cli_program_look(name, &program);
    if (spw_cli_program_reason(&program, reason, sizeof(reason))) {
        snprintf(lack, sizeof(lack), "%s %s", program.path, reason);
    }
}

/* Warns once for each program if spillway cannot be preloaded. The warning about a FOREIGN program
 * comes only after a successful start. */
static void tell_lack(const char *command)
{
    static char reported[PATH_MAX];

    if (*lack != '\0' && strcmp(reported, program.path) != 0) {
        snprintf(reported, sizeof(reported), "%s", program.path);
        spw_cli_complain(command, "%s%s", lack,
                         program.kind == SPW_CLI_PROGRAM_STATIC
                             ? "; programs that it starts are served"
                             : "; it runs without spillway");
    }
}

const char *spw_cli_launch_lack(void)
{
    return lack;
}

/* Starts the program and waits until it ends. *ret_error is 0, or errno if the program could not be
 * executed. Returns the exit code of the program. If the fork fails, sets errno and returns -1. */
static int run(char **arguments, volatile int *report, int *ret_error)
{
    sigset_t signals;
    pid_t pid;
    int code;

    mind_children();
    block_signals(&signals);
    pid = fork();
    if (pid == 0) {
        execute(arguments, report, &signals);
    }
    if (pid < 0) {
        sigprocmask(SIG_SETMASK, &signals, NULL);
        return -1;
    }
    child = pid;
    set_timer(tick_seconds);
    catch_signals();
    sigprocmask(SIG_SETMASK, &signals, NULL);
    code = wait_for(pid);
    *ret_error = *report;
    return code;
}

/* Warns once if /proc is not mounted, as in some containers. */
static void tell_without_proc(const char *command)
{
    static bool reported;

    if (!reported && access("/proc/self/maps", F_OK) != 0) {
        reported = true;
        spw_cli_complain(command,
                         "/proc is not mounted: reports will not name native functions and "
                         "processes, and spillway top will not find this program");
    }
}

int spw_cli_launch(const char *command, char **arguments, bool *ret_started)
{
    int *report = spw_cli_shared_map(sizeof(*report));
    int code, error = 0;

    tell_without_proc(command);
    look_at(arguments[0]);
    if (program.kind != SPW_CLI_PROGRAM_FOREIGN) {
        tell_lack(command);
    }
    if (ret_started != NULL) {
        *ret_started = false;
    }
    code = report == NULL ? -1 : run(arguments, report, &error);
    if (code < 0) {
        spw_cli_complain(command, "cannot start a process: %s", strerror(errno));
    }
    spw_cli_shared_unmap(report, sizeof(*report));
    if (code < 0) {
        return SPW_CLI_EXIT_CANNOT_START;
    }
    if (ret_started != NULL) {
        *ret_started = error == 0;
    }
    if (error == 0) {
        tell_lack(command);
    }
    return error == 0 ? code : explain(command, arguments[0], error);
}

int spw_cli_launch_code(int code)
{
    return code != 0 && interrupt == SIGINT ? SPW_CLI_EXIT_SIGNAL + SIGINT : code;
}

bool spw_cli_launch_was_interrupted(int *ret_number)
{
    int number = interrupt;

    if (number != 0) {
        *ret_number = number;
    }
    return number != 0;
}

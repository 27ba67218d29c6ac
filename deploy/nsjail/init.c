/* Process 1 of a jail: waits for one request, runs its program as a child, says how it ended.
 *
 *   init CONTROL_FD [INTERPRETER ARGS...]
 *
 * CONTROL_FD is a stream socket. In comes a struct request, with the descriptors of standard input,
 * output and error, and then `num_bytes` of arguments and variables, each ended by a NUL. Out go
 * lines: "ready"; "start"; then "exit CODE ..." or "signal NUMBER ..." with the microseconds of wall
 * clock and of CPU, the largest resident set in KiB, the number of stray processes that were killed,
 * and the error number of a program that could not be executed. No program ever holds CONTROL_FD.
 *
 * An INTERPRETER is started before the request is there, with a socket as descriptor 3; a request that
 * wants it is passed on to it, else it is killed. */
#define _GNU_SOURCE
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NUM_STREAMS = 3, WARM_FD = 3, MAX_BYTES = 2 << 20 };

struct request {
    uint32_t num_bytes, num_arguments, num_variables, is_for_warm;
    uint64_t cpu_seconds, file_bytes, num_processes, address_bytes;
};

struct warm {
    pid_t pid;
    int socket;
};

static long microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000L + now.tv_nsec / 1000;
}

static int move_bytes(int fd, char *bytes, size_t num_bytes, int is_write) {
    while (num_bytes > 0) {
        ssize_t moved = is_write ? write(fd, bytes, num_bytes) : read(fd, bytes, num_bytes);
        if (moved < 0 && errno == EINTR) continue;
        if (moved <= 0) return -1;
        bytes += moved;
        num_bytes -= moved;
    }
    return 0;
}

static int receive(int control, struct request *request, int *streams) {
    char space[CMSG_SPACE(NUM_STREAMS * sizeof(int))];
    struct iovec part = {request, sizeof *request};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space,
                             .msg_controllen = sizeof space};
    ssize_t got;
    do got = recvmsg(control, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    struct cmsghdr *rights = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (!rights || message.msg_flags & MSG_CTRUNC) return -1;
    if (rights->cmsg_len != CMSG_LEN(NUM_STREAMS * sizeof(int))) return -1;
    memcpy(streams, CMSG_DATA(rights), NUM_STREAMS * sizeof(int));
    if (move_bytes(control, (char *)request + got, sizeof *request - got, 0)) return -1;
    return request->num_bytes > MAX_BYTES ? -1 : 0;
}

static int pass_on(int socket, struct request *request, const char *strings, const int *streams) {
    char space[CMSG_SPACE(NUM_STREAMS * sizeof(int))];
    memset(space, 0, sizeof space);
    struct iovec part = {request, sizeof *request};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space,
                             .msg_controllen = sizeof space};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(NUM_STREAMS * sizeof(int));
    memcpy(CMSG_DATA(rights), streams, NUM_STREAMS * sizeof(int));
    if (sendmsg(socket, &message, MSG_NOSIGNAL) != sizeof *request) return -1;
    return move_bytes(socket, (char *)strings, request->num_bytes, 1);
}

static void limit(pid_t pid, int resource, uint64_t value) {
    struct rlimit both = {value, value};
    prlimit(pid, resource, &both, NULL);
}

/* SIGXCPU comes a second before the kill, so that the limit can be told from a plain SIGKILL. */
static void limit_all(pid_t pid, const struct request *request) {
    struct rlimit cpu = {request->cpu_seconds, request->cpu_seconds + 1};
    prlimit(pid, RLIMIT_CPU, &cpu, NULL);
    limit(pid, RLIMIT_FSIZE, request->file_bytes);
    limit(pid, RLIMIT_NPROC, request->num_processes);
    if (request->address_bytes) limit(pid, RLIMIT_AS, request->address_bytes);
}

static void take_streams(const int *streams) {
    for (int fd = 0; fd < NUM_STREAMS; fd++) dup2(streams[fd], fd);
}

/* Starts the interpreter; without one in this root the request is executed as any other. */
static struct warm start_warm(char **command) {
    struct warm warm = {0, -1};
    int ends[2], input[2], output[2], report[2], failure;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) return warm;
    if (pipe2(input, O_CLOEXEC) || pipe2(output, O_CLOEXEC) || pipe2(report, O_CLOEXEC)) return warm;
    warm.socket = ends[0];
    warm.pid = fork();
    if (warm.pid == 0) {
        int streams[] = {input[0], output[1], output[1]};
        int socket = fcntl(ends[1], F_DUPFD, 64), fds[NUM_STREAMS];
        int told = fcntl(report[1], F_DUPFD_CLOEXEC, 64);
        setsid();
        for (int i = 0; i < NUM_STREAMS; i++) fds[i] = fcntl(streams[i], F_DUPFD_CLOEXEC, 64);
        take_streams(fds);
        dup2(socket, WARM_FD);
        close(socket);
        execv(command[0], command);
        dprintf(told, "none");
        _exit(127);
    }
    close(ends[1]), close(report[1]);
    if (warm.pid > 0 && read(report[0], &failure, sizeof failure) > 0) {
        waitpid(warm.pid, NULL, 0);
        warm.pid = 0;
    }
    close(report[0]);
    for (int i = 0; i < 2; i++) close(input[i]), close(output[i]);
    return warm;
}

/* Gives the program its child process; an error number comes back where it cannot be executed. */
static pid_t start(const struct request *request, char *strings, const int *streams, int *error) {
    char **arguments = calloc(request->num_arguments + request->num_variables + 2, sizeof(char *));
    char **variables = arguments + request->num_arguments + 1, *next = strings;
    int report[2];
    *error = 0;
    if (!arguments || pipe2(report, O_CLOEXEC)) return -1;
    for (uint32_t i = 0; i < request->num_arguments; i++, next += strlen(next) + 1) arguments[i] = next;
    for (uint32_t i = 0; i < request->num_variables; i++, next += strlen(next) + 1) variables[i] = next;
    pid_t program = fork();
    if (program == 0) {
        setsid();
        take_streams(streams);
        limit_all(0, request);
        environ = variables;
        execvp(arguments[0], arguments);
        int reason = errno;
        dprintf(2, "cannot execute '%s': %s\n", arguments[0], strerror(reason));
        while (write(report[1], &reason, sizeof reason) < 0 && errno == EINTR) continue;
        _exit(reason == ENOENT ? 127 : 126); /* as a shell says it */
    }
    close(report[1]);
    if (program > 0) move_bytes(report[0], (char *)error, sizeof *error, 0);
    close(report[0]);
    return program;
}

/* Waits for the program, then for all it left, which are killed. */
static int wait_for(pid_t program, int *num_strays) {
    int status = 0, ended;
    pid_t pid;
    while ((pid = wait(&ended)) != program)
        if (pid < 0 && errno != EINTR) return -1;
    status = ended;
    kill(-1, SIGKILL);
    *num_strays = 0;
    while ((pid = wait(&ended)) > 0 || errno == EINTR)
        if (pid > 0 && WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL) ++*num_strays;
    return status;
}

int serve_request(int control, char **warm_command) {
    struct request request;
    struct warm warm = {0, -1};
    struct rusage used;
    int streams[NUM_STREAMS], error = 0, num_strays;
    pid_t program;
    prctl(PR_SET_DUMPABLE, 0); /* closes /proc/1 to the program */
    fcntl(control, F_SETFD, FD_CLOEXEC);
    if (warm_command && warm_command[0]) warm = start_warm(warm_command);
    dprintf(control, "ready\n");
    if (receive(control, &request, streams)) return 125;
    char *strings = malloc(request.num_bytes + 1);
    if (!strings || move_bytes(control, strings, request.num_bytes, 0)) return 125;
    strings[request.num_bytes] = 0;
    if (warm.pid > 0 && !request.is_for_warm) {
        kill(warm.pid, SIGKILL);
        waitpid(warm.pid, NULL, 0);
    }
    dprintf(control, "start\n");
    long begun = microseconds();
    if (request.is_for_warm && warm.pid > 0) {
        program = warm.pid;
        limit_all(program, &request);
        if (pass_on(warm.socket, &request, strings, streams)) return 125;
    } else {
        program = start(&request, strings, streams, &error);
    }
    if (program < 0) return 125;
    if (warm.socket >= 0) close(warm.socket);
    for (int i = 0; i < NUM_STREAMS; i++) close(streams[i]);
    int status = wait_for(program, &num_strays);
    long wall = microseconds() - begun;
    if (status < 0) return 125;
    getrusage(RUSAGE_CHILDREN, &used);
    long cpu = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000L + used.ru_utime.tv_usec +
               used.ru_stime.tv_usec;
    dprintf(control, "%s %d %ld %ld %ld %d %d\n", WIFEXITED(status) ? "exit" : "signal",
            WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), wall, cpu, used.ru_maxrss,
            num_strays, error);
    return 0;
}

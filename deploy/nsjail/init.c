/* Process 1 of a jail: runs the program as its child and says how it ended.
 *
 *   init STATUS_FD PROGRAM ARGS...
 *
 * Writes "start", then "exit CODE MICROSECONDS" or "signal NUMBER MICROSECONDS", each a line. The
 * program never holds STATUS_FD. Whatever it left running dies with this process. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000L + now.tv_nsec / 1000;
}

/* SIGXCPU comes a second before the kill, so that the limit can be told from a plain SIGKILL. */
static void warn_of_cpu_limit(void) {
    struct rlimit cpu;
    if (getrlimit(RLIMIT_CPU, &cpu) || cpu.rlim_cur == RLIM_INFINITY) return;
    cpu.rlim_cur -= 1;
    setrlimit(RLIMIT_CPU, &cpu);
}

static void run(char **command) {
    setsid();
    warn_of_cpu_limit();
    execvp(command[0], command);
    int error = errno;
    dprintf(2, "cannot execute '%s': %s\n", command[0], strerror(error));
    _exit(error == ENOENT ? 127 : 126); /* as a shell says it */
}

int main(int argc, char **argv) {
    if (argc < 3) return 125;
    int status_fd = atoi(argv[1]), status;
    prctl(PR_SET_DUMPABLE, 0); /* closes /proc/1 to the program */
    fcntl(status_fd, F_SETFD, FD_CLOEXEC);
    dprintf(status_fd, "start\n");
    long start = microseconds();
    pid_t program = fork(), pid;
    if (program < 0) return 125;
    if (program == 0) run(argv + 2);
    for (int fd = 0; fd < 3; fd++) close(fd);
    while ((pid = wait(&status)) > 0 || errno == EINTR) {
        if (pid != program) continue;
        if (WIFEXITED(status))
            dprintf(status_fd, "exit %d %ld\n", WEXITSTATUS(status), microseconds() - start);
        else
            dprintf(status_fd, "signal %d %ld\n", WTERMSIG(status), microseconds() - start);
        return 0;
    }
    return 125;
}

/* Runs one nsjail in its cgroups and ends when no process of the run is left.
 *
 *   guard PARENT_PID FOLDER NUM_CGROUPS CGROUP_PROCS_FILE... -- NSJAIL ARGS...
 *
 * It stays outside the cgroups, so no limit of the run hits it. As a subreaper it adopts and reaps
 * whatever outlives nsjail. SIGTERM kills the run; the death of the parent kills everything.
 * Only the run sees FOLDER as /run/user. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void die(const char *what) {
    fprintf(stderr, "guard: %s: %s\n", what, strerror(errno));
    _exit(125);
}

static void die_with(pid_t parent) {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL)) die("PR_SET_PDEATHSIG");
    if (getppid() != parent) _exit(125);
}

static void join(const char *procs_file) {
    int fd = open(procs_file, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "0", 1) != 1) die(procs_file);
    close(fd);
}

/* Shows the jails' folder at a place that every user id can reach, whatever the way to it is. nsjail
 * also makes its mount points there. As a slave, this view loses what the host unmounts. */
static void show(const char *folder) {
    if (unshare(CLONE_NEWNS)) die("unshare");
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL)) die("MS_SLAVE");
    if (mount(folder, "/run/user", NULL, MS_BIND | MS_REC, NULL)) die("/run/user");
}

/* Only our own unreaped children are named there, so no pid can have been given to another. */
static void kill_adopted(void) {
    FILE *children = fopen("/proc/thread-self/children", "re");
    int pid;
    if (!children) return;
    while (fscanf(children, "%d", &pid) == 1) kill(pid, SIGKILL);
    fclose(children);
}

int main(int argc, char **argv) {
    if (argc < 6) return 125;
    die_with(atoi(argv[1]));
    if (prctl(PR_SET_CHILD_SUBREAPER, 1)) die("PR_SET_CHILD_SUBREAPER");
    int num_cgroups = atoi(argv[3]);
    sigset_t waited, before;
    sigemptyset(&waited);
    sigaddset(&waited, SIGTERM);
    sigaddset(&waited, SIGCHLD);
    sigprocmask(SIG_BLOCK, &waited, &before);
    pid_t self = getpid(), nsjail = fork();
    if (nsjail < 0) die("fork");
    if (nsjail == 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        die_with(self);
        for (int i = 0; i < num_cgroups; i++) join(argv[4 + i]);
        show(argv[2]);
        char **command = argv + 5 + num_cgroups;
        execv(command[0], command);
        die(command[0]);
    }
    syscall(SYS_close_range, 0, ~0U, 0); /* so that the run's streams end with the run */
    for (;;) {
        int caught, pid;
        sigwait(&waited, &caught);
        if (caught == SIGTERM && nsjail) kill(nsjail, SIGKILL);
        while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
            if (pid == nsjail) nsjail = 0;
        if (pid < 0 && errno == ECHILD) return 0;
        if (!nsjail) kill_adopted();
    }
}

/* The launcher of one slot: makes its jails, one at a time, and ends with its supervisor.
 *
 *   launcher SOCKET_FD FOLDER UID NUM_CGROUPS CGROUP_PROCS_FILE...
 *
 * It joins the slot's cgroups, so that every jail is born in them, and takes a mount and a network
 * namespace of its own, in which FOLDER is seen as /run/user. As a subreaper it adopts and reaps
 * whatever a jail leaves. Nothing outlives it, mounts included.
 *
 * SOCKET_FD is a seqpacket socket. In come
 *   "P" and NUL-ended words, with the jail's control socket and its log: make a jail. The words are the
 *       slot's folder, the options of the workspace, the folder that it begins with or nothing, and then either "nsjail" and its argument list,
 *       in which "%C" and "%L" stand for the two descriptors, or "native", the words of a plan, and the
 *       argument list of an interpreter to start beforehand. The jail before is killed, and gone first.
 *   "K": kill the jail.
 * Out go "W" with a descriptor of the empty workspace, "G" when no process of the jail is left, and
 * "E" with what went wrong. A message that is cut, for its bytes, words or descriptors, makes none:
 * "E" and "G" come back. Without root, UID must be 0: the user's own id as seen by the launcher. */
#define _GNU_SOURCE
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define VIEW "/run/user"
#define NEW_ROOT VIEW "/nsjail.0.root"

enum { JAIL_ID = 1000, MAX_BYTES = 1 << 16, MAX_WORDS = 256, NUM_GIVEN = 2 };

/* What a native jail is made of, in the order of its words. */
enum plan_word {
    ROOT_LAYERS,  /* lowerdir of the root's overlay */
    USR_LAYERS,   /* lowerdir of /usr, or nothing where the root has its own */
    DEVICES,      /* folder of null, zero and urandom */
    ENTROPY,      /* file or device that is /dev/urandom and /dev/random */
    WORKSPACE,    /* mount point of the workspace */
    SMALL,        /* options of /tmp and /dev/shm */
    FILTER,       /* file of the seccomp program */
    LOOPBACK,     /* "1" for a loopback interface that is up */
    NUM_PACKAGES, /* how many pairs of words follow: layers and name below /packages */
};

static int supervisor, ended_children;
static pid_t jail;
static uid_t slot_uid;
static int is_ordinary, is_busy;

static void reply(char kind, const char *text, int fd) {
    char space[CMSG_SPACE(sizeof(int))];
    struct iovec parts[] = {{&kind, 1}, {(void *)text, strlen(text)}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    if (fd >= 0) {
        memset(space, 0, sizeof space);
        message.msg_control = space, message.msg_controllen = sizeof space;
        struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET, rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(rights), &fd, sizeof fd);
    }
    if (sendmsg(supervisor, &message, MSG_NOSIGNAL) < 0) _exit(1);
}

/* Ends this process, launcher or jail in the making, with a word to the supervisor. */
static void die(const char *what) {
    char text[512];
    snprintf(text, sizeof text, "%s: %s", what, strerror(errno));
    reply('E', text, -1);
    _exit(125);
}

static void write_file(const char *path, const char *format, ...) {
    char text[64];
    va_list values;
    va_start(values, format);
    int length = vsnprintf(text, sizeof text, format, values);
    va_end(values);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, length) != length) die(path);
    close(fd);
}

/* When memory runs out the jail goes, not its launcher. */
static void let_die_first(pid_t pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/oom_score_adj", pid);
    write_file(path, "1000");
}

static void become_root_of_own_namespace(void) {
    uid_t uid = getuid();
    gid_t gid = getgid();
    if (unshare(CLONE_NEWUSER)) die("user namespace");
    write_file("/proc/self/setgroups", "deny");
    write_file("/proc/self/uid_map", "0 %d 1", uid);
    write_file("/proc/self/gid_map", "0 %d 1", gid);
}

/* Shows the jails' folder at a place that every user id can reach, whatever the way to it is. */
static void take_view(const char *folder) {
    char source[32];
    if (unshare(CLONE_NEWNS | CLONE_NEWNET)) die("mount and network namespace");
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL)) die("MS_SLAVE");
    int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC); /* /run may get out of sight */
    if (fd < 0) die(folder);
    snprintf(source, sizeof source, "/proc/self/fd/%d", fd);
    if (access(VIEW, F_OK) &&
        (mount("loopwright", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,mode=755") ||
         mkdir(VIEW, 0755)))
        die(VIEW);
    if (mount(source, VIEW, NULL, MS_BIND | MS_REC, NULL)) die(VIEW);
    close(fd);
}

static void mount_layers(const char *layers, const char *target) {
    char options[PATH_MAX]; /* the kernel would cut what is more */
    int length = snprintf(options, sizeof options, "lowerdir=%s", layers);
    if (length >= (int)sizeof options) errno = ENAMETOOLONG, die(target);
    if (mount("overlay", target, "overlay", MS_RDONLY | MS_NOSUID | MS_NODEV, options)) die(target);
}

/* What is forbidden at the source stays so: only the namespace that mounted it could allow it. */
static void show(const char *source, const char *target, unsigned long flags) {
    const unsigned long kept = MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME | MS_NODIRATIME;
    struct statvfs found;
    if (mount(source, target, NULL, MS_BIND, NULL) || statvfs(target, &found)) die(target);
    flags |= MS_REMOUNT | MS_BIND | (found.f_flag & kept);
    if (mount(NULL, target, NULL, flags, NULL)) die(target);
}

static void bind_device(const char *folder, const char *name, const char *target) {
    char source[PATH_MAX];
    snprintf(source, sizeof source, "%s/%s", folder, name);
    show(source, target, 0);
}

static void mount_packages(char **words) {
    char target[PATH_MAX];
    int num_packages = atoi(words[NUM_PACKAGES]);
    if (!num_packages) return;
    if (mount("loopwright", "packages", "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,mode=755"))
        die("/packages");
    for (int i = 0; i < num_packages; i++) {
        char **pair = words + NUM_PACKAGES + 1 + 2 * i;
        snprintf(target, sizeof target, "packages/%s", pair[1]);
        if (mkdir(target, 0755)) die(target);
        mount_layers(pair[0], target);
    }
    if (mount(NULL, "packages", NULL, MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL))
        die("/packages");
}

static void mount_all(char **words) {
    const unsigned long small = MS_NOSUID | MS_NODEV;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) die("MS_PRIVATE");
    mount_layers(words[ROOT_LAYERS], NEW_ROOT);
    if (chdir(NEW_ROOT)) die(NEW_ROOT);
    if (words[USR_LAYERS][0]) mount_layers(words[USR_LAYERS], "usr");
    if (mount("proc", "proc", "proc", MS_RDONLY | small | MS_NOEXEC, "subset=pid")) die("/proc");
    bind_device(words[DEVICES], "null", "dev/null");
    bind_device(words[DEVICES], "zero", "dev/zero");
    show(words[ENTROPY], "dev/urandom", MS_RDONLY);
    show(words[ENTROPY], "dev/random", MS_RDONLY);
    if (mount("loopwright", "dev/shm", "tmpfs", small | MS_NOEXEC, words[SMALL])) die("/dev/shm");
    if (mount("loopwright", "tmp", "tmpfs", small, words[SMALL])) die("/tmp");
    show(words[WORKSPACE], "workspace", small);
    mount_packages(words);
    if (syscall(SYS_pivot_root, ".", ".")) die("pivot_root");
    if (umount2(".", MNT_DETACH)) die("the old root");
    if (chdir("/workspace")) die("/workspace");
}

static void raise_loopback(void) {
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request)) die("loopback");
    close(fd);
}

static void limit(int resource, rlim_t value) {
    struct rlimit both = {value, value};
    if (setrlimit(resource, &both)) die("setrlimit");
}

static void set_limits(void) {
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_NOFILE, 256);
    limit(RLIMIT_STACK, 8 << 20);
    limit(RLIMIT_MEMLOCK, 64 << 10);
    limit(RLIMIT_MSGQUEUE, 64 << 10);
    limit(RLIMIT_RTPRIO, 0);
    limit(RLIMIT_NICE, 0);
}

static void drop_capabilities(void) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2];
    memset(none, 0, sizeof none);
    for (int number = 0; prctl(PR_CAPBSET_DROP, number, 0, 0, 0) == 0; number++) continue;
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (syscall(SYS_capset, &header, none)) die("capset");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) die("PR_SET_NO_NEW_PRIVS");
}

static struct sock_fprog read_filter(const char *path) {
    static struct sock_filter program[4096];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, program, sizeof program);
    if (length <= 0 || length % sizeof *program) die(path);
    close(fd);
    return (struct sock_fprog){.len = length / sizeof *program, .filter = program};
}

static void unblock_signals(void) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void become_jail(char **words, char **warm, int control, int map_fd) {
    char go;
    unblock_signals();
    struct sock_fprog filter = read_filter(words[FILTER]);
    if (read(map_fd, &go, 1) != 1) _exit(125);
    setgroups(0, NULL); /* an ordinary user may not, and keeps groups that mean nothing inside */
    if (setresgid(JAIL_ID, JAIL_ID, JAIL_ID) || setresuid(JAIL_ID, JAIL_ID, JAIL_ID)) die("user id");
    if (prctl(PR_SET_PDEATHSIG, SIGKILL)) die("PR_SET_PDEATHSIG");
    if (read(map_fd, &go, 1) != 1) _exit(125); /* the launcher still lives */
    mount_all(words);
    if (words[LOOPBACK][0] == '1') raise_loopback();
    if (sethostname("jail", 4)) die("sethostname");
    umask(022);
    setsid();
    personality(ADDR_NO_RANDOMIZE);
    set_limits();
    drop_capabilities();
    if (dup2(control, 3) != 3) die("dup2");
    syscall(SYS_close_range, 4, ~0U, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) _exit(126);
    _exit(serve_request(3, warm));
}

static pid_t start_native(char **words, char **warm, int control) {
    int map[2];
    char path[64];
    if (pipe2(map, O_CLOEXEC)) die("pipe2");
    struct clone_args how = {.exit_signal = SIGCHLD,
                             .flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC |
                                      CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_NEWNET};
    pid_t pid = syscall(SYS_clone3, &how, sizeof how);
    if (pid < 0) die("clone3");
    if (pid == 0) {
        close(map[1]);
        become_jail(words, warm, control, map[0]);
    }
    snprintf(path, sizeof path, "/proc/%d/setgroups", pid);
    if (is_ordinary) write_file(path, "deny");
    snprintf(path, sizeof path, "/proc/%d/uid_map", pid);
    write_file(path, "%d %d 1", JAIL_ID, slot_uid);
    snprintf(path, sizeof path, "/proc/%d/gid_map", pid);
    write_file(path, "%d %d 1", JAIL_ID, slot_uid);
    let_die_first(pid);
    if (write(map[1], "go", 2) != 2) die("a jail in the making");
    close(map[0]), close(map[1]);
    return pid;
}

static pid_t start_nsjail(char **command, int control, int log) {
    char numbers[NUM_GIVEN][16];
    pid_t self = getpid(), pid = fork();
    if (pid < 0) die("fork");
    if (pid > 0) return pid;
    unblock_signals();
    if (prctl(PR_SET_PDEATHSIG, SIGKILL)) die("PR_SET_PDEATHSIG");
    if (getppid() != self) _exit(125);
    let_die_first(getpid());
    snprintf(numbers[0], sizeof numbers[0], "%d", control);
    snprintf(numbers[1], sizeof numbers[1], "%d", log);
    fcntl(control, F_SETFD, 0), fcntl(log, F_SETFD, 0);
    for (char **word = command; *word; word++) {
        if (!strcmp(*word, "%C")) *word = numbers[0];
        if (!strcmp(*word, "%L")) *word = numbers[1];
    }
    char *environment[] = {NULL};
    execve(command[0], command, environment);
    die(command[0]);
    return -1;
}

/* Gives a user namespace in which root is the slot's user. */
static int open_slot_users(void) {
    char path[64];
    int done[2];
    struct clone_args how = {.exit_signal = SIGCHLD, .flags = CLONE_NEWUSER};
    if (pipe2(done, O_CLOEXEC)) die("pipe2");
    pid_t pid = syscall(SYS_clone3, &how, sizeof how);
    if (pid < 0) die("clone3");
    if (pid == 0) {
        close(done[1]);
        _exit(read(done[0], path, 1) != 0);
    }
    snprintf(path, sizeof path, "/proc/%d/uid_map", pid);
    write_file(path, "0 %d 1", slot_uid);
    snprintf(path, sizeof path, "/proc/%d/gid_map", pid);
    write_file(path, "0 %d 1", slot_uid);
    snprintf(path, sizeof path, "/proc/%d/ns/user", pid);
    int users = open(path, O_RDONLY | O_CLOEXEC);
    if (users < 0) die(path);
    close(done[0]), close(done[1]);
    waitpid(pid, NULL, 0);
    return users;
}

/* Shows a folder of root's as one of the slot's user. */
static void show_as_own(const char *folder, const char *point) {
    static int users = -1;
    int tree = open_tree(AT_FDCWD, folder, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (tree < 0) die(folder);
    if (!is_ordinary) { /* whose folder it is already */
        if (users < 0) users = open_slot_users();
        struct mount_attr own = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = users};
        if (mount_setattr(tree, "", AT_EMPTY_PATH, &own, sizeof own)) die("idmapped mount");
    }
    if (move_mount(tree, "", AT_FDCWD, point, MOVE_MOUNT_F_EMPTY_PATH)) die(point);
    close(tree);
}

static void make_folder(const char *path) {
    if (mkdir(path, 0755) || chown(path, slot_uid, slot_uid)) die(path);
}

/* Mounts a workspace that begins with the files of a folder; what changes is counted, no more. */
static void mount_over(const char *base, const char *options) {
    char layers[512];
    if (mount("loopwright", "changes", "tmpfs", MS_NOSUID | MS_NODEV, options)) die("changes");
    make_folder("changes/upper"), make_folder("changes/work");
    show_as_own(base, "base");
    snprintf(layers, sizeof layers, "lowerdir=base,upperdir=changes/upper,workdir=changes/work%s",
             is_ordinary ? ",userxattr" : ",xino=on");
    if (mount("overlay", "workspace", "overlay", MS_NOSUID | MS_NODEV, layers)) die("workspace");
}

static int open_workspace(const char *slot, const char *options, const char *base) {
    const char *const points[] = {"workspace", "base", "changes"};
    if (chdir(slot)) die(slot);
    for (int i = 0; i < 3; i++) umount2(points[i], MNT_DETACH); /* those of the jail before */
    if (base[0])
        mount_over(base, options);
    else if (mount("loopwright", "workspace", "tmpfs", MS_NOSUID | MS_NODEV, options))
        die("workspace");
    int fd = open("workspace", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) die("workspace");
    if (chdir("/")) die("/");
    return fd;
}

/* Only our own unreaped children are named there, so no pid can have been given to another. */
static void kill_children(void) {
    FILE *children = fopen("/proc/thread-self/children", "re");
    int pid;
    if (!children) return;
    while (fscanf(children, "%d", &pid) == 1) kill(pid, SIGKILL);
    fclose(children);
}

static void reap(void) {
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
        if (pid == jail) jail = 0;
    if (pid < 0 && is_busy) {
        is_busy = 0;
        reply('G', "", -1);
    } else if (pid == 0 && !jail) {
        kill_children();
    }
}

static void hear_of_children(void) {
    struct signalfd_siginfo caught;
    if (read(ended_children, &caught, sizeof caught) > 0) reap();
}

/* Ends the jail that there is, and waits until nothing of it is left. */
static void end_jail(void) {
    if (jail) kill(jail, SIGKILL);
    reap();
    while (is_busy) hear_of_children();
}

static void make_jail(char **words, int control, int log) {
    end_jail();
    int workspace = open_workspace(words[0], words[1], words[2]);
    reply('W', "", workspace);
    close(workspace);
    if (!strcmp(words[3], "nsjail")) {
        jail = start_nsjail(words + 4, control, log);
    } else {
        char **plan = words + 4;
        char **warm = plan + NUM_PACKAGES + 1 + 2 * atoi(plan[NUM_PACKAGES]);
        jail = start_native(plan, warm, control);
    }
    is_busy = 1;
}

/* Makes no jail of a message; the slot goes on. */
static void refuse(const char *why) {
    end_jail();
    reply('E', why, -1);
    reply('G', "", -1);
}

/* Takes as many descriptors as were given, at most NUM_GIVEN. */
static int take_given(struct msghdr *message, int *given) {
    struct cmsghdr *rights = CMSG_FIRSTHDR(message);
    int num_given = rights ? (rights->cmsg_len - CMSG_LEN(0)) / sizeof *given : 0;
    if (num_given) memcpy(given, CMSG_DATA(rights), num_given * sizeof *given);
    return num_given;
}

/* Finds the words of a message that ends with a NUL; more than MAX_WORDS when there are too many. */
static int find_words(char *next, const char *end, char **words) {
    int num_words = 0;
    for (; next < end && num_words < MAX_WORDS; next += strlen(next) + 1) words[num_words++] = next;
    words[num_words] = NULL;
    return num_words + (next < end);
}

/* Takes one message; 0 when the supervisor is gone. */
static int obey(void) {
    static char text[MAX_BYTES + 1];
    char space[CMSG_SPACE(NUM_GIVEN * sizeof(int))], *words[MAX_WORDS + 1];
    struct iovec part = {text, MAX_BYTES};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space,
                             .msg_controllen = sizeof space};
    ssize_t length = recvmsg(supervisor, &message, MSG_CMSG_CLOEXEC);
    if (length <= 0) return length < 0 && errno == EINTR;
    int given[NUM_GIVEN], num_given = take_given(&message, given);
    text[length] = 0;
    if (message.msg_flags & MSG_TRUNC)
        refuse("a message of too many bytes");
    else if (message.msg_flags & MSG_CTRUNC)
        refuse("a message with too many descriptors");
    else if (text[0] == 'K' && jail)
        kill(jail, SIGKILL);
    else if (text[0] == 'P' && num_given != NUM_GIVEN)
        refuse("a message with too few descriptors");
    else if (text[0] == 'P' && find_words(text + 1, text + length, words) > MAX_WORDS)
        refuse("a message of too many words");
    else if (text[0] == 'P')
        make_jail(words, given[0], given[1]);
    while (num_given) close(given[--num_given]);
    return 1;
}

static void serve(void) {
    sigset_t ended;
    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    sigprocmask(SIG_BLOCK, &ended, NULL);
    ended_children = signalfd(-1, &ended, SFD_CLOEXEC);
    if (ended_children < 0) die("signalfd");
    struct pollfd watched[] = {{supervisor, POLLIN, 0}, {ended_children, POLLIN, 0}};
    for (;;) {
        if (poll(watched, 2, -1) < 0) continue;
        if (watched[1].revents) hear_of_children();
        if (watched[0].revents && !obey()) return;
    }
}

/* A jail is the same, whatever the supervisor was started with. */
static void forget_supervisor(void) {
    static const unsigned long plain[4]; /* handler, flags, restorer, mask: all by default */
    for (int number = 1; number < NSIG; number++) /* the C library would keep two to itself */
        syscall(SYS_rt_sigaction, number, plain, NULL, sizeof plain[3]);
    setpriority(PRIO_PROCESS, 0, 0); /* an ordinary user may not; it stays as it is */
    umask(022);
}

int main(int argc, char **argv) {
    if (argc < 5) return 125;
    supervisor = atoi(argv[1]);
    slot_uid = atoi(argv[3]);
    is_ordinary = geteuid() != 0;
    fcntl(supervisor, F_SETFD, FD_CLOEXEC);
    forget_supervisor();
    if (prctl(PR_SET_CHILD_SUBREAPER, 1)) die("PR_SET_CHILD_SUBREAPER");
    for (int i = 0; i < atoi(argv[4]); i++) write_file(argv[5 + i], "0");
    if (is_ordinary) become_root_of_own_namespace();
    take_view(argv[2]);
    serve();
    do kill_children();
    while (wait(NULL) > 0);
    return 0;
}

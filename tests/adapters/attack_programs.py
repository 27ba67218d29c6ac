"""Hostile programs. Each tells what it got hold of, in lines "reached ...", and ends: "done"."""

PRELUDE = """
import ctypes, errno, os, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def reached(*what): print("reached", *what)
def attempt(name, deed):
    try: value = deed()
    except (OSError, ValueError, OverflowError): return
    reached(name, repr(value)[:200])
def refused(name, number, *words):
    words = [ctypes.c_void_p(word) if isinstance(word, int) else word for word in words]
    if libc.syscall(ctypes.c_long(number), *words) >= 0: reached(name)
def read(path): return open(path, "rb").read(100)
"""
END = "\nprint('done')\n"

OUTSIDE = {
    "files of the host": """
for path in ("/etc/shadow", "/etc/hostname", "/etc/machine-id", "/etc/ssl", "/root", "/home",
        "/var",
        "/run", "/sys", "/boot", "/srv", "/opt", "/mnt", "/work", "/proc/1/root",
        "/proc/self/root/root",
        "/workspace/../root", "/proc/self/fd/../root/etc/shadow"):
    attempt(path, lambda: os.listdir(path) if os.path.isdir(path) else read(path))
""",
    "parts of /proc that tell of the host": """
for name in ("kcore", "kallsyms", "keys", "cmdline", "version", "meminfo", "cpuinfo", "mounts",
        "modules", "sysrq-trigger", "sys/kernel/core_pattern", "sys/kernel/random/boot_id",
        "net/tcp",
        "net/unix", "stat", "uptime", "loadavg", "config.gz", "iomem", "timer_list", "sched_debug"):
    attempt(name, lambda: read("/proc/" + name))
pids = [name for name in os.listdir("/proc") if name.isdigit()]
if set(pids) - {"1", str(os.getpid())}: reached("processes", pids)
for name in ("environ", "mem", "maps", "fd", "cwd/x", "exe", "root", "ns/mnt", "fdinfo", "stack",
        "auxv"):
    path = "/proc/1/" + name
    attempt(path, lambda: os.listdir(path) if os.path.isdir(path) else read(path))
if b"/loopwright" in read("/proc/self/cgroup"): reached("name of its control group")
""",
    "writing": """
for path in ("/x", "/usr/x", "/bin/x", "/lib/python3.11/x.pth", "/etc/passwd",
        "/etc/ld.so.preload", "/jinit",
        "/jstrict.so", "/dev/x", "/packages/x", "/proc/self/oom_score_adj", "/proc/self/comm",
        "/proc/self/uid_map", "/proc/self/setgroups", "/proc/sys/kernel/hostname", "/proc/1/comm",
        "/proc/self/attr/current", "/proc/self/clear_refs", "/proc/self/coredump_filter"):
    attempt(path, lambda: open(path, "r+b" if os.path.exists(path) else "wb").write(b"0"))
for path in ("/jinit", "/etc/passwd", "/usr/bin/env", "/tmp", "/workspace", "/dev/null"):
    attempt("rename " + path, lambda: os.rename(path, path + "2"))
    attempt("remove " + path, lambda: os.remove(path))
for path in ("/", "/usr", "/etc", "/jinit", "/dev/null", "/dev", "/packages", "/proc"):
    attempt("mode of " + path, lambda: os.chmod(path, 0o777))
    attempt("times of " + path, lambda: os.utime(path, (1, 1)))
    attempt("attribute of " + path, lambda: os.setxattr(path, "user.x", b"1"))
for path in ("/jinit", "/usr/bin/env"):
    attempt("link to " + path, lambda: os.link(path, "/workspace/l"))
""",
    "devices": """
for name in ("tty", "ptmx", "pts", "mem", "kmem", "kmsg", "fuse", "kvm", "vda", "sda", "vsock",
        "console", "full",
        "loop-control", "net/tun", "nvidia0", "dri"):
    attempt(name, lambda: os.open("/dev/" + name, os.O_RDONLY))
for mode, number in ((0o020666, os.makedev(1, 1)), (0o060666, os.makedev(254, 0)),
        (0o020666, os.makedev(1, 3))):
    attempt("mknod", lambda: os.mknod("/workspace/node", mode, number))
import fcntl, termios
for stream in (0, 1, 2):
    for command in (0x5412, 0x541C, 0x540E, 0x5410, 0x1_0000_5412):
        if libc.ioctl(stream, ctypes.c_ulong(command), b"x") >= 0: reached("ioctl", hex(command))
""",
    "mounts and namespaces": """
text = ctypes.c_char_p
refused("mount", 165, text(b"x"), text(b"/workspace"), text(b"tmpfs"), 0, text(b""))
refused("bind", 165, text(b"/"), text(b"/workspace"), None, 4096, None)
refused("remount", 165, None, text(b"/"), None, 32, None)
refused("umount", 166, text(b"/proc"), 2)
refused("pivot_root", 155, text(b"."), text(b"."))
refused("chroot", 161, text(b"/workspace"))
for name, number in (("open_tree", 428), ("move_mount", 429), ("fsopen", 430), ("fsmount", 432),
        ("fspick", 433),
        ("mount_setattr", 442), ("statmount", 457), ("listmount", 458), ("open_tree_attr", 467)):
    refused(name, number, -100, text(b"/"), 0, None, 0)
for flags in (0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000,
        0x10020000):
    if flags != 0x80: refused("clone", 56, flags | 17, None, None, None, None)
    refused("unshare", 272, flags)
    refused("clone3", 435, ctypes.create_string_buffer(struct.pack("<8Q",
        flags, 0, 0, 0, 17, 0, 0, 0)), 64)
for name in os.listdir("/proc/self/ns"):
    refused("setns " + name, 308, os.open("/proc/self/ns/" + name, 0), 0)
    import fcntl
    attempt("parent of " + name, lambda: fcntl.ioctl(os.open("/proc/self/ns/" + name, 0), 0xB702))
refused("setns by process", 308, os.pidfd_open(1), 0x20000)
""",
    "files by handle": """
handle = ctypes.create_string_buffer(struct.pack("<Ii", 8, 1) + struct.pack("<Q", 2))
refused("open_by_handle_at", 304, os.open("/", os.O_RDONLY), handle, 0)
refused("name_to_handle_at", 303, -100, ctypes.c_char_p(b"/usr"),
        handle, ctypes.create_string_buffer(8), 0)
""",
    "privileges": """
for deed in (lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setgroups([0]),
        lambda: os.setresuid(0, 0, 0),
        lambda: os.seteuid(200001), lambda: os.nice(-1),
        lambda: os.setpriority(os.PRIO_PROCESS, 0, -5)):
    attempt("identity", deed)
import resource, shutil, subprocess
for name in ("CORE", "NOFILE", "NPROC", "FSIZE", "CPU", "STACK", "MEMLOCK", "MSGQUEUE", "RTPRIO",
        "NICE"):
    limit = getattr(resource, "RLIMIT_" + name)
    soft, hard = resource.getrlimit(limit)
    attempt("limit " + name, lambda: resource.setrlimit(limit, (hard + 1, hard + 1)))
shutil.copy("/bin/sh", "own"); os.chmod("own", 0o6755)
if subprocess.run(["./own", "-p", "-c",
        "id -u"], capture_output=True).stdout.strip() not in (b"1000", b""):
    reached("set-user-id")
status = open("/proc/self/status").read()
for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
    if int(status.split(name + ":")[1].split()[0], 16): reached(name)
if "NoNewPrivs:\\t1" not in status: reached("new privileges")
attempt("scheduler", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))
""",
    "other processors": """
try: os.sched_setaffinity(0, range(1024))
except OSError: pass
if len(os.sched_getaffinity(0)) > 1: reached("processors", os.sched_getaffinity(0))
""",
    "system calls that are not for programs": """
buffer = ctypes.create_string_buffer(4096)
text = ctypes.c_char_p
for name, number, *words in (
        ("ptrace", 101, 0, 0, 0, 0), ("attach", 101, 16, 1, 0, 0), ("seize", 101, 0x4206, 1, 0, 0),
        ("process_vm_readv", 310, 1, buffer, 1, buffer, 1, 0), ("process_vm_writev",
        311, 1, buffer, 1, buffer, 1, 0),
        ("kcmp", 312, 1, 1, 0, 0, 0), ("add_key", 248, text(b"user"), text(b"k"), text(b"v"),
        1, -3),
        ("request_key", 249, text(b"user"), text(b"k"), None, -3), ("keyctl", 250, 0, -3, 1),
        ("bpf", 321, 0, buffer, 72), ("io_uring_setup", 425, 4, buffer), ("userfaultfd", 323, 1),
        ("perf_event_open", 298, buffer, 0, -1, -1, 0), ("io_setup", 206, 8, buffer),
        ("memfd_secret", 447, 0),
        ("fanotify_init", 300, 0, 0), ("modify_ldt", 154, 0, buffer, 100), ("iopl", 172, 3),
        ("ioperm", 173, 0, 1, 1),
        ("syslog", 103, 3, buffer, 100), ("acct", 163, text(b"/workspace/x")), ("sethostname",
        170, text(b"x"), 1),
        ("clock_settime", 227, 0, buffer), ("settimeofday", 164, buffer, None), ("reboot",
        169, 0, 0, 0, 0),
        ("init_module", 175, buffer, 1, text(b"")), ("kexec_load", 246, 0, 0, None, 0),
        ("swapon", 167, text(b"x"), 0),
        ("quotactl", 179, 0, None, 0, None), ("vhangup", 153), ("personality", 135, 0x400000),
        ("personality by upper bits", 135, 0x1_0040_0000), ("mbind", 237, 0, 0, 0, None, 0, 0),
        ("move_pages", 279, 1, 0, None, None, None, 0), ("migrate_pages", 256, 1, 0, None, None),
        ("process_madvise", 440, os.pidfd_open(1), buffer, 1, 21, 0), ("process_mrelease",
        448, os.pidfd_open(1), 0),
        ("lookup_dcookie", 212, 0, buffer, 10), ("nfsservctl", 180), ("lsm_set_self_attr",
        460, 0, buffer, 0, 0),
        ("death signal", 157, 1, 9, 0, 0, 0), ("death signal by upper bits",
        157, 0x1_0000_0001, 9, 0, 0, 0)):
    refused(name, number, *words)
process = os.pidfd_open(1)
for number in range(16): refused("descriptor of process 1", 438, process, number, 0)
""",
    "the 32-bit system calls": """
import mmap
code = mmap.mmap(-1, 4096, prot=7)
code.write(b"\\xb8\\x14\\x00\\x00\\x00\\xcd\\x80\\xc3")  # mov eax, 20 (getpid); int 0x80; ret
child = os.fork()
if child == 0:
    value = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
    os._exit(0 if value > 0 else 1)
if os.waitpid(child, 0)[1] == 0: reached("int 0x80")
""",
    "sockets": """
for name, family, kind, protocol in (("packet", 17, 3, 768), ("raw", 2, 3, 1), ("raw IPv6",
        10, 3, 58),
        ("vsock", 40, 1, 0), ("crypto", 38, 5, 0), ("bluetooth", 31, 3, 1), ("CAN", 29, 3, 1),
        ("XDP", 44, 3, 0),
        ("audit", 16, 3, 9), ("netfilter", 16, 3, 12), ("uevent", 16, 3, 15), ("diag", 16, 3, 4),
        ("xfrm", 16, 3, 6),
        ("generic netlink", 16, 3, 16), ("TIPC", 30, 1, 0), ("SMC", 43, 1, 0), ("KCM", 41, 2, 0),
        ("RDS", 21, 5, 0),
        ("key", 15, 3, 2), ("PPP", 24, 2, 0), ("MCTP", 45, 2, 0), ("IPX", 4, 2, 0), ("X25",
        9, 5, 0)):
    refused(name, 41, family, kind, protocol)
    refused(name + " pair", 53, family, kind, protocol, ctypes.create_string_buffer(8))
names = {name for _, name in socket.if_nameindex()}
if names - {"lo"}: reached("interfaces", names)
for address in ("10.0.0.1", "169.254.169.254", "8.8.8.8", "255.255.255.255"):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        attempt(address, lambda: sender.sendto(b"x", (address, 53)))
""",
    "descriptors": """
for name in os.listdir("/proc/self/fd"):
    try: target = os.readlink("/proc/self/fd/" + name)
    except OSError: continue
    if int(name) > 2 and not target.startswith(("/proc/",
        "/workspace/")) or not target.startswith(("pipe:", "/")):
        reached("descriptor", name, target)
for number in range(3, 1024):
    attempt("descriptor", lambda: os.fstat(number))
""",
}
"""What a program tries to get hold of, by name."""

FORGERY = """
import os, signal
words = b"exit 0 1 1 1 0 0\\n"
for number in range(256):
    for path in (f"/proc/1/fd/{number}", f"/proc/self/fd/{number}", f"/dev/fd/{number}"):
        try: os.write(os.open(path, os.O_WRONLY | os.O_NONBLOCK), words)
        except OSError: pass
    if number != 2:
        try: os.write(number, words)
        except OSError: pass
for number in range(1, 65):
    try: os.kill(1, number)
    except OSError: pass
os._exit(77)
"""

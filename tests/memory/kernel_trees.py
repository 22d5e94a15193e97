"""Folders that look like /proc and /sys/fs/cgroup, made of real files."""

MOUNT_1 = "35 31 0:32 {shows} /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
MOUNT_2 = "41 31 0:38 {shows} /sys/fs/cgroup{under} rw,relatime - cgroup2 cgroup2 rw\n"
NO_LIMIT_1 = 9223372036854771712


def write(root, name, text):
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(str(text))


def machine(root, *, total_kb=8 << 20, available_kb=6 << 20, anonymous_kb=1 << 20):
    write(root, "proc/meminfo", f"MemTotal: {total_kb} kB\nMemAvailable: {available_kb} kB\n")
    write(root, "proc/self/status", f"Name:\tpython\nRssAnon:\t{anonymous_kb} kB\nVmSwap:\t0 kB\n")
    return root


def version_1(root, path, *, shows="/"):
    write(root, "proc/self/cgroup", f"9:name=systemd:/\n4:memory:{path}\n0::/\n")
    write(
        root, "proc/self/mountinfo", MOUNT_1.format(shows=shows) + MOUNT_2.format(shows="/", under="/unified")
    )
    return root / "sys/fs/cgroup/memory"


def version_2(root, path, *, shows="/"):
    write(root, "proc/self/cgroup", f"0::{path}\n")
    write(
        root,
        "proc/self/mountinfo",
        "1 1 0:1 / / rw - ext4 /dev/x rw\n" + MOUNT_2.format(shows=shows, under=""),
    )
    return root / "sys/fs/cgroup"


def limits(top, version, by_path):
    """Give groups their limits; None is written as the kernel writes it."""
    for path, limit in by_path.items():
        folder = path.strip("/") or "."
        if version == 1:
            write(top, f"{folder}/memory.limit_in_bytes", NO_LIMIT_1 if limit is None else limit)
        elif folder != ".":
            write(top, f"{folder}/memory.max", "max" if limit is None else limit)


def counters(folder, version, *, used=0, inactive_file=0, active_file=0, kills=0, peak=0):
    of_files = {"inactive_file": inactive_file, "active_file": active_file}
    if version == 1:
        write(folder, "memory.usage_in_bytes", used)
        told = "".join(f"total_{name} {count}\n" for name, count in of_files.items())
        write(folder, "memory.stat", f"cache 1\ninactive_file 3\n{told}")
        write(folder, "memory.oom_control", f"oom_kill_disable 0\nunder_oom 0\noom_kill {kills}\n")
        write(folder, "memory.max_usage_in_bytes", peak)
    else:
        write(folder, "memory.current", used)
        told = "".join(f"{name} {count}\n" for name, count in of_files.items())
        write(folder, "memory.stat", f"anon 1\n{told}")
        write(folder, "memory.events", f"low 0\nhigh 0\nmax 7\noom 0\noom_kill {kills}\n")
        write(folder, "memory.peak", peak)

// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <string>

#include <catch2/catch.hpp>
#include <sys/resource.h>
#include <unistd.h>

#include "larch/core/device.h"
#include "larch/core/host_memory.h"

namespace larch {
namespace {

namespace fs = std::filesystem;
constexpr size_t kMiB = size_t{1} << 20;

/// A folder that stands for the root of a machine with 8000 MiB available and no limit.
class Machine {
 public:
  Machine() : root_(fs::temp_directory_path() / ("larch-machine-" + std::to_string(getpid()))) {
    fs::remove_all(root_);
    put("proc/meminfo",
        "MemTotal:       16384000 kB\nMemFree:  100 kB\nMemAvailable:    8192000 kB\n"
        "CommitLimit:     4096000 kB\nCommitted_AS:    1024000 kB\n");
    put("proc/sys/vm/overcommit_memory", "0\n");
    put("proc/self/status",
        "Name:\tx\nVmPeak:\t  999999 kB\nVmSize:\t  102400 kB\nVmData:\t   51200 kB\n");
    limits("unlimited", "unlimited");
    put("proc/self/cgroup", "0::/\n");
    put("proc/self/mountinfo", "22 1 0:5 / /proc rw - proc proc rw\n");
  }
  ~Machine() {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  void put(const std::string& name, const std::string& text) {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }
  void limits(const std::string& data, const std::string& space) {
    put("proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max data size             " +
            data +
            "            unlimited            bytes     \n"
            "Max stack size            8388608              unlimited            bytes     \n"
            "Max address space         " +
            space + "            unlimited            bytes     \n");
  }
  HostMemory free() const { return free_host_memory(root_.string()); }
  size_t mib() const { return free().bytes / kMiB; }

 private:
  fs::path root_;
};

TEST_CASE("free memory: what is available where nothing limits it") {
  const Machine machine;
  CHECK(machine.mib() == 8000);
  CHECK(machine.free().limit == "physical memory");
}

TEST_CASE("free memory: limits of the process, less what it has") {
  Machine machine;
  machine.limits("unlimited", std::to_string(1100 * kMiB));
  CHECK(machine.mib() == 1000);
  CHECK(machine.free().limit == "ulimit -v");
  machine.limits(std::to_string(650 * kMiB), std::to_string(1100 * kMiB));
  CHECK(machine.mib() == 600);
  CHECK(machine.free().limit == "ulimit -d");
  machine.limits("unlimited", std::to_string(90 * kMiB));  // lowered below what it has
  CHECK(machine.mib() == 0);
}

TEST_CASE("free memory: a kernel that promises no more than it has") {
  Machine machine;
  machine.put("proc/sys/vm/overcommit_memory", "2\n");
  CHECK(machine.mib() == 3000);
  CHECK(machine.free().limit == "vm.overcommit_memory=2");
  machine.put("proc/sys/vm/overcommit_memory", "1\n");
  CHECK(machine.mib() == 8000);
}

TEST_CASE("free memory: control groups of version 2, and those above") {
  Machine machine;
  machine.put("proc/self/cgroup", "0::/jobs/job7/step0\n");
  machine.put("proc/self/mountinfo",
              "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n");
  const std::string top = "sys/fs/cgroup/jobs", job = top + "/job7", step = job + "/step0";
  machine.put(step + "/memory.max", "max\n");
  machine.put(step + "/memory.high", "max\n");
  machine.put(step + "/memory.current", std::to_string(100 * kMiB) + "\n");
  CHECK(machine.mib() == 8000);
  machine.put(job + "/memory.max", std::to_string(2048 * kMiB) + "\n");
  machine.put(job + "/memory.current", std::to_string(1024 * kMiB) + "\n");
  machine.put(job + "/memory.stat", "anon 5\nactive_file " + std::to_string(600 * kMiB) +
                                        "\ninactive_file " + std::to_string(24 * kMiB) + "\n");
  CHECK(machine.mib() == 1648);  // the pages of files are given back, used of late or not
  CHECK(machine.free().limit == "memory limit of the control group");
  machine.put(job + "/memory.high", std::to_string(1200 * kMiB) + "\n");
  CHECK(machine.mib() == 800);
  machine.put(top + "/memory.max", std::to_string(4000 * kMiB) + "\n");
  machine.put(top + "/memory.current", std::to_string(3990 * kMiB) + "\n");
  CHECK(machine.mib() == 10);
  machine.put(top + "/memory.current", std::to_string(4010 * kMiB) + "\n");
  CHECK(machine.mib() == 0);
}

TEST_CASE("free memory: control groups of version 1, seen from inside of a container") {
  Machine machine;
  machine.put("proc/self/cgroup",
              "9:name=systemd:/\n4:memory:/docker/abc/sub\n1:cpu,cpuacct:/docker/abc\n0::/\n");
  machine.put("proc/self/mountinfo",
              "31 2 0:7 /docker/abc /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
              "35 2 0:8 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
              "41 2 0:9 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  const std::string top = "sys/fs/cgroup/memory";
  machine.put(top + "/memory.limit_in_bytes", std::to_string(1000 * kMiB) + "\n");
  machine.put(top + "/memory.usage_in_bytes", std::to_string(300 * kMiB) + "\n");
  machine.put(top + "/memory.stat", "inactive_file 1\nactive_file 1\ntotal_inactive_file " +
                                        std::to_string(50 * kMiB) + "\ntotal_active_file " +
                                        std::to_string(40 * kMiB) + "\n");
  CHECK(machine.mib() == 790);
  machine.put(top + "/sub/memory.limit_in_bytes", "9223372036854771712\n");
  machine.put(top + "/sub/memory.usage_in_bytes", std::to_string(100 * kMiB) + "\n");
  machine.put(top + "/sub/memory.stat",
              "hierarchical_memory_limit " + std::to_string(500 * kMiB) + "\n");
  CHECK(machine.mib() == 400);  // a limit above the container, which its files do not show
}

TEST_CASE("free memory: groups beside and outside of what a mount shows count as the mount's own") {
  struct Mount {
    std::string group;     ///< that the process is in
    std::string visible;   ///< the part of the hierarchy that the mount shows
    std::string no_group;  ///< a folder that a wrong rule would take for the group's
  };
  const Mount mounts[] = {{"/docker/abcd", "/docker/abc", "cgd"},  // only the name starts alike
                          {"/../other", "/", "cg/../other"}};
  for (const Mount& mount : mounts) {
    CAPTURE(mount.group);
    Machine machine;
    machine.put("proc/self/cgroup", "0::" + mount.group + "\n");
    machine.put("proc/self/mountinfo",
                "30 23 0:26 " + mount.visible + " /cg rw - cgroup2 cgroup2 rw\n");
    machine.put("cg/memory.max", std::to_string(900 * kMiB) + "\n");
    machine.put("cg/memory.current", "0\n");
    machine.put(mount.no_group + "/memory.max", std::to_string(100 * kMiB) + "\n");
    machine.put(mount.no_group + "/memory.current", "0\n");
    CHECK(machine.mib() == 900);
  }
}

TEST_CASE("free memory: files that are missing or damaged do not limit") {
  CHECK(free_host_memory("/nowhere").bytes > 0);
  Machine machine;
  machine.put("proc/self/cgroup", "::\nx\n0:\n\n0::/a\n");
  machine.put("proc/self/mountinfo", "\n - \n30 - cgroup2\n30 23 0:26 / /cg rw - cgroup2\n");
  machine.put("cg/a/memory.max", "12x\n");
  machine.put("cg/memory.max", "\n");
  CHECK(machine.mib() == 8000);
}

#ifndef __SANITIZE_ADDRESS__  // which takes memory, and address space, of its own
TEST_CASE("free memory of the host keeps to ulimit -v, and allocations to it") {
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
  rlimit lowered = before;
  lowered.rlim_cur = size_t{6} << 30;
  REQUIRE(setrlimit(RLIMIT_AS, &lowered) == 0);
  const size_t wide = free_memory_bytes(Device::cpu());
  CHECK(wide < lowered.rlim_cur);
  CHECK_FALSE(host_memory_allows(wide + (size_t{1} << 30)));
  REQUIRE(setrlimit(RLIMIT_AS, &before) == 0);
}
#endif

}  // namespace
}  // namespace larch

// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/cases/case_loop.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <malloc.h>

#include "larch/app/failures.h"

namespace larch::cases {
namespace {

/// A process takes this much whatever the size of its images: buffers of files, stacks.
constexpr int64_t kOfNoCase = int64_t{32} << 20;

/// Returns the largest memory that the process had, in bytes; 0 if the system does not tell.
int64_t peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) * 1024;
  }
  return 0;
}

/// Lets cases start while their memory fits, and learns from peaks how much they take.
class Budget {
 public:
  explicit Budget(int64_t bytes) : bytes_(bytes), start_(peak_bytes()), seen_(start_) {}

  void enter(size_t item, const CaseSize& need) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return in_work_.empty() || held() + bytes_of(need) <= bytes_; });
    learn();
    in_work_[item] = need;
    if (in_work_.size() > 1) {
      for (const auto& [other, theirs] : in_work_) beside_.insert(other);
    }
  }
  /// Tells whether the case had others beside it.
  bool leave(size_t item) {
    const std::lock_guard lock(mutex_);
    learn();
    in_work_.erase(item);
    changed_.notify_all();
    return beside_.erase(item) > 0;
  }

 private:
  int64_t bytes_of(const CaseSize& need) const {
    return std::max(need.bytes, static_cast<int64_t>(per_voxel_ * double(need.voxels)));
  }
  int64_t held() const {
    int64_t sum = 0;
    for (const auto& [item, need] : in_work_) sum += bytes_of(need);
    return sum;
  }
  /// A peak since the last call is that of the cases that are in work now.
  void learn() {
    const int64_t peak = peak_bytes();
    if (peak <= seen_) return;
    seen_ = peak;
    int64_t voxels = 0;
    for (const auto& [item, need] : in_work_) voxels += need.voxels;
    const int64_t gained = peak - start_ - kOfNoCase;
    if (voxels > 0 && gained > 0)
      per_voxel_ = std::max(per_voxel_, double(gained) / double(voxels));
  }

  const int64_t bytes_, start_;
  int64_t seen_;
  double per_voxel_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<size_t, CaseSize> in_work_;
  std::set<size_t> beside_;
};

/// A device whose turns several cases have at a time, each with parts of it: threads of the host,
/// or eighths of a card.
class SharedDevice {
 public:
  SharedDevice(const Device& device, int threads)
      : device_(device),
        parts_(device.is_cuda() ? 8 : threads),
        free_bytes_(static_cast<int64_t>(free_memory_bytes(device))),
        free_(parts_) {}

  const Device& device() const { return device_; }
  int all_parts() const { return parts_; }
  /// Returns as many parts as an image of so many voxels keeps busy. Of a card a part is for those
  /// that it does many of in the time that one takes to be read.
  int parts_for(int64_t voxels) const {
    if (device_.is_cuda()) {
      constexpr int64_t kBytesPerVoxel = 256;  // of many classes
      const int64_t by_memory =
          parts_ * kBytesPerVoxel * voxels / std::max<int64_t>(free_bytes_, 1);
      const int by_size = voxels <= 1 << 18 ? 1 : voxels <= 1 << 20 ? 2 : voxels <= 1 << 25 ? 4 : 8;
      return static_cast<int>(std::clamp<int64_t>(by_memory + 1, by_size, parts_));
    }
    constexpr int64_t kVoxelsPerThread = 1 << 18;
    return static_cast<int>(std::clamp<int64_t>(voxels / kVoxelsPerThread, 1, parts_));
  }

  /// Waits for parts behind those who came before, so that a large case is not passed by others for
  /// ever. What is returned gives them back.
  std::shared_ptr<void> take(int parts) {
    std::unique_lock lock(mutex_);
    const uint64_t mine = came_++;
    changed_.wait(lock, [&] { return mine == served_ && parts <= free_; });
    free_ -= parts;
    ++served_;
    changed_.notify_all();
    lock.unlock();
    return {nullptr, [this, parts](void*) {
              const std::lock_guard back(mutex_);
              free_ += parts;
              changed_.notify_all();
            }};
  }

 private:
  const Device device_;
  const int parts_;
  const int64_t free_bytes_;
  int free_;
  uint64_t came_ = 0, served_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
};

class LoopRunner {
 public:
  LoopRunner(const CaseLoop& loop, const Context& context)
      : loop_(loop),
        context_(context),
        whole_(context),
        side_(context),
        threads_(case_threads(loop.count, context)),
        budget_(bound(loop.memory_bytes)) {
    whole_.stop = side_.stop = nullptr;
    whole_.progress_sink = side_.progress_sink = {};
    side_.threads = std::max(1, context.threads / std::max(1, threads_));
    devices_.emplace_back(context.device, context.threads);
    for (const Device& more : context.more_devices) devices_.emplace_back(more, context.threads);
  }

  void run() {
    std::vector<std::thread> threads;
    try {
      for (int i = 1; i < threads_; ++i) {
        SharedDevice& device = devices_[static_cast<size_t>(i) % devices_.size()];
        threads.emplace_back([this, &device] { lead(device); });
      }
    } catch (const std::system_error&) {
      // The threads that could be started do the work.
    }
    lead(devices_[0]);
    for (std::thread& thread : threads) thread.join();
    side_.threads = whole_.threads;
    for (const size_t item : again_) {
      if (!goes_on()) break;
      do_case(item, size_of(item), side_, devices_[0], /*may_repeat=*/false);
    }
    if (error_) std::rethrow_exception(error_);
  }

 private:
  /// As many as images may be read, computed and finished at a time.
  static int case_threads(size_t count, const Context& context) {
    const int threads = context.threads;
    if (threads == 1 && !context.device.is_cuda()) return 1;
    const int of_cards = 2 + 2 * static_cast<int>(context.more_devices.size());
    const int most =
        std::max(of_cards, std::clamp(threads / 2, 1, 8) + 1 + std::clamp(threads, 1, 32));
    return static_cast<int>(std::min<size_t>(count, static_cast<size_t>(most)));
  }
  static int64_t bound(int64_t memory_bytes) {
    const auto half = static_cast<int64_t>(free_memory_bytes(Device::cpu()) / 2);
    return memory_bytes > 0 ? std::min(half, memory_bytes) : half;
  }

  bool goes_on() const { return !is_over_ && !context_.stop_requested(); }

  CaseSize size_of(size_t item) const {
    try {
      return loop_.size(item);
    } catch (const std::exception&) {
      return {};  // the work finds it again, and says what is wrong
    }
  }

  /// With --memory, which bounds one case, cases have the device one at a time. All threads are
  /// those of each turn: loops side by side share them. Throws Stopped if the run is to end.
  Turn turn(SharedDevice& shared, const Device& device, int64_t voxels) {
    const bool is_alone = loop_.memory_bytes > 0;
    std::shared_ptr<void> held =
        shared.take(is_alone ? shared.all_parts() : shared.parts_for(voxels));
    context_.throw_if_stopped("stopped");
    Context context = whole_;
    context.device = device;
    return Turn(std::move(context), std::move(held));
  }

  void lead(SharedDevice& shared) {
    std::optional<Stream> own;  // work of cases side by side is not in one queue
    Context side = side_;
    try {
      side.device = own.emplace(shared.device()).device();
    } catch (...) {
      return end(std::current_exception());
    }
    while (true) {
      size_t item = 0;
      CaseSize size;
      {
        // Cases start in their order, so that a large one is not passed by others for ever.
        const std::lock_guard gate(gate_);
        if (!goes_on() || next_ == loop_.count) return;
        item = next_++;
        size = size_of(item);
        budget_.enter(item, size);
      }
      do_case(item, size, side, shared, /*may_repeat=*/true);
    }
  }

  void do_case(size_t item, const CaseSize& size, Context side, SharedDevice& shared,
               bool may_repeat) {
    side.wait_for_turn = [&, device = side.device] { return turn(shared, device, size.voxels); };
    std::exception_ptr error;
    try {
      if (goes_on()) loop_.work(item, side);
    } catch (...) {
      error = std::current_exception();
    }
    const bool was_beside = may_repeat && budget_.leave(item);
    if (error) settle(item, error, was_beside);
  }

  void settle(size_t item, const std::exception_ptr& error, bool may_repeat) {
    try {
      std::rethrow_exception(error);
    } catch (const Stopped&) {
      return;  // the caller sees the flag
    } catch (const DeviceError&) {
      return end(error);
    } catch (...) {
    }
    if (may_repeat && larch::detail::failure_of(error).code == ExitCode::kMemory) {
      const std::lock_guard lock(mutex_);
      again_.push_back(item);
      return;
    }
    try {
      if (!loop_.failed(item, error)) is_over_ = true;
    } catch (...) {
      end(std::current_exception());
    }
  }

  void end(const std::exception_ptr& error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = error;
    is_over_ = true;
  }

  const CaseLoop& loop_;
  const Context& context_;
  Context whole_, side_;
  int threads_;
  Budget budget_;
  std::deque<SharedDevice> devices_;
  std::mutex gate_, mutex_;
  size_t next_ = 0;
  std::vector<size_t> again_;
  std::exception_ptr error_;
  std::atomic<bool> is_over_{false};
};

}  // namespace

void give_memory_back(int64_t memory_bytes) {
  if (memory_bytes > 0) mallopt(M_MMAP_THRESHOLD, 1 << 20);
}

void warn_of_memory(const std::string& path, int64_t voxels, int bytes_per_voxel,
                    int64_t memory_bytes, const Context& context) {
  if (memory_bytes == 0 || voxels <= memory_bytes / bytes_per_voxel) return;
  context.warn("'" + path + "' has " + std::to_string(voxels) + " voxels: it takes more than the " +
               std::to_string(memory_bytes) + " bytes of --memory");
}

void run_case_loop(const CaseLoop& loop, const Context& context) {
  LoopRunner(loop, context).run();
}

}  // namespace larch::cases

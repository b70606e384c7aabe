// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/sidecar_commit.h"

#include <filesystem>
#include <optional>
#include <set>

#include "larch/app/existing.h"
#include "larch/app/shared_folder.h"
#include "larch/core/atomic_file.h"
#include "larch/core/error.h"

namespace larch::detail {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostSidecarBytes = size_t{256} << 20;

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// A sidecar as it was before the outputs were replaced.
struct Old {
  std::string path;
  std::optional<std::string> text;
};

void put_back(const std::vector<Old>& olds, const Context& context) {
  for (const Old& old : olds) {
    std::error_code ignored;
    fs::remove(old.path, ignored);
    if (!old.text) continue;
    try {
      FileSet file(/*replace=*/true, context);
      file.write(old.path, text_writer(*old.text));
      file.commit();
    } catch (const OutputError&) {
      // Without its sidecar the output is not taken for that of any run.
    }
  }
}

}  // namespace

void commit_with_sidecars(FileSet& files, const std::vector<Sidecar>& sidecars,
                          const std::string& app, bool replace, const Context& context) {
  Context to_the_end = context;
  to_the_end.stop = nullptr;
  FileSet first(replace, context), over_orphans(/*replace=*/true, context),
      marks(/*replace=*/true, to_the_end), last(/*replace=*/true, to_the_end);
  std::vector<Old> changed;
  for (const Sidecar& one : sidecars) {
    const bool is_replaced = one.may_hold_files ? replace : exists(one.output);
    if (one.text.empty() && !is_sidecar(one.path)) continue;
    const bool is_left_alone = is_orphan(one.path, one.output);
    // What an orphan told is of no use; another run may have put its own output there meanwhile.
    changed.push_back(
        {one.path, is_left_alone ? std::nullopt : read_untrusted(one.path, kMostSidecarBytes)});
    if (one.text.empty()) continue;
    (is_replaced     ? last
     : is_left_alone ? over_orphans
                     : first)
        .write(one.path, text_writer(one.text));
    if (is_replaced) marks.write(one.path, text_writer(sidecar_of_replaced(app, one.names)));
  }
  std::set<std::string> folders;
  first.give_names(folders);
  try {
    over_orphans.give_names(folders);
    marks.give_names(folders);
    for (const Sidecar& one : sidecars) {
      std::error_code ignored;
      if (one.text.empty() && is_sidecar(one.path)) fs::remove(one.path, ignored);
    }
    files.give_names(folders);
  } catch (...) {
    put_back(changed, to_the_end);
    throw;
  }
  last.give_names(folders);
  for (const std::string& folder : folders) flush_folder(folder);
}

}  // namespace larch::detail

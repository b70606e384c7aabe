// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "larch/app/outputs/outputs.h"
#include "larch/data/mesh.h"
#include "larch/files/file.h"
#include "larch/io/image/image.h"

// The files of a case with an image and labels.
namespace larch::pipeline {

inline void add_text(const std::string& name, const std::string& text, Outputs& outputs) {
  outputs.add(name, [text](const std::string& path) { write_file(path, text); });
}

/// A case (such as phantom::OrgansCase) that is made when it is first asked for.
template <class Made>
std::function<Made&()> lazily(const std::function<Made()>& make) {
  return [make, made = std::make_shared<Made>()]() -> Made& {
    if (made->labels.empty()) *made = make();
    return *made;
  };
}

template <class Made>
void add_image(const std::string& name, const std::function<Made&()>& made, int threads,
               Outputs& outputs) {
  outputs.add(name, [=](const std::string& path) { write_volume(path, made().image, threads); });
}

/// The last file of a case, which is let go then.
template <class Made>
void add_labels(const std::string& name, const std::function<Made&()>& made,
                const LabelTable& table, int threads, Outputs& outputs) {
  outputs.add(name, [=](const std::string& path) {
    write_labelmap(path, made().labels, table, threads);
    made() = {};
  });
}

}  // namespace larch::pipeline

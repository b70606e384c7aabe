// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/samples/head_files.h"

#include <memory>
#include <string>

#include "larch/files/file.h"
#include "larch/io/image/image.h"
#include "larch/pipeline/samples/sample_files.h"

namespace larch::pipeline {
namespace {

std::string file_name(const HeadRequest& request, const std::string& folder, int number) {
  return folder + "/" + sample_case_name(number) + "." + request.format;
}

std::string cases_tsv(const HeadRequest& request) {
  std::string text = "image\treference\n";
  for (int i = 0; i < request.cases; ++i) {
    text += file_name(request, "images", i) + "\t" + file_name(request, "labels", i) + "\n";
  }
  return text;
}

void add_case(const HeadRequest& request, int number, const Context& context, Outputs& outputs) {
  const auto made = std::make_shared<phantom::HeadCase>();
  const auto make = [=, config = request.config, seed = context.seed, threads = context.threads] {
    if (made->image.empty()) *made = phantom::make_head(config, seed, number, threads);
  };
  outputs.add(in_folder(request.folder, file_name(request, "images", number)),
              [=, threads = context.threads](const std::string& path) {
                make();
                write_volume(path, made->image, threads);
              });
  outputs.add(in_folder(request.folder, file_name(request, "labels", number)),
              [=, threads = context.threads](const std::string& path) {
                make();
                write_labelmap(path, made->labels, phantom::head_label_table(), threads);
                *made = {};
              });
}

}  // namespace

void check(const HeadRequest& request) {
  require_image_extension("case." + request.format);
}

Outputs make_heads(const HeadRequest& request, const Context& context) {
  const auto folders =
      make_folders({in_folder(request.folder, "images"), in_folder(request.folder, "labels")});
  Outputs outputs;
  for (int i = 0; i < request.cases; ++i) add_case(request, i, context, outputs);
  // The writers hold the folders, so that these outlive the run.
  outputs.add(
      in_folder(request.folder, "cases.tsv"),
      [text = cases_tsv(request), folders](const std::string& path) { write_file(path, text); });
  outputs.add(in_folder(request.folder, "labels.tsv"), [](const std::string& path) {
    write_label_table(path, phantom::head_label_table());
  });
  return outputs.metric("cases", request.cases);
}

}  // namespace larch::pipeline

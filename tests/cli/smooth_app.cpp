// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// A whole program over cases, for the tests of what all of them have: it smooths an image.
#include "larch/cases/case_program.h"
#include "larch/picture/qc.h"

using namespace larch;

struct Config {
  int passes = 1;
  template <class F>
  void fields(F&& f) {
    f(Field{"passes", passes, "how often neighbours along x are averaged", 1, 1000000});
  }
};
constexpr cases::Product kProducts[] = {
    {"output,o", "image", ".nii.gz", PathRole::kOutputImage, "the smoothed image"},
    {"picture", "picture", ".png", PathRole::kOutputPicture, "three slices of it (.png)"}};
struct Options {
  cases::Images images{.products = kProducts};
  Config config;
  template <class F>
  void fields(F&& f) {
    images.fields(f);
  }
};

static Outputs smooth(const cases::CaseJob& c, const Options& o, const cases::Nothing&) {
  const auto image = std::make_shared<Volume<float>>(read_volume<float>(c.row.image, c.read));
  const Turn turn = c.context().turn();
  for (int pass = 0; pass < o.config.passes; ++pass) {
    for (int64_t i = 1; i < image->voxels(); ++i) (*image)[i] = ((*image)[i - 1] + (*image)[i]) / 2;
  }
  Outputs outputs;
  outputs.metric("corner", (*image)[image->voxels() - 1]);
  outputs.add(c.file("output"), [=](const std::string& path) { write_volume(path, *image); });
  outputs.add(c.file("picture"), [=](const std::string& path) {
    write_png(path, picture::qc_picture(*image, LabelVolume(image->grid())));
  });
  return (*image)[0] > 0 ? outputs : outputs.status("rejected", "the first voxel is not positive");
}

int main(int argc, char** argv) {
  const cases::CaseProgram<Options> program{.process = smooth, .figures = {"corner"}};
  return cases::run_case_app({"smooth-app", "Smooth an image."}, argc, argv, program);
}

// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
//
// ITK's ThresholdSegmentationLevelSetImageFilter beside levelset-segment, for
// scripts/levelset-accuracy: same window, weight and spheres, lengths in voxels. Every 100
// iterations it prints iterations, seconds in the filter, Dice, voxels inside, and how many voxels
// have another side than at the last check, as a line of JSON. It stops at the first check that
// reaches the wanted Dice, or that is not better than the last one; with "rest" in place of the
// Dice at the first check in which at most one voxel in 100 000 of those inside has changed its
// side. Voxels where the truth is 255 do not count in the Dice.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <itkCommand.h>
#include <itkImage.h>
#include <itkImageFileReader.h>
#include <itkImageRegionConstIterator.h>
#include <itkImageRegionIteratorWithIndex.h>
#include <itkNiftiImageIO.h>
#include <itkThresholdSegmentationLevelSetImageFilter.h>

namespace {

using FloatImage = itk::Image<float, 3>;
using LabelImage = itk::Image<unsigned char, 3>;
using Filter = itk::ThresholdSegmentationLevelSetImageFilter<FloatImage, FloatImage>;
using Clock = std::chrono::steady_clock;

constexpr unsigned kCheckEvery = 100, kMaximumIterations = 10000;
constexpr unsigned char kNotCompared = 255;

template <class Image>
typename Image::Pointer read(const std::string& path) {
  const auto reader = itk::ImageFileReader<Image>::New();
  reader->SetImageIO(itk::NiftiImageIO::New());
  reader->SetFileName(path);
  reader->Update();
  return reader->GetOutput();
}

/// A level set of spheres in voxels, negative inside.
FloatImage::Pointer spheres_of(const FloatImage* image,
                               const std::vector<std::array<double, 4>>& spheres) {
  auto phi = FloatImage::New();
  phi->CopyInformation(image);
  phi->SetRegions(image->GetLargestPossibleRegion());
  phi->Allocate();
  for (itk::ImageRegionIteratorWithIndex<FloatImage> at(phi, phi->GetLargestPossibleRegion());
       !at.IsAtEnd(); ++at) {
    double least = 1e9;
    for (const auto& [x, y, z, radius] : spheres) {
      const auto& i = at.GetIndex();
      least =
          std::min(least, std::hypot(static_cast<double>(i[0]) - x, static_cast<double>(i[1]) - y,
                                     static_cast<double>(i[2]) - z) -
                              radius);
    }
    at.Set(static_cast<float>(least));
  }
  return phi;
}

struct Look {
  double dice = 0;
  long long inside = 0, flips = 0;
};

/// `sides`: which voxels were inside at the last look; afterwards, which are now.
Look look(const FloatImage* phi, const LabelImage* truth, std::vector<char>& sides) {
  itk::ImageRegionConstIterator<FloatImage> a(phi, phi->GetLargestPossibleRegion());
  itk::ImageRegionConstIterator<LabelImage> b(truth, truth->GetLargestPossibleRegion());
  sides.resize(phi->GetLargestPossibleRegion().GetNumberOfPixels(), 0);
  Look found;
  long long both = 0, sum = 0;
  for (size_t i = 0; !a.IsAtEnd(); ++a, ++b, ++i) {
    const bool inside = a.Get() < 0, wanted = b.Get() != 0, counts = b.Get() != kNotCompared;
    both += counts && inside && wanted;
    sum += counts ? int{inside} + int{wanted} : 0;
    found.inside += inside;
    found.flips += inside != (sides[i] != 0);
    sides[i] = static_cast<char>(inside);
  }
  found.dice = 2.0 * static_cast<double>(both) / static_cast<double>(std::max(1LL, sum));
  return found;
}

/// Looks at the filter every 100 iterations; the seconds of looking do not count.
class Checks : public itk::Command {
 public:
  using Self = Checks;
  using Pointer = itk::SmartPointer<Self>;
  itkNewMacro(Self);
  const LabelImage* truth = nullptr;
  bool until_rest = false;
  double wanted = 1, before = 0;
  std::vector<char> sides{};
  Clock::duration looking{};
  Clock::time_point started = Clock::now();

  void Execute(itk::Object* caller, const itk::EventObject&) override {
    auto* filter = dynamic_cast<Filter*>(caller);
    const auto iterations = filter->GetElapsedIterations();
    if (iterations == 0 || iterations % kCheckEvery != 0) return;
    const auto now = Clock::now();
    const Look found = look(filter->GetOutput(), truth, sides);
    const double seconds = std::chrono::duration<double>(now - started - looking).count();
    std::printf(
        "{\"iterations\": %u, \"seconds\": %.3f, \"dice\": %.4f, \"inside\": %lld, "
        "\"changed_sides\": %lld, \"rms_change\": %.6f}\n",
        static_cast<unsigned>(iterations), seconds, found.dice, found.inside, found.flips,
        filter->GetRMSChange());
    std::fflush(stdout);
    const bool is_last = until_rest ? found.flips * 100000 <= found.inside
                                    : found.dice >= wanted || found.dice <= before;
    if (is_last) filter->SetNumberOfIterations(iterations);
    before = found.dice;
    looking += Clock::now() - now;
  }
  void Execute(const itk::Object*, const itk::EventObject&) override {}
};

int run(const std::vector<std::string>& words) {
  const auto number = [&](size_t k) { return std::stod(words.at(k)); };
  const auto image = read<FloatImage>(words.at(0));
  const auto truth = read<LabelImage>(words.at(1));
  const double lower = number(2), upper = number(3), weight = number(4);
  std::vector<std::array<double, 4>> spheres;
  for (size_t k = 6; k + 3 < words.size(); k += 4) {
    spheres.push_back({number(k), number(k + 1), number(k + 2), number(k + 3)});
  }
  const auto filter = Filter::New();
  filter->SetInput(spheres_of(image, spheres));
  filter->SetFeatureImage(image);
  filter->SetLowerThreshold(static_cast<float>(lower));
  filter->SetUpperThreshold(static_cast<float>(upper));
  // ITK's speed is the same tent with the height (upper - lower) / 2.
  filter->SetPropagationScaling(static_cast<float>((1 - weight) / (0.5 * (upper - lower))));
  filter->SetCurvatureScaling(static_cast<float>(weight));
  filter->SetAdvectionScaling(0);
  filter->SetIsoSurfaceValue(0);
  filter->SetUseImageSpacing(false);  // curvature in 1 / voxel, as that of levelset-segment
  filter->SetMaximumRMSError(0);
  filter->SetNumberOfIterations(kMaximumIterations);
  const auto checks = Checks::New();
  checks->truth = truth;
  checks->until_rest = words.at(5) == "rest";
  if (!checks->until_rest) checks->wanted = number(5);
  checks->started = Clock::now();
  filter->AddObserver(itk::IterationEvent(), checks);
  filter->Update();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 11 || (argc - 7) % 4 != 0) {
    std::fprintf(
        stderr,
        "usage: %s IMAGE TRUTH LOWER UPPER CURVATURE-WEIGHT DICE|rest I J K RADIUS [I J K RADIUS "
        "...]\n",
        argv[0]);
    return 2;
  }
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "itk-threshold-level-set: %s\n", error.what());
    return 1;
  }
}

// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/cases/images.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "larch/cases/case_folder.h"
#include "larch/config/text.h"
#include "larch/core/error.h"
#include "larch/core/text.h"
#include "larch/files/atomic_file.h"
#include "larch/files/file.h"
#include "larch/io/mesh/mesh_io.h"

namespace larch::cases {
namespace {

bool is_image(PathRole kind) {
  return kind == PathRole::kOutputImage || kind == PathRole::kOutputLabelmap;
}

/// `ending` with `format` in place of `usual` at its end.
std::string with_format(std::string ending, const std::string& usual, const std::string& format) {
  if (!ending.ends_with("." + usual)) return ending;
  return ending.replace(ending.size() - usual.size(), usual.size(), format);
}

}  // namespace

ReadOptions Reading::read_options(const Context& context) const {
  ReadOptions read;
  read.nan_value = nan_value;
  read.allow = allow;
  read.has_frame_flag = false;
  read.digest = context.digest_sink;
  read.warn = [&context](const std::string& text) { context.warn(text); };
  return read;
}

void ImageList::check() const {
  if (list && dataset) throw UsageError("give either --list or --dataset; see --help");
  if (dataset_path().empty() && !channel.empty()) {
    throw UsageError("--channel goes with --dataset");
  }
}

const std::string& ImageList::dataset_path() const {
  const bool is_listed = !dataset && list && is_file(dataset_file_of(list));
  return is_listed ? list : dataset;
}

std::vector<Case> ImageList::select(const CaseColumns& columns, ReadOptions& read,
                                    const std::vector<std::string>& carried) const {
  const std::string& data_path = dataset_path();
  if (data_path.empty()) {
    std::vector<Case> listed =
        is_folder(list) ? read_case_folder(list, columns, part == DatasetPart::kTraining, read.warn)
                        : read_case_list(list, columns);
    warn_of_unread_columns(list, listed, columns, carried, read);
    return listed;
  }
  const Dataset data = read_dataset(data_path, part);
  for (const std::string& warning : data.warnings) {
    if (read.warn) read.warn(warning);
  }
  if (channel.empty() && data.channels.size() > 1 &&
      std::ranges::count(columns.more, "image2", &CaseColumn::name) > 0) {
    return all_channels(data);
  }
  OneChannel selected = one_channel(data, channel);
  if (selected.frame && read.frame) {
    throw UsageError(
        "--frame: the channels of '" + data_path +
        "' are the volumes of its files, and --channel chooses one; leave --frame out");
  }
  if (selected.frame) read.frame = selected.frame;
  return std::move(selected.cases);
}

std::vector<std::string> ImageList::notes() const {
  if (dataset_path().empty()) return {};
  const Dataset data = read_dataset(dataset_path(), part);
  std::vector<std::string> notes;
  if (!data.labels.empty()) {
    notes.push_back("labels of the data set: " + labels_text(data.labels));
  }
  if (data.channels.size() > 1) {
    notes.push_back("channel " + channel + " of " + std::to_string(data.channels.size()));
  }
  return notes;
}

std::string Images::flag_name(const Product& product) {
  const std::string flag = product.flag;
  return flag.substr(0, flag.find(','));
}

bool Images::has(PathRole kind) const {
  return std::ranges::count(products, kind, &Product::kind) > 0;
}

config::Node Images::product_flag(size_t i) {
  config::Node node = config::describe(paths[i]);
  node.key = products[i].flag;
  node.help = products[i].help;
  node.path = products[i].kind;
  node.endings = products[i].ending;
  return node;
}

/// Returns a list of words, each the `write` of a product.
config::Node Images::write_flag() {
  const auto word = [products = products](std::string& value) {
    config::Node node = config::describe(value);
    node.kind = config::Kind::kEnum;
    for (const Product& product : products) node.choices.emplace_back(product.write);
    return node;
  };
  config::Node node = config::describe(write);
  node.key = "write";
  node.help = std::string("with --list: what to write for each image (default ") +
              products.front().write + ")";
  node.has_effect = false;
  node.of_lists = true;
  node.at = [this, word](size_t i) { return word(write[i]); };
  node.prototype = [word, first = std::string(products.front().write)] {
    const auto element = std::make_shared<std::string>(first);
    config::Node one = word(*element);
    one.owner = element;
    return one;
  };
  node.resize = [this](size_t count) { write.assign(count, products.front().write); };
  return node;
}

void Images::check(const GivenFlags& given) const {
  if (is_list() && (input || (list.list && list.dataset))) {
    throw UsageError("give one of --input, --list and --dataset");
  }
  list.check();
  if (part[0] > part[1]) throw UsageError("--part K,N: there is no part K of N; give 1,N to N,N");
  if (list.dataset_path().empty() && list.part != DatasetPart::kTest) {
    throw UsageError("--dataset-part goes with --dataset");
  }
  if (!is_list()) {
    if (!input) throw UsageError("--input is missing; give it, or --list for many images");
    if (output_dir) throw UsageError("--output-dir goes with --list; give --output");
    // 3D Slicer gives every flag, so that one with its default asks for nothing.
    for (const auto& [is_usual, flag] :
         {std::pair(write.size() == 1 && write[0] == products.front().write, "--write"),
          std::pair(format == default_format, "--format"),
          std::pair(mesh_format == default_mesh_format, "--mesh-format"),
          std::pair(carry.empty(), "--carry"), std::pair(part[1] == 1, "--part")}) {
      if (!is_usual) throw UsageError(std::string(flag) + " goes with --list; leave it out");
    }
    return check_files(files());
  }
  if (!output_dir) throw UsageError("--output-dir is missing: the folder for the results");
  if (is_folder(list.list) && resolved_name(list.list) == resolved_name(output_dir)) {
    throw UsageError("--output-dir is the folder of --list, whose images the results would be");
  }
  if (!series.empty()) {
    throw UsageError("--series is for one image; give the list a column 'series'");
  }
  for (const Product& product : products) {
    const std::string flag = "--" + flag_name(product);
    if (given.has(flag)) {
      throw UsageError(flag + " is for one image; with --list give --output-dir and --write");
    }
  }
  check_files(files_of("case"));
}

void Images::check_files(const std::vector<CaseOutput>& files) const {
  if (files.empty()) {
    std::string flags;
    for (const Product& product : products) flags += " --" + flag_name(product);
    throw UsageError("nothing to write: give at least one of" + flags);
  }
  for (const Product& product : products) {
    const std::string flag = flag_name(product), file = file_of(files, flag);
    if (file.empty()) continue;
    const bool is_segmentation =
        product.kind == PathRole::kOutputLabelmap && file_extension(file) == ".dcm";
    if (is_image(product.kind) && !are_sequences && !is_segmentation) require_image_extension(file);
    const std::string ending = file_extension(file);
    if (product.kind == PathRole::kOutputImage && ending == ".seg.nrrd") {
      throw UsageError("--" + flag + ": '" + file +
                       "': .seg.nrrd is for label maps; end the name with .nrrd");
    }
    if (product.kind == PathRole::kOutputColours && ending != ".ctbl" && ending != ".tsv") {
      throw UsageError("--" + flag + ": '" + file + "' ends neither in .ctbl nor in .tsv");
    }
    if (product.kind == PathRole::kOutputMesh) require_mesh_extension(file);
    if (product.kind == PathRole::kOutputPicture) require_png_extension(file, "--" + flag);
  }
}

std::vector<CaseOutput> Images::files() const {
  std::vector<CaseOutput> files;
  for (size_t i = 0; i < products.size(); ++i) {
    if (!paths[i].empty()) files.push_back({paths[i], flag_name(products[i])});
  }
  return files;
}

std::vector<CaseOutput> Images::files_of(const std::string& id) const {
  const std::string folder = output_dir.path;
  const std::string stem = folder + (folder.ends_with('/') ? "" : "/") + id;
  std::vector<CaseOutput> files;
  for (const Product& product : products) {
    if (std::find(write.begin(), write.end(), product.write) == write.end()) continue;
    std::string ending = product.ending;
    // Beside segmentations other images stay what they are.
    const bool holds = are_sequences || product.kind == PathRole::kOutputLabelmap ||
                       file_extension("x." + format) != ".dcm";
    if (is_image(product.kind) && holds) {
      const bool is_plain = product.kind == PathRole::kOutputImage && format == "seg.nrrd";
      ending = with_format(ending, default_format, is_plain ? "nrrd" : format);
    }
    if (product.kind == PathRole::kOutputMesh) {
      ending = with_format(ending, default_mesh_format, mesh_format);
    }
    files.push_back({stem + ending, flag_name(product)});
  }
  return files;
}

std::vector<std::string> Images::companions(const std::vector<CaseOutput>& files) const {
  std::vector<std::string> companions;
  for (const Product& product : products) {
    const std::string file = file_of(files, flag_name(product));
    if (product.companion == nullptr || file.empty()) continue;
    companions.push_back(companion_of(file, product.companion));
  }
  return companions;
}

ReadOptions Images::read_options(const Context& context) const {
  ReadOptions read = reading.read_options(context);
  read.series_uid = series;
  read.frame = frame;
  read.has_frame_flag = !are_sequences;
  return read;
}

std::string file_of(const std::vector<CaseOutput>& files, const std::string& flag) {
  const auto found = std::ranges::find(files, flag, &CaseOutput::role);
  return found == files.end() ? "" : found->path;
}

ImageInfo probe_one_volume(const std::string& path, const ReadOptions& read) {
  ImageInfo info = probe_image(path, read);
  if (info.frames > 1) {
    throw InputError("'" + path + "' has " + std::to_string(info.frames) +
                     " volumes along a fourth dimension, of which one is needed; " +
                     (read.has_frame_flag ? "choose it with --frame, or " : "") +
                     "write it to a file of its own");
  }
  const std::string ending = file_extension(path);
  const bool picture = ending == ".png" || ending == ".jpg" || ending == ".jpeg" ||
                       ending == ".tif" || ending == ".tiff";
  if (info.components > 1 && !picture) {
    throw InputError("'" + path + "' has " + std::to_string(info.components) +
                     " values per voxel; give an image with one channel");
  }
  return info;
}

void require_same_grid(const std::string& path, const Grid& grid, const std::string& other,
                       const Grid& grid_of_other) {
  require_on_grid("'" + path + "'", grid, "'" + other + "'", grid_of_other);
}

std::vector<RunInput> detached_inputs(const std::string& role, const std::string& image,
                                      const std::string& of_case) {
  std::vector<RunInput> inputs;
  if (image.empty()) return inputs;
  for (const std::string& file : detached_files(image)) {
    inputs.push_back({role + " data", file, of_case});
  }
  return inputs;
}

std::vector<RunInput> image_inputs(const std::string& role, const std::string& image,
                                   const std::string& of_case) {
  std::vector<RunInput> inputs = detached_inputs(role, image, of_case);
  if (!image.empty()) inputs.insert(inputs.begin(), {role, image, of_case});
  return inputs;
}

std::vector<RunInput> image_inputs(const std::string& role, const Case& c,
                                   const std::string& of_case) {
  if (c.files.empty()) return image_inputs(role, c.image, of_case);
  std::vector<RunInput> inputs;
  for (const std::string& file : c.files) inputs.push_back({role, file, of_case});
  return inputs;
}

std::string companion_of(const std::string& path, const std::string& ending) {
  return path.substr(0, path.size() - file_extension(path).size()) + ending;
}

ReadOptions options_of_case(const Case& c, ReadOptions read) {
  const auto cell = c.further.find(kSeriesColumn);
  if (cell != c.further.end() && cell->second != "n/a") read.series_uid = cell->second;
  return read;
}

ListedInputs inputs_of_cases(const std::vector<Case>& cases, const CaseColumns& columns,
                             bool order_matters) {
  ListedInputs listed{{}, order_matters};
  for (const Case& c : cases) {
    std::vector<std::pair<std::string, std::string>> files{{columns.label, c.label}};
    for (const CaseColumn& column : columns.more) {
      const auto cell = c.further.find(column.name);
      if (column.is_file && cell != c.further.end()) files.push_back(*cell);
    }
    const std::string series = options_of_case(c, {}).series_uid;
    if (!series.empty()) listed.inputs.push_back({kSeriesColumn, "", c.id, series});
    std::ranges::move(image_inputs(columns.image, c, c.id), std::back_inserter(listed.inputs));
    for (const auto& [role, path] : files) {
      std::ranges::move(image_inputs(role, path, c.id), std::back_inserter(listed.inputs));
    }
  }
  return listed;
}

void warn_of_unread_columns(const std::string& list, const std::vector<Case>& cases,
                            const CaseColumns& columns, const std::vector<std::string>& carried,
                            const ReadOptions& read) {
  if (!read.warn) return;
  // A list of the training serves detection as well, where these are passed over as labels are.
  constexpr std::array<const char*, 2> kOfTraining{"poses", "group"};
  std::vector<std::string> known{columns.image, columns.label}, unread;
  for (const CaseColumn& column : columns.more) known.push_back(column.name);
  for (const auto& [column, cell] : cases.front().further) {
    const auto readers = std::ranges::count(kOfTraining, column) +
                         std::ranges::count(known, column) + std::ranges::count(carried, column);
    if (readers == 0) unread.push_back("'" + column + "'");
  }
  if (unread.empty()) return;
  read.warn("'" + list + "': nobody reads " + config::join(unread) +
            "; the columns that are read here are " + config::join(known) + " and id");
}

std::string size_cell(const Grid& grid) {
  if (grid.size.x == 0) return "n/a";  // of an image that cannot be read
  return formatted("%dx%dx%d", grid.size.x, grid.size.y, grid.size.z);
}

std::string spacing_cell(const Grid& grid) {
  if (grid.size.x == 0) return "n/a";
  return formatted("%.4gx%.4gx%.4g", grid.spacing_mm.x, grid.spacing_mm.y, grid.spacing_mm.z);
}

}  // namespace larch::cases

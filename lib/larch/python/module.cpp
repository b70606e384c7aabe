// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// The Python module larch: the doors, from arrays of numpy to arrays and dicts.
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <future>
#include <mutex>
#include <numeric>
#include <thread>

#include "larch_build.h"
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include "larch/angiography.h"
#include "larch/boundary.h"
#include "larch/config/config.h"
#include "larch/detect.h"
#include "larch/evaluate.h"
#include "larch/image.h"
#include "larch/levelset.h"
#include "larch/opened_model.h"
#include "larch/poses.h"
#include "larch/train.h"

namespace py = pybind11;

namespace larch::python {

/// The world of affines, meshes and poses: x and y run to the right and to the front, as nibabel
/// has them, or to the left and to the back, as DICOM has them.
enum class Frame { kRas, kLps };
constexpr auto enum_names(Frame*) {
  return std::to_array<EnumName<Frame>>({{Frame::kRas, "RAS"}, {Frame::kLps, "LPS"}});
}
enum class Trained { kVoxels, kNetwork, kBoundary };
constexpr auto enum_names(Trained*) {
  return std::to_array<EnumName<Trained>>(
      {{Trained::kVoxels, "voxels"}, {Trained::kNetwork, "hdn"}, {Trained::kBoundary, "boundary"}});
}

namespace {

using namespace py::literals;
using In = const py::object&;
using Path = const std::filesystem::path&;
using Numbers = std::vector<std::vector<double>>;

// Arrays and dicts.

/// Returns the array [x, y] or [x, y, z] of numbers that an object is.
py::array array_in(In from, const std::string& name) {
  py::array array = py::array::ensure(from);
  const bool is_image = array && (array.ndim() == 2 || array.ndim() == 3) && array.size() > 0;
  if (!is_image || std::string("biuf").find(array.dtype().kind()) == std::string::npos) {
    throw UsageError(name + ": an array [x, y, z] or [x, y] of numbers is needed");
  }
  return array;
}

/// Returns an array over memory that it keeps; the first axis is the fastest. None where there is
/// nothing.
template <class C>
py::object array_over(C values, const std::vector<int64_t>& shape) {
  if (values.begin() == values.end()) return py::none();
  auto* kept = new C(std::move(values));
  using T = std::remove_reference_t<decltype(*kept->data())>;
  const py::capsule owner(kept, [](void* p) { delete static_cast<C*>(p); });
  return py::array_t<T, py::array::f_style>(shape, kept->data(), owner);
}
template <class T>
py::object array_of(Volume<T>&& volume) {
  const Vec3i size = volume.size();
  return array_over(std::move(volume), {size.x, size.y, size.z});
}
/// Returns a list of f of each.
template <class C, class F>
py::list list_of(C&& values, const F& f) {
  py::list list;
  for (auto& value : values) list.append(f(value));
  return list;
}
template <class C>
py::dict dict_of(const C& pairs) {
  py::dict out;
  for (const auto& [name, value] : pairs) out[py::str(name)] = value;
  return out;
}
py::object number_of(double value) {
  return std::isfinite(value) ? py::object(py::float_(value)) : py::none();
}

/// As JSON, through Python's own writer; arrays and numbers of numpy become lists and numbers.
config::Json json_of(In value, const std::string& source) {
  const py::cpp_function plain([](In other) { return other.attr("tolist")(); });
  const py::object text = py::module_::import("json").attr("dumps")(value, "default"_a = plain);
  return config::parse(text.cast<std::string>(), source);
}

// Calls.

/// The turn of a job among those of other threads of Python.
Turn next_turn(const Context& whole) {
  static std::mutex turns;
  std::unique_lock lock(turns, std::try_to_lock);
  while (!lock.owns_lock()) {
    whole.throw_if_stopped("stopped before its turn");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    lock.try_lock();
  }
  return Turn(whole, std::make_shared<std::unique_lock<std::mutex>>(std::move(lock)));
}

/// To the logger "larch" of Python.
void log(LogLevel level, std::string_view text) {
  const py::gil_scoped_acquire held;
  const int number = 40 - 10 * static_cast<int>(level);  // logging.ERROR is 40, DEBUG 10
  py::module_::import("logging").attr("getLogger")("larch").attr("log")(number, "%s", text);
}

/// Holds what the calls of all functions have.
struct Call {
  Frame frame = Frame::kRas;
  int code = 1, threads = 0;
  std::string device = "auto";
  uint64_t seed = 0;

  template <class F>
  void fields(F&& f) {
    f(Field{"frame", frame, "of affines, meshes and poses: RAS or LPS"},
      Field{"code", code, "of affines in NIfTI: 1 scanner, 2 aligned, ...", 0, 5},
      Field{"threads", threads, "0: as many as there are", 0, 4096});
  }
  double sign(int axis) const { return frame == Frame::kRas && axis < 2 ? -1 : 1; }
  int thread_count() const {
    return threads > 0 ? threads : static_cast<int>(std::thread::hardware_concurrency());
  }

  /// Works in a thread of its own, while this one lets go of Python and looks for signals: an
  /// exception of their handlers, such as KeyboardInterrupt, stops the work.
  template <class Work>
  auto run(const Device& on, const Work& work) const {
    std::atomic<int> stop = 0;
    Context whole{on, thread_count(), seed, log};
    whole.stop = &stop;
    Context context = whole;
    context.wait_for_turn = [&] { return next_turn(whole); };
    auto result = std::async(std::launch::async, [&] { return work(std::as_const(context)); });
    std::optional<py::error_already_set> interrupt;
    const py::gil_scoped_release released;
    while (result.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) {
      const py::gil_scoped_acquire held;
      if (interrupt || PyErr_CheckSignals() == 0) continue;
      interrupt.emplace();
      stop = static_cast<int>(ExitCode::kInterrupted);
    }
    if (interrupt) throw py::error_already_set(*interrupt);
    return result.get();
  }

  /// Without an affine one for indices.
  Grid grid(const py::array& array, In affine) const {
    Grid grid;
    for (int axis = 0; axis < 3; ++axis) {
      grid.size[axis] = axis < array.ndim() ? static_cast<int32_t>(array.shape(axis)) : 1;
    }
    if (affine.is_none()) return grid;
    grid.frame = static_cast<WorldFrame>(code);
    const auto m = py::array_t<double, py::array::forcecast>::ensure(affine);
    if (!m || m.ndim() != 2 || m.shape(0) != 4 || m.shape(1) != 4) {
      throw UsageError("affine: an array of 4x4 numbers is needed");
    }
    for (int axis = 0; axis < 3; ++axis) {
      grid.spacing_mm[axis] = norm(Vec3d{m.at(0, axis), m.at(1, axis), m.at(2, axis)});
      for (int row = 0; row < 3; ++row) {
        grid.direction.m[row][axis] = sign(row) * (m.at(row, axis) / grid.spacing_mm[axis]) + 0.0;
      }
      grid.origin_mm[axis] = sign(axis) * m.at(axis, 3) + 0.0;
    }
    const bool is_near = norm(grid.origin_mm) < kFarthestMm && norm(grid.spacing_mm) < kFarthestMm;
    if (std::abs(determinant(grid.direction)) > 1e-6 && is_near) return grid;
    throw InputError("affine: it cannot be inverted, or leads too far away");
  }
  py::array_t<double> affine(const Grid& grid) const {
    auto affine = py::module_::import("numpy").attr("eye")(4).cast<py::array_t<double>>();
    for (int row = 0; row < 3; ++row) {
      for (int axis = 0; axis < 3; ++axis) {
        // What is a number of four bytes but for its rounding is that number: a NIfTI file has it.
        const double value = sign(row) * grid.direction.m[row][axis] * grid.spacing_mm[axis];
        const double near = static_cast<float>(value);
        const bool is_near = std::abs(near - value) <= 4e-16 * std::abs(value);
        affine.mutable_at(row, axis) = (is_near ? near : value) + 0.0;
      }
      affine.mutable_at(row, 3) = sign(row) * grid.origin_mm[row] + 0.0;
    }
    return affine;
  }

  /// Returns a copy of an array. Throws InputError for a value that T does not hold, and, unless
  /// `any`, for numbers that are not finite.
  template <class T>
  Volume<T> volume(In from, In affine, const std::string& name, bool any = false) const {
    const py::array given = array_in(from, name);
    const py::array_t<T, py::array::f_style | py::array::forcecast> array(given);
    if (std::is_integral_v<T> && !array.attr("__eq__")(given).attr("all")().template cast<bool>()) {
      throw InputError(name + ": it has values that are not whole numbers, or out of range");
    }
    Volume<T> volume = Volume<T>::unfilled(grid(given, affine));
    std::copy_n(array.data(), volume.voxels(), volume.data());
    const auto is_finite = [](T value) { return std::isfinite(static_cast<double>(value)); };
    if (any || std::all_of(volume.begin(), volume.end(), is_finite)) return volume;
    throw InputError(name + ": it has voxels that are not finite");
  }
  template <class T>
  void take(In from, In affine, const char* name, Volume<T>& to) const {
    if (!from.is_none()) to = volume<T>(from, affine, name, /*any=*/true);
  }
  /// Returns one image or a list of several.
  std::vector<Volume<float>> images(In from, In affine) const {
    if (!py::isinstance<py::list>(from)) return {volume<float>(from, affine, "image")};
    std::vector<Volume<float>> images;
    for (const py::handle& one : from) {
      images.push_back(volume<float>(py::reinterpret_borrow<py::object>(one), affine, "image"));
    }
    return images;
  }

  py::array_t<double> signs() const {
    return py::array_t<double>(py::cast(std::array{sign(0), sign(1), sign(2)}));
  }
  /// Vertices and faces.
  py::tuple python(const Mesh& mesh) const {
    const std::array vertices{mesh.vertices_mm.size(), size_t{3}};
    const std::array faces{mesh.triangles.size(), size_t{3}};
    const auto* first = reinterpret_cast<const double*>(mesh.vertices_mm.data());
    const auto* corners = reinterpret_cast<const int32_t*>(mesh.triangles.data());
    return py::make_tuple(py::array_t<double>(vertices, first) * signs(),
                          py::array_t<int32_t>(faces, corners));
  }
  Mesh mesh(In from, const std::string& name) const {
    constexpr int kRows = py::array::c_style | py::array::forcecast;
    const auto [at, corners] = from.cast<std::pair<py::array, py::array>>();
    const py::array_t<double, kRows> vertices(at * signs());
    const py::array_t<int32_t, kRows> faces(corners);
    const int64_t count = vertices.size() / 3;
    const auto* first = reinterpret_cast<const Vec3d*>(vertices.data());
    const auto* triangle = reinterpret_cast<const Vec3i*>(faces.data());
    const auto is_vertex = [&](int32_t v) { return v >= 0 && v < count; };
    const auto is_near = [](double mm) { return std::abs(mm) < kFarthestMm; };
    if (faces.ndim() != 2 || faces.shape(1) != 3 || vertices.ndim() != 2 ||
        !std::all_of(vertices.data(), vertices.data() + vertices.size(), is_near) ||
        !std::all_of(faces.data(), faces.data() + faces.size(), is_vertex)) {
      throw InputError(name + ": needed are vertices [N, 3] and faces [M, 3] of their numbers");
    }
    return {{first, first + count}, {triangle, triangle + faces.size() / 3}};
  }

  /// Half a turn about z leads from LPS to RAS, and back.
  Pose turned(const Pose& pose) const {
    if (frame == Frame::kLps) return pose;
    const Vec3d& at = pose.centre_mm;
    return {{-at.x, -at.y, at.z}, canonical(Quaternion{0, 0, 0, 1} * pose.rotation), pose.edges_mm};
  }
  py::dict python(const DetectedPose& found) const {
    py::dict out("name"_a = found.name, "status"_a = found.status,
                 "confidence"_a = number_of(found.confidence), **dict_of(found.figures));
    if (!found.has_pose) return out;
    const auto [at, q, size] = turned(found.pose);
    out["center_mm"] = py::make_tuple(at.x, at.y, at.z);
    out["quaternion_wxyz"] = py::make_tuple(q.w, q.x, q.y, q.z);
    out["size_mm"] = py::make_tuple(size.x, size.y, size.z);
    return out;
  }
  /// None without a pose.
  std::optional<Pose> pose(In from) const {
    if (from.is_none() || !from.contains("center_mm")) return {};
    const auto at = from["center_mm"].cast<std::array<double, 3>>();
    const auto q = from["quaternion_wxyz"].cast<std::array<double, 4>>();
    const auto size = from["size_mm"].cast<std::array<double, 3>>();
    const Pose pose{{at[0], at[1], at[2]}, {q[0], q[1], q[2], q[3]}, {size[0], size[1], size[2]}};
    check_pose(pose, "the pose");
    return turned(pose);
  }
};

template <class T>
Field<T> key(const char* name, T& value) {
  return {name, value, ""};
}
template <class T>
void add(config::Node& all, const Field<T>& field) {
  all.members.push_back(config::detail::describe_field(field));
}
template <class T>
void add(config::Node& all, T& part) requires config::HasFields<T> {
  for (const config::Node& member : config::describe(part).members) all.members.push_back(member);
}
/// Reads the keys of a call: those of the dict or the file `config`, and then the others. Parts are
/// structs with fields(), and fields.
template <class... Parts>
void read_keys(const char* function, const py::kwargs& given, Parts&&... parts) {
  config::Node all;
  (add(all, parts), ...);
  const py::dict keys(**given);
  const py::object config = keys.attr("pop")("config", py::dict());
  const bool is_file = py::isinstance<py::str>(config);
  const std::string source = is_file ? config.cast<std::string>() : "config";
  config::from_json(all, is_file ? config::parse_file(source) : json_of(config, source), source);
  config::from_json(all, json_of(keys, function), function);
}

// Errors.

/// The classes by their codes; the first is the base of the others.
constexpr std::pair<ExitCode, const char*> kErrors[] = {
    {ExitCode::kBug, "Error"},          {ExitCode::kUsage, "UsageError"},
    {ExitCode::kInput, "InputError"},   {ExitCode::kDevice, "DeviceError"},
    {ExitCode::kMemory, "MemoryError"}, {ExitCode::kOutput, "OutputError"}};

void add_errors(py::module_& m) {
  PyObject* base = PyExc_Exception;
  for (const auto& [code, name] : kErrors) {
    const py::dict members("exit_code"_a = static_cast<int>(code));
    const std::string full = std::string("larch.") + name;
    m.attr(name) =
        py::reinterpret_steal<py::object>(PyErr_NewException(full.c_str(), base, members.ptr()));
    base = m.attr("Error").ptr();
  }
}

/// Returns the messages of an exception and of those nested in it; `code`: of the outermost that
/// has one.
std::string text_of(const std::exception& e, ExitCode& code) {
  if (const auto* error = dynamic_cast<const Error*>(&e); error != nullptr && code == ExitCode{}) {
    code = error->code();
  }
  try {
    std::rethrow_if_nested(e);
  } catch (const std::exception& cause) {
    return std::string(e.what()) + "\ncaused by: " + text_of(cause, code);
  }
  return e.what();
}

void translate(std::exception_ptr error) {
  ExitCode code{};
  try {
    std::rethrow_exception(std::move(error));
  } catch (const Error& e) {
    const std::string text = text_of(e, code);
    const char* name = kErrors[0].second;
    for (const auto& [known, its] : kErrors) name = known == code ? its : name;
    PyErr_SetString(py::module_::import("larch").attr(name).ptr(), text.c_str());
  }
}

// Models and files.

/// A model with the device that it is on.
struct Opened {
  Model model;
  Device device;
};

Opened open(Path path, const py::kwargs& given) {
  Call call;
  NetworkConfig config;
  read_keys("open_model", given, config, key("device", call.device));
  const Device device = choose_device(call.device);
  const auto work = [&](const Context&) { return open_model(path, {}, device, config); };
  return {call.run(device, work), device};
}

py::list structures_in(const Opened& opened) {
  return list_of(opened.model.structures(), [](const LabelEntry& entry) {
    return py::dict("value"_a = entry.value, "name"_a = entry.name,
                    "rgb"_a = py::make_tuple(entry.rgb[0], entry.rgb[1], entry.rgb[2]));
  });
}

py::tuple read_image(Path path, const py::kwargs& given) {
  Call call;
  ReadOptions options;
  bool labels = false;
  read_keys("read_image", given, call, key("labels", labels), key("number", options.frame),
            key("nan_value", options.nan_value), key("series_uid", options.series_uid),
            key("allow", options.allow));
  const auto read = [&](auto&& reader) {
    auto volume = call.run({}, [&](const Context& context) {
      options.warn = [&](const std::string& text) { context.warn(text); };
      return reader(path, options);
    });
    const py::object affine = call.affine(volume.grid());
    return py::make_tuple(array_of(std::move(volume)), affine);
  };
  return labels ? read(read_labels) : read(read_volume<float>);
}

template <class T>
void write_as(Path path, In array, In affine, const Call& call) {
  const Volume<T> volume = call.volume<T>(array, affine, "array", /*any=*/true);
  call.run({}, [&](const Context& context) { write_volume(path, volume, context.threads); });
}
void write_image(Path path, In array, In affine, const py::kwargs& given) {
  Call call;
  read_keys("write_image", given, call);
  const std::string kind = py::str(array_in(array, "array").dtype());
  const auto write = kind == "bool" || kind == "uint8" ? write_as<uint8_t>
                     : kind == "uint16"                ? write_as<uint16_t>
                     : kind == "int16"                 ? write_as<int16_t>
                     : kind[0] == 'f'                  ? write_as<float>
                                                       : write_as<int32_t>;
  write(path, array, affine, call);
}
void write_labels(Path path, In from, In affine, const std::optional<Opened>& model,
                  const py::kwargs& given) {
  Call call;
  read_keys("write_labels", given, call);
  const LabelVolume labels = call.volume<int32_t>(from, affine, "labels");
  const LabelTable table = model ? model->model.structures() : LabelTable{};
  call.run({}, [&](const Context& c) { write_labelmap(path, labels, table, c.threads); });
}
py::tuple read_mesh_from(Path path, const py::kwargs& given) {
  Call call;
  read_keys("read_mesh", given, call);
  return call.python(read_mesh(path));
}
void write_mesh_to(Path path, In mesh, const py::kwargs& given) {
  Call call;
  read_keys("write_mesh", given, call);
  write_mesh(path, call.mesh(mesh, "mesh"));
}

// Detection.

py::dict detect_in(const Opened& opened, In image, In affine, In region, const py::kwargs& given) {
  Call call;
  DetectRequest request;
  read_keys("detect", given, request.config, call, key("labels", request.labels),
            key("probability", request.probability), key("surfaces", request.surfaces),
            key("distribution", request.distribution), key("leaves", request.leaves),
            key("memory_bytes", request.memory_bytes));
  auto images = call.images(image, affine);
  call.take(region, affine, "region", request.region);
  Detection found = call.run(opened.device, [&](const Context& context) {
    return detect(opened.model, std::move(images), request, context);
  });
  const auto to_array = [](auto& volume) { return array_of(std::move(volume)); };
  return py::dict(
      "labels"_a = to_array(found.labels), "probability"_a = to_array(found.probability),
      "surfaces"_a = list_of(found.surfaces, [&](const Mesh& mesh) { return call.python(mesh); }),
      "distribution"_a = list_of(found.distribution, to_array),
      "leaves"_a = list_of(found.leaves, to_array), "voxels"_a = found.voxels,
      "threshold"_a = found.threshold, "seconds"_a = dict_of(found.seconds));
}

py::dict find_poses_in(const Opened& opened, In image, In affine, const py::kwargs& given) {
  Call call;
  bool labels = false;
  read_keys("find_poses", given, call, key("labels", labels));
  auto volume = call.volume<float>(image, affine, "image");
  LabelVolume boxes;
  const FoundPoses found = call.run(opened.device, [&](const Context& context) {
    const Grid grid = volume.grid();
    FoundPoses poses = find_poses(opened.model, std::move(volume), context);
    if (labels) boxes = label_boxes(poses, grid, context.threads);
    return poses;
  });
  const auto to_python = [&](const DetectedPose& pose) { return call.python(pose); };
  return py::dict("poses"_a = list_of(found.poses, to_python), "parents"_a = found.parents,
                  "labels"_a = array_of(std::move(boxes)), "seconds"_a = dict_of(found.seconds));
}

py::dict refine_boundary_in(const Opened& opened, In image, In affine, In pose, In labels,
                            In labels_affine, In mesh, const py::kwargs& given) {
  Call call;
  BoundaryStart start;
  read_keys("refine_boundary", given, call, key("structure", start.structure));
  start.pose = call.pose(pose);
  LabelVolume map;
  call.take(labels, labels_affine.is_none() ? affine : labels_affine, "labels", map);
  if (!mesh.is_none()) start.mesh = call.mesh(mesh, "mesh");
  if (start.pose.has_value() + !map.empty() + !start.mesh.triangles.empty() != 1) {
    throw UsageError("a refinement starts from one of pose, labels and mesh");
  }
  auto volume = call.volume<float>(image, affine, "image");
  RefinedBoundary found = call.run(opened.device, [&](const Context& context) {
    if (!map.empty()) start.pose = pose_of_labels(opened.model, start.structure, map, "labels");
    return refine_boundary(opened.model, std::move(volume), start, context);
  });
  const auto count = static_cast<int64_t>(found.probability.size());
  return py::dict("mesh"_a = call.python(found.mesh), "start"_a = call.python(found.start),
                  "probability"_a = array_over(std::move(found.probability), {count}),
                  "displacement_mm"_a = array_over(std::move(found.displacement_mm), {count}),
                  "status"_a = found.status,
                  "confidence"_a = number_of(found.confidence < 0 ? NAN : found.confidence),
                  "without_boundary"_a = found.without_boundary,
                  "flipped_triangles"_a = found.flipped_triangles,
                  "volume_mm3"_a = found.volume_mm3, "area_mm2"_a = found.area_mm2,
                  "displacement_voxels"_a = found.displacement_voxels, "remark"_a = found.remark,
                  "seconds"_a = dict_of(found.seconds));
}

// Level sets.

void add_seeds(const Numbers& spheres, const Numbers& windows, const Call& call,
               levelset::SegmentRequest& request) {
  for (const std::vector<double>& s : spheres) {
    if (s.size() != 4 && s.size() != 5) throw UsageError("a sphere has 4 numbers, or a label too");
    const auto label = static_cast<int32_t>(s.size() == 5 ? s[4] : 1);
    (label == 0 ? request.background : request.spheres)
        .push_back({{call.sign(0) * s[0], call.sign(1) * s[1], s[2]}, s[3], false, label});
  }
  for (const std::vector<double>& w : windows) {
    if (w.size() != 3) throw UsageError("a window is [label, lower, upper]");
    request.windows.push_back({static_cast<int32_t>(w[0]), w[1], w[2]});
  }
}

py::dict segment(In image, In affine, In labels, In phi_mm, In speed, In mask, In frozen,
                 const py::kwargs& given) {
  Call call;
  levelset::SegmentRequest request;
  Numbers spheres, windows;
  read_keys("segment", given, request.config, call, key("device", call.device),
            key("sphere_mm", spheres), key("window", windows),
            key("initial_level_mm", request.initial_level_mm),
            key("arrival_mm", request.arrival_mm), key("surfaces", request.wants_surface));
  request.image = call.volume<float>(image, affine, "image", /*any=*/true);
  add_seeds(spheres, windows, call, request);
  call.take(labels, affine, "labels", request.initial_labels);
  if (!phi_mm.is_none())
    call.take(phi_mm, affine, "phi_mm", request.initial_phi.emplace_back().phi_mm);
  call.take(speed, affine, "speed", request.speed);
  call.take(mask, affine, "mask", request.mask);
  call.take(frozen, affine, "frozen", request.frozen);
  auto found = call.run(choose_device(call.device), [&](const Context& context) {
    return levelset::segment(request, context);
  });
  const auto surface_of = [&](const Volume<float>& surface) -> py::object {
    if (surface.empty()) return py::none();
    return call.python(levelset::surface_mesh(surface, call.thread_count()));
  };
  size_t place = 0;
  const auto to_python = [&](levelset::LabelResult& label) {
    const auto window = found.resolved.labels[place++].window.value_or(levelset::Window{NAN, NAN});
    return py::dict(
        "label"_a = label.label, "voxels"_a = label.voxels, "volume_ml"_a = label.volume_ml,
        "touches_border"_a = label.touches_border, "fills_body"_a = label.fills_body,
        "window"_a = py::make_tuple(number_of(window.lower), number_of(window.upper)),
        "phi_mm"_a = array_of(std::move(label.phi_mm)), "surface"_a = surface_of(label.surface));
  };
  return py::dict("labels"_a = array_of(std::move(found.labels)),
                  "by_label"_a = list_of(found.by_label, to_python),
                  "iterations"_a = found.progress.iterations, "warnings"_a = found.warnings,
                  "seconds"_a = dict_of(found.seconds));
}

// Evaluation.

py::dict scores_of(const StructureScores& structure) {
  py::dict out;
  for (const Score& score : structure.scores) out[score.name] = score.value;
  return out;
}

py::dict score_labels_of(In prediction, In reference, In affine, const py::kwargs& given) {
  Call call;
  LabelScoreConfig config;
  read_keys("score_labels", given, config, call);
  const auto found = call.volume<int32_t>(prediction, affine, "prediction");
  const auto truth = call.volume<int32_t>(reference, affine, "reference");
  py::dict out;
  for (const StructureScores& one :
       call.run({}, [&](const Context& c) { return score_labels(found, truth, config, c); })) {
    out[py::str(one.structure)] = scores_of(one);
  }
  return out;
}

py::dict score_mesh_of(In prediction, In reference, In affine, const py::kwargs& given) {
  Call call;
  std::vector<int> labels;
  read_keys("score_mesh", given, call, key("labels", labels));
  const Mesh found = call.mesh(prediction, "prediction");
  Mesh mesh;
  LabelVolume map;
  const bool is_mesh = py::isinstance<py::tuple>(reference);
  if (is_mesh) mesh = call.mesh(reference, "reference");
  if (!is_mesh) map = call.volume<int32_t>(reference, affine, "reference");
  return scores_of(call.run({}, [&](const Context& context) {
    return is_mesh ? score_mesh(found, mesh, context) : score_mesh(found, map, labels, context);
  }));
}

py::dict score_pose_of(In detected, In truth) {
  const Call call;
  const auto found = call.pose(detected), real = call.pose(truth);
  return scores_of(score_pose("", found ? &*found : nullptr, real ? &*real : nullptr));
}

// Angiography.

std::vector<uint8_t> region_of(In from, const Vec3i& size) {
  if (from.is_none()) return {};
  const auto inside = Call{}.volume<uint8_t>(from, py::none(), "region");
  if (inside.size() != size) throw InputError("region: it is not of the size of the images");
  return {inside.begin(), inside.end()};
}

/// Returns the images of a subtraction, [x, y, frame] or [x, y, z].
py::dict images_of(dsa::SubtractedFrames&& found, const Vec3i& size, const py::object& rows) {
  std::vector<float> field;
  for (const Vec3f& v : found.field_px) field.insert(field.end(), {v.x, v.y, v.z});
  const auto count = static_cast<int64_t>(found.validity.size()) / size.x / size.y;
  return py::dict("difference"_a = array_over(std::move(found.difference), {size.x, size.y, count}),
                  "validity"_a = array_over(std::move(found.validity), {size.x, size.y, count}),
                  "field_px"_a = array_over(std::move(field), {3, size.x, size.y, count}),
                  "frames"_a = rows);
}

py::dict row_of(const dsa::FrameRow& row) {
  py::dict blocks, rms;
  row.blocks.each([&](const char* name, int64_t count) { blocks[name] = count; });
  const double unit = 1 << dsa::kVectorBits;
  return py::dict("frame"_a = row.frame, "mask_frames"_a = row.mask_frames, "blocks"_a = blocks,
                  "similarity_before"_a = row.similarity_before,
                  "similarity_after"_a = row.similarity_after,
                  "longest_motion_px"_a = row.figures.field.longest_px,
                  "shift_px"_a = py::make_tuple(row.shift.x / unit, row.shift.y / unit),
                  "rms_uncorrected"_a = row.scores.uncorrected.rms,
                  "rms_shifted"_a = row.scores.shifted.rms, "rms"_a = row.scores.corrected.rms);
}

py::dict subtract_sequence_in(In sequence, In region, const py::kwargs& given) {
  Call call;
  dsa::SequenceRequest request;
  dsa::FrameSource& source = request.source;
  source.values.bits = 8;
  std::vector<int> mask_frames;
  read_keys("subtract_sequence", given, request.config, call, key("device", call.device),
            key("mask_frames", mask_frames), key("frames", request.wanted),
            key("choose_masks", request.chooses_masks), key("bits", source.values.bits),
            key("contrast_raises", source.values.is_inverted), key("scores", request.scores),
            key("find_shutter", request.finds_shutter), key("field", request.wants.field));
  const auto stored = call.volume<uint16_t>(sequence, py::none(), "sequence");
  const int32_t most = *std::max_element(stored.begin(), stored.end());
  while (most >> source.values.bits > 0) source.values.bits += 2;
  source.name = "the sequence";
  source.size = {stored.size().x, stored.size().y, 1};
  source.frames = stored.size().z;
  source.read = [&](int64_t first, int64_t count, std::span<uint16_t> to) {
    const auto pixels = static_cast<int64_t>(source.pixels());
    std::copy_n(stored.data() + first * pixels, count * pixels, to.data());
  };
  if (request.wanted.empty()) {
    request.wanted.resize(static_cast<size_t>(source.frames));
    std::iota(request.wanted.begin(), request.wanted.end(), 0);
  }
  request.region = region_of(region, source.size);
  request.finds_onset = mask_frames.empty();
  if (mask_frames.empty()) mask_frames = {request.wanted[0]};
  request.groups = {dsa::group_of_masks(mask_frames, request.wanted)};
  dsa::SubtractedFrames all;
  std::vector<dsa::FrameRow> rows;
  call.run(choose_device(call.device), [&](const Context& context) {
    const auto add = [](auto& to, const auto& some) {
      to.insert(to.end(), some.begin(), some.end());
    };
    const auto take = [&](std::span<const dsa::FrameRow> some, const dsa::SubtractedFrames& found) {
      add(rows, some);
      add(all.difference, found.difference);
      add(all.validity, found.validity);
      add(all.field_px, found.field_px);
    };
    return dsa::subtract_sequence(request, /*begin=*/{}, take, context);
  });
  return images_of(std::move(all), source.size, list_of(rows, row_of));
}

py::dict subtract_volume_in(In fill, In mask, In region, const py::kwargs& given) {
  Call call;
  dsa::VolumeRequest request{.fill_name = "fill", .mask_name = "mask"};
  read_keys("subtract_volume", given, request.config, call, key("device", call.device),
            key("field", request.wants_field));
  request.fill = call.volume<int32_t>(fill, py::none(), "fill");
  request.mask = call.volume<int32_t>(mask, py::none(), "mask");
  request.region = region_of(region, request.fill.size());
  return images_of(
      call.run(choose_device(call.device),
               [&](const Context& context) { return dsa::subtract_volume(request, context); }),
      request.fill.size(), py::none());
}

// Training.

struct TrainKeys : voxels::TrainConfig {
  hdn::HdnConfig hdn;
  boundary::BoundaryConfig boundary;
  template <class F>
  void fields(F&& f) {
    voxels::TrainConfig::fields(f);
    f(Field{"hdn", hdn, "with model hdn"}, Field{"boundary", boundary, "with model boundary"});
  }
};

/// Returns the cases of a sequence of dicts, which is asked for them one by one.
TrainingCases cases_of(In cases, const Call& call) {
  const auto with_case = [cases, &call](const auto& use) {
    return [cases, &call, use](size_t i) {
      const py::gil_scoped_acquire held;
      const py::dict c = cases[py::int_(i)];
      return use(c, call);
    };
  };
  const auto labels_of = [](const py::dict& c, const Call& call) {
    return call.volume<int32_t>(c["labels"], c["affine"], "labels");
  };
  TrainingCases out;
  for (size_t i = 0; i < py::len(cases); ++i) out.ids.push_back(std::to_string(i));
  out.labels = with_case(labels_of);
  out.grid = with_case([](const py::dict& c, const Call& call) {
    return call.images(c["image"], c["affine"]).at(0).grid();
  });
  out.read = with_case([labels_of](const py::dict& c, const Call& call) {
    const auto text = [&](const char* key) { return py::str(c.attr("get")(key, "")); };
    TrainingCase one{text("name"), call.images(c["image"], c["affine"])};
    if (c.contains("labels")) one.labels = labels_of(c, call);
    for (const auto& [name, pose] : py::dict(c.attr("get")("poses", py::dict()))) {
      const auto known = call.pose(py::reinterpret_borrow<py::object>(pose));
      if (known) one.poses[py::str(name)] = *known;
    }
    one.group = text("group");
    return one;
  });
  return out;
}

py::dict train(Path path, In cases, const std::optional<Opened>& network, const py::kwargs& given) {
  Call call;
  Trained kind = Trained::kVoxels;
  TrainKeys keys;
  TrainingRun run{.tool_version = LARCH_VERSION};
  read_keys("train", given, keys, call, key("device", call.device), key("model", kind),
            key("seed", call.seed), key("checkpoint", run.checkpoint), key("resume", run.resume),
            key("about", run.card));
  const TrainingCases all = cases_of(cases, call);
  const hdn::Model* known =
      network ? &opened_as<hdn::ResidentModel>(network->model, "a network").model : nullptr;
  const auto work = [&](const Context& context) {
    if (kind == Trained::kNetwork) return train_network(all, keys.hdn, keys, run, context);
    if (kind == Trained::kBoundary) {
      return train_boundary(all, keys.boundary, keys, known, run, context);
    }
    check_keys(keys);
    return train_trees(all, keys, run, context);
  };
  const TrainResult result = call.run(choose_device(call.device), work);
  write_model(path, *result.model);
  py::dict figures = dict_of(result.figures);
  figures["class_dice"] = dict_of(result.class_dice);
  return figures;
}

void describe_keys(const config::Node& node, const std::string& indent, std::string& text) {
  for (const config::Node& member : node.members) {
    const bool is_dict = member.kind == config::Kind::kObject;
    text += indent + member.key + ": " + member.help +
            (is_dict ? "; a dict of\n" : " (" + config::to_json(member).dump() + ")\n");
    describe_keys(member, indent + "    ", text);
  }
}

/// Defines a function. `doc` begins with its name; the keys of `config` are told after it.
template <class Config, class Function, class... Arguments>
void define(py::module_& m, const Config& config, Function function, const std::string& doc,
            Arguments&&... arguments) {
  std::string text = doc + "\n\nThese keys also as a dict or the name of a JSON file `config`:\n";
  describe_keys(config::describe(config), "  ", text);
  m.def(doc.substr(0, doc.find('(')).c_str(), function, arguments..., text.c_str());
}

constexpr const char* kDoc = R"(Finds structures in medical images, as the programs of Larch do.

Images and label maps are arrays of numpy in the order [x, y, z] (or [x, y]), of any type and
strides, with an affine of 4x4 numbers that leads from indices to mm. The frame of affines, meshes
and poses is RAS, as nibabel has it, or LPS with frame="LPS". Results are arrays [x, y, z] and dicts;
a mesh is a tuple of vertices [N, 3] in mm and faces [M, 3], counter-clockwise from outside; a pose is
a dict with center_mm, quaternion_wxyz (leads from the axes of the box to the world) and size_mm.

Settings are keyword arguments, named as the keys of the programs' JSON files; threads=0 takes all
processors; code=1 (scanner, or 2: aligned, ...) is that of the affine in NIfTI files. Results are the bytes of the programs, whatever the threads and the device.

Errors are UsageError (arguments), InputError (images, models), DeviceError, MemoryError and
OutputError, which are Error and have the exit_code of the programs. Python goes on in other threads
meanwhile. Ctrl-C stops a function at its next step. What is odd goes to the logger "larch".)";

}  // namespace
}  // namespace larch::python

PYBIND11_MODULE(larch, m) {
  using namespace larch;
  using namespace larch::python;
  using namespace py::literals;
  py::options options;
  options.disable_function_signatures();
  m.doc() = kDoc;
  m.attr("__version__") = LARCH_VERSION;
  add_errors(m);
  py::register_exception_translator(translate);
  py::class_<Opened>(m, "Model", "A model on its device, by open_model. Threads may share it.")
      .def_property_readonly(
          "structures", structures_in,
          "What it finds, in the order of results: dicts of value, name and rgb.")
      .def_property_readonly(
          "device", [](const Opened& o) { return to_string(o.device); }, "cpu or cuda:N.")
      .def_property_readonly(
          "components", [](const Opened& o) { return o.model.components(); },
          "The images that it takes together, by name; none: one image.");
  define(m, NetworkConfig{}, open, R"(open_model(path, device="auto", **keys) -> Model

Opens a file of pbt-train or train once, for as many images as wanted. device: cpu, cuda, cuda:N or
auto. Raises InputError for a file that is damaged or no model, and DeviceError.)",
         "path"_a);
  define(m, Call{}, read_image, R"(read_image(path, labels=False, **keys) -> (array, affine)

Reads NIfTI, NRRD, MetaImage, PNG, JPEG, TIFF, DICOM or a folder with a DICOM series as float32, with
labels=True as int32. number: which volume of a 4-D image, from 1; nan_value: in place of voxels that
are not finite; series_uid: of a folder with several; allow: a list of what is refused otherwise.)",
         "path"_a);
  define(m, Call{}, write_image, R"(write_image(path, array, affine, **keys)

Writes .nii, .nii.gz, .nrrd or .mha, a picture also .png or .tif: uint8, uint16, int16, int32 or
float32. Raises OutputError, and InputError for values beyond the type.)",
         "path"_a, "array"_a, "affine"_a);
  define(m, Call{}, write_labels, R"(write_labels(path, labels, affine, model=None, **keys)

Writes a label map with the smallest type that holds all labels, also those of the model.)",
         "path"_a, "labels"_a, "affine"_a, "model"_a = py::none());
  define(m, Call{}, read_mesh_from, R"(read_mesh(path, **keys) -> (vertices, faces)

Reads .vtk, .obj, .gii, .ply or .stl.)",
         "path"_a);
  define(m, Call{}, write_mesh_to, R"(write_mesh(path, mesh, **keys)

Writes .vtk, .obj, .ply, .stl (all in LPS mm) or .gii (RAS mm).)",
         "path"_a, "mesh"_a);
  define(m, DetectConfig{}, detect_in, R"(detect(model, image, affine, region=None, **keys) -> dict

Evaluates a model at every voxel of an image, or of a list of images of one grid, as pbt-detect does
(Birkbeck, Sofka, Zhou 2011; Sharp 2008). region: array of the image's size, 0 where nothing is looked
for. What is wanted: labels=True, probability=False (of the structures together), surfaces=False, of a
forest distribution=False (of each class) and leaves=False (of each tree). memory_bytes: of the
evaluation at most.

Returns labels (int32), probability (float32), distribution and leaves (lists of arrays), all [x, y, z];
surfaces: meshes of the structures together, then of each of several; voxels: of the structures;
threshold: of the probability; seconds. Raises UsageError for a model of another kind, InputError for
images that do not fit it, MemoryError.)",
         "model"_a, "image"_a, "affine"_a, "region"_a = py::none());
  define(m, Call{}, find_poses_in, R"(find_poses(model, image, affine, labels=False, **keys) -> dict

Finds all structures of a network in an image, as hdn-detect does (Sofka et al. 2010). Returns poses: a
list of dicts with name, status ("found", "uncertain", "not found", "skipped: ..."), confidence (0 to 1
or None), figures and, where one is found, the pose; parents: the place of another for each, or -1;
with labels=True labels: boxes by their place, from 1. Raises UsageError, InputError, MemoryError.)",
         "model"_a, "image"_a, "affine"_a);
  define(
      m, Call{}, refine_boundary_in,
      R"(refine_boundary(model, image, affine, pose=None, labels=None, labels_affine=None, mesh=None,
                **keys) -> dict

Draws the mean shape of a model to the boundary of its structure (of several the one that structure=""
names), as boundary-refine does, from a pose of find_poses, a label map (labels_affine: of another grid) or a mesh of an earlier refinement. Returns
mesh and start; by vertex probability of the boundary and displacement_mm (outwards positive); status
("found", "uncertain", "not found"), confidence or None, without_boundary (share of the vertices),
flipped_triangles, volume_mm3, area_mm2, displacement_voxels, remark. Raises InputError for a start outside of the image.)",
      "model"_a, "image"_a, "affine"_a, "pose"_a = py::none(), "labels"_a = py::none(),
      "labels_affine"_a = py::none(), "mesh"_a = py::none());
  define(m, levelset::LevelsetConfig{}, segment,
         R"(segment(image, affine, labels=None, phi_mm=None, speed=None, mask=None, frozen=None,
        **keys) -> dict

Structures grow from seeds until their surfaces are at rest, as by levelset-segment (Roberts et al.
2010). Seeds: sphere_mm=[[x, y, z, radius], ...], with a fifth number a label (1; 0: never inside); a
label map `labels`; phi_mm < initial_level_mm. speed: in place of intensities, positive is outwards;
mask: 0 is never inside; frozen: not 0 is never inside; window=[[label, lower, upper], ...];
arrival_mm: start from what a front reaches; surfaces=True: meshes. device="auto".

Returns labels, iterations, warnings and by_label: dicts of label, voxels, volume_ml, touches_border,
fills_body, window, phi_mm (negative inside) and surface. Raises UsageError for seeds outside of the
image, InputError where nothing is left to start from.)",
         "image"_a, "affine"_a, "labels"_a = py::none(), "phi_mm"_a = py::none(),
         "speed"_a = py::none(), "mask"_a = py::none(), "frozen"_a = py::none());
  define(m, LabelScoreConfig{}, score_labels_of,
         R"(score_labels(prediction, reference, affine, **keys) -> dict

Scores each label, and their union as "union", as evaluate does: dice, volumes in mm3, distances of the
surfaces in mm. NaN is what does not exist.)",
         "prediction"_a, "reference"_a, "affine"_a);
  define(m, Call{}, score_mesh_of, R"(score_mesh(prediction, reference, affine=None, **keys) -> dict

Scores a mesh against a mesh, which is a tuple, or against the surface of a label map with its affine,
whose `labels` count (none: all): distances in mm, and dice against a label map.)",
         "prediction"_a, "reference"_a, "affine"_a = py::none());
  m.def("score_pose", score_pose_of, R"(score_pose(detected, truth) -> dict

Compares poses of one frame; None: there is none. Gives centre_error_mm, line_error_mm,
rotation_error_deg, scale_error, box_iou, failure, missed and false_positive.)",
        "detected"_a, "truth"_a);
  define(m, dsa::DsaConfig{}, subtract_sequence_in,
         R"(subtract_sequence(sequence, region=None, **keys) -> dict

Moves the mask along with the patient and subtracts it from every contrast frame, as dsa-register does
(US 2008/0037845). sequence: whole numbers of 16 bits [x, y, frame], which is pixel_array.T of pydicom.
region: [x, y], where motion is searched. mask_frames=[...], from 0; none: the last frame before
contrast agent arrives. frames: those to subtract, or masks; none: all. choose_masks=True: each frame
gets the mask frames that it is most like. bits=8: stored at least; contrast_raises=False: values fall;
find_shutter=True: look for the collimator; scores=True: measure frames; field=True: motion of pixels.

Returns difference (int16) and validity (uint8: 0 valid, 1 beyond the mask, 2 saturated, 3 outside)
[x, y, frame]; field_px [2 of 3, x, y, frame] in pixels; frames: a dict of figures for each. Raises
InputError where no contrast agent is found, UsageError.)",
         "sequence"_a, "region"_a = py::none());
  define(m, dsa::DsaConfig{}, subtract_volume_in,
         R"(subtract_volume(fill, mask, region=None, field=False, **keys) -> dict

The same for two volumes [x, y, z] of whole numbers; contrast agent raises them.)",
         "fill"_a, "mask"_a, "region"_a = py::none());
  define(m, TrainKeys{}, train, R"(train(path, cases, network=None, **keys) -> dict

Trains a model as pbt-train does and writes it. cases: a sequence of dicts with image (or a list of
images), affine, labels (of the same grid) or, for model hdn, poses by name; also name, for messages,
and group: what makes cases alike. A sequence with __len__ and __getitem__ may read them when they are
asked for. model: "voxels" (boosting trees or a forest), "hdn" or "boundary", which takes a network to
start from; seed=0; checkpoint: a file that is written as the training goes; resume=True: go on from
it; about: name, licence and intended_use of the model; device="auto". Returns figures such as held_out_dice, and class_dice. Raises InputError for labels
that do not occur, UsageError, MemoryError.)",
         "path"_a, "cases"_a, "network"_a = py::none());
}

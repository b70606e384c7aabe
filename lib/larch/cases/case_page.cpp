// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/cases/case_page.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "larch/app/records/case_record.h"
#include "larch/config/json_text.h"
#include "larch/files/file.h"

namespace larch::cases {
namespace detail {
extern const char* const kPageTemplate;  // case_page.html, by the build
}
namespace {

using config::Json;
using larch::detail::text_at;
namespace fs = std::filesystem;

constexpr std::string_view kBeginning = "<!DOCTYPE html>\n<html lang=\"en\" data-larch=\"cases\">";
constexpr size_t kMostRuns = 30;  // that the page names

/// Escapes a text for the content of an element and for an attribute in double quotes. What is not
/// UTF-8 is replaced.
std::string escaped(const std::string& text) {
  static const std::map<char, const char*> kNames{
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
  std::string html;
  for (const char c : Json::parse(larch::detail::json_text(text)).get<std::string>()) {
    const auto name = kNames.find(c);
    const bool is_control = static_cast<unsigned char>(c) < 32 && c != '\n';
    html += name != kNames.end() ? name->second : std::string(1, is_control ? ' ' : c);
  }
  return html;
}

/// Returns the relative address of a file of the folder; empty of what does not lie in it.
std::string address_of(const std::string& name) {
  const fs::path path = fs::path(name).lexically_normal();
  if (path.empty() || path.is_absolute() || *path.begin() == "..") return "";
  std::string address;
  for (const char c : path.string()) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = std::isalnum(byte) || std::string_view("-._~/").find(c) < 5;
    char text[4] = {c};
    if (!is_plain) std::snprintf(text, sizeof text, "%%%02X", byte);
    address += text;
  }
  return address;
}

std::string link(const std::string& name) {
  const std::string address = address_of(name);
  return address.empty() ? "" : "<a href=\"" + address + "\">" + escaped(name) + "</a>\n";
}

bool is_colour(const std::string& text) {
  return text.size() == 7 && text[0] == '#' &&
         text.find_first_not_of("0123456789abcdefABCDEF", 1) == std::string::npos;
}

std::string figure_at(const Json& structure, const char* key, const char* before,
                      const char* after) {
  const auto found = structure.find(key);
  if (found == structure.end() || !found->is_number()) return "";
  const double value = found->get<double>();
  char text[32];
  std::snprintf(text, sizeof text, std::abs(value) < 1000 ? "%.3g" : "%.0f", value);
  return std::string(before) + text + after;
}

/// Returns the item of a structure: colour, name, volume, score and whatever else is said of it.
std::string structure_html(const Json& structure) {
  const std::string colour = text_at(structure, "Color"), status = text_at(structure, "Status");
  return "<li>" +
         (is_colour(colour) ? "<i style=\"background:" + colour + "\"></i>" : std::string()) +
         escaped(text_at(structure, "Name")) + figure_at(structure, "VolumeMl", " <b>", " ml</b>") +
         figure_at(structure, "Dice", " Dice ", "") +
         (status.empty() ? "" : " " + escaped(status)) + "</li>\n";
}

/// Returns a list of items; nothing if there are none.
std::string list_html(const char* kind, const std::string& items) {
  return items.empty() ? "" : std::string("<ul class=\"") + kind + "\">\n" + items + "</ul>\n";
}

std::string cell_of(const PageCase& one, const std::string& column) {
  const auto found = one.cells.find(column);
  return found == one.cells.end() || found->second == kUnknown ? "" : found->second;
}

/// By what a case is the worse: the smaller, the earlier it stands.
std::vector<double> order_of(const PageCase& one) {
  constexpr double kLast = HUGE_VAL;
  const std::string status = cell_of(one, "status");
  std::vector<double> order{status == "failed" ? 0.0 : status == "rejected" ? 1.0 : 2.0};
  for (const auto& [column, sign] :
       {std::pair("dice", 1.0), std::pair("confidence", 1.0), std::pair("found", 1.0),
        std::pair("uncertain", -1.0), std::pair("unreliable", -1.0)}) {
    const std::string cell = cell_of(one, column);
    const double value = cell.empty() ? kLast : sign * std::strtod(cell.c_str(), nullptr);
    order.push_back(std::isnan(value) ? kLast : value);
  }
  order.push_back(one.story.notes > 0 ? 0 : 1);
  return order;
}

std::string case_html(const PageCase& one, const std::vector<std::string>& columns) {
  const std::string status = escaped(cell_of(one, "status"));
  const std::string message = escaped(cell_of(one, "message"));
  std::string html = "<article data-status=\"" + status + "\">\n<div class=\"picture\">";
  html += one.story.picture.empty() ? "<p class=\"none\">no picture</p>" : one.story.picture;
  html += "</div>\n<div class=\"words\">\n<h2><span>" + escaped(cell_of(one, "id")) +
          "</span> <b class=\"status " + status + "\">" + status + "</b></h2>\n";
  if (!message.empty()) html += "<p class=\"message\">" + message + "</p>\n";
  html += one.story.words + "<dl>\n";
  for (const std::string& column : columns) {
    const std::string cell = escaped(cell_of(one, column));
    if (cell.empty() || column == "id") continue;
    // The structures say their volumes; the cases are sorted by those of one all the same.
    html += std::string(column.starts_with(kVolume) ? "<div hidden>" : "<div>") + "<dt>" +
            escaped(column) + "</dt><dd>" + cell + "</dd></div>\n";
  }
  html += "</dl>\n";
  if (!one.story.files.empty()) html += "<p class=\"files\">" + one.story.files + "</p>\n";
  return html + "</div>\n</article>\n";
}

/// Returns a button for all cases, whose status is "", and one for each status.
std::string counts_html(const std::vector<PageCase>& cases) {
  std::map<std::string, size_t> counts{{"", cases.size()}};
  for (const PageCase& one : cases) ++counts[escaped(cell_of(one, "status"))];
  std::string html;
  for (const auto& [status, count] : counts) {
    html += "<button data-status=\"" + status + "\" aria-pressed=\"" +
            (status.empty() ? "true\">all" : "false\">" + status) + " " + std::to_string(count) +
            "</button>";
  }
  return html;
}

/// Returns the commands that made the cases, each once.
std::string runs_html(const std::vector<PageCase>& cases) {
  std::map<std::string, size_t> runs;
  for (const PageCase& one : cases) ++runs[one.story.run];
  runs.erase("");
  std::string html;
  size_t further = runs.size();
  for (const auto& [run, count] : runs) {
    if (runs.size() - further == kMostRuns) break;
    html +=
        "<li>" + run + ": " + std::to_string(count) + (count == 1 ? " case" : " cases") + "</li>\n";
    --further;
  }
  const std::string others = "<li>and " + std::to_string(further) + " other commands</li>\n";
  return further > 0 ? html + others : html;
}

std::string column_buttons(const std::vector<std::string>& columns) {
  std::string html;
  for (const std::string& column : columns) {
    html += "\n<button data-column=\"" + escaped(column) + "\" aria-pressed=\"false\">" +
            escaped(column) + "</button>";
  }
  return html;
}

/// Puts texts in the places {{name}} of the page, which is gone through once: what a text holds
/// stays as it is.
std::string filled(std::string_view page, const std::map<std::string, std::string>& texts) {
  std::string all;
  for (size_t at = 0; at < page.size();) {
    const size_t begin = page.find("{{", at), end = page.find("}}", begin);
    all += page.substr(at, begin - at);
    if (end == std::string_view::npos) break;
    all += texts.at(std::string(page.substr(begin + 2, end - begin - 2)));
    at = end + 2;
  }
  return all;
}

}  // namespace

bool is_case_page(std::string_view text) {
  return text.starts_with(kBeginning);
}

bool is_picture(const CaseOutput& file) {
  constexpr std::array<const char*, 4> kEndings{".png", ".jpg", ".jpeg", ".gif"};
  if (file.role == "output" || file.role == "labelmap") return false;
  return std::ranges::count(kEndings, file_extension(file.path)) > 0;
}

CaseStory story_of(const Json& larch, const std::string& record) {
  CaseStory story;
  for (const Json& output : larch.value("Outputs", Json::array())) {
    const std::string name = text_at(output, "Name"), role = text_at(output, "Role");
    story.files += link(name);
    const std::string address = address_of(name);
    if (address.empty() || !story.picture.empty() || !is_picture({name, role})) continue;
    story.picture = "<a href=\"" + address + "\"><img src=\"" + address +
                    "\" loading=\"lazy\" alt=\"" + escaped(name) + "\"></a>";
  }
  story.files += link(record);
  std::string notes, structures;
  for (const Json& note : larch.value("Notes", Json::array())) {
    if (!note.is_string() || note == text_at(larch, "Reason")) continue;
    notes += "<li>" + escaped(note.get<std::string>()) + "</li>\n";
    ++story.notes;
  }
  for (const Json& one : larch.value("Structures", Json::array()))
    structures += structure_html(one);
  story.words = list_html("notes", notes) + list_html("structures", structures);
  const Json build = larch.value("Build", Json::object());
  story.run = escaped(text_at(larch, "App") + " " + text_at(build, "Version") + " (" +
                      text_at(build, "GitRevision") + ")") +
              " <code>" + escaped(text_at(larch, "CommandLine")) + "</code>";
  return story;
}

std::string case_page(const std::string& title, std::vector<std::string> columns,
                      std::vector<PageCase> cases) {
  std::ranges::stable_sort(cases, {}, order_of);
  std::erase_if(columns, [](const auto& name) { return name == "status" || name == "message"; });
  std::string articles;
  for (const PageCase& one : cases) articles += case_html(one, columns);
  return filled(detail::kPageTemplate, {{"title", escaped(title)},
                                        {"runs", runs_html(cases)},
                                        {"counts", counts_html(cases)},
                                        {"columns", column_buttons(columns)},
                                        {"cases", articles}});
}

}  // namespace larch::cases

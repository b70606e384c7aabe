// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "larch/app/outputs/outputs.h"
#include "larch/config/config.h"

// The page of a folder of results: one HTML file that needs neither a network nor a server. Its
// texts come from lists, file names and messages of errors: all of them are escaped.
namespace larch::cases {

/// The cell of a table that is not known.
inline constexpr const char* kUnknown = "n/a";
/// Begins the columns with the volumes of structures.
inline constexpr const char* kVolume = "volume_ml: ";

/// Tells whether a text is a page that this room has written.
bool is_case_page(std::string_view text);

/// Tells whether the page can show a file: .png, .jpg, .jpeg and .gif, but for label maps, which
/// are nearly black.
bool is_picture(const CaseOutput& file);

/// Holds the parts of a record that the page shows beside the row of status.tsv.
struct CaseStory {
  std::string picture{};  ///< HTML of the first picture; empty: there is none
  std::string words{};    ///< HTML of notes and structures
  std::string files{};    ///< HTML of the links to the files
  std::string run{};      ///< HTML of program, version and command
  int notes = 0;
};

/// `larch`: the object "Larch" of the record that has the name `record`, without folder. What is
/// not as records have it is left out.
CaseStory story_of(const config::Json& larch, const std::string& record);

/// A case of the page: its cells by column of status.tsv, and its story.
struct PageCase {
  std::map<std::string, std::string> cells;
  CaseStory story;
};

/// Returns the page. `columns`: those of status.tsv, in their order, id first. Cases stand in
/// order, but failed ones first, then rejected ones, then the worst by the scores that they have,
/// then those with notes.
std::string case_page(const std::string& title, std::vector<std::string> columns,
                      std::vector<PageCase> cases);

}  // namespace larch::cases

// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "larch/data/mesh.h"

namespace larch {

/// One row of a list of images. Paths are absolute or relative to the working folder, ready to
/// open.
struct Case {
  std::string id;  ///< column `id`, else the image's file name without folder and endings
  std::string image;
  std::string label;  ///< empty if the list has no label for this image
  /// The cells of all other columns by their names; of files, as they can be opened.
  std::map<std::string, std::string> further{};
  /// Names of the channels of a data set, of which none was chosen: their files are `image` and the
  /// cells image2, image3, ...; or they are the volumes of `image`.
  std::vector<std::string> channels{};
  /// The files of a DICOM series whose folder, the image, holds other files too.
  std::vector<std::string> files{};

  /// Returns the cell of a column, that of labels included; an empty one where there is none.
  std::string cell(const std::string& column) const {
    const auto found = further.find(column);
    return column == "label" ? label : found == further.end() ? "" : found->second;
  }
};

/// The column, where a program reads it, that chooses among the DICOM series of a folder.
inline constexpr const char* kSeriesColumn = "series";

/// The column with the true label map of a case.
inline constexpr const char* kReferenceColumn = "reference";

/// A column that a program knows, beside id, image and label.
struct CaseColumn {
  std::string name;
  bool is_file = false;       ///< relative to the list's folder
  bool required = false;      ///< the column has to be there, and no cell of it may be empty
  bool is_reference = false;  ///< results are scored against it; a file that is missing scores none
};

/// Holds what a program wants of a list.
struct CaseColumns {
  std::string image = "image";  ///< the name of this column
  std::string label = "label";  ///< the name of this column
  bool label_required = false;
  bool files_exist = true;  ///< false: files that are missing are not looked for yet
  std::vector<CaseColumn> more{};
};

/// Reads a list: a TSV, or a CSV if the path ends so, whose first line names the columns: `image`,
/// and optionally `label` and `id`, in any order (the first two may have other names), and those
/// that `columns` adds. What the program does not know is kept. Cells are without the blanks around
/// them; those of a CSV may stand in double quotes. A byte order mark, CR LF line ends and empty
/// lines are accepted. Paths are relative to the list's folder. Throws InputError, with the line
/// number: no text, no cases, a column that is missing or stands twice, a row with another number
/// of cells, a quote without an end, an empty cell that is required, a missing file (unless
/// columns.files_exist is false), ids that repeat.
std::vector<Case> read_case_list(const std::string& path, const CaseColumns& columns = {});

/// A table of texts whose first line names the columns.
struct Table {
  struct Row {
    int line = 0;                    ///< of the file, counted from 1
    std::vector<std::string> cells;  ///< one per column
  };
  std::string path;
  int header_line = 1;
  std::vector<std::string> columns;  ///< each once
  std::vector<Row> rows;

  bool has(const std::string& column) const {
    return std::ranges::find(columns, column) != columns.end();
  }
};

/// Reads a TSV or CSV as read_case_list does, of whatever columns.
Table read_table(const std::string& path);

/// Reads a table of labels: a TSV, or a CSV if the path ends so, with the column `index`, and
/// optionally `name`, `color` (#rrggbb) and the codes of what a label is and of its category:
/// code_scheme, code_value, code_meaning; category_scheme, category_value, category_meaning. What
/// is not given or "n/a" is empty, or black; other columns are passed over. Throws InputError, with
/// the line number: no table, no index, one that is no whole number or stands twice, a colour of
/// another form, a code that is incomplete or longer than the 16 characters that DICOM has.
LabelTable read_label_table(const std::string& path);

namespace io {

/// Throws InputError that names the line of a table.
[[noreturn]] void bad_line(const std::string& path, int line, const std::string& what);

/// Returns the path of a file that a list names, relative to the list's folder.
std::string beside(const std::string& list, const std::string& name);

}  // namespace io

}  // namespace larch

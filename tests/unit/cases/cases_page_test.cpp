// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/cases/case_page.h"
#include "larch/cases/status_table.h"
#include "larch/core/error.h"
#include "tests/unit/folder.h"

namespace larch::cases {
namespace {

using config::Json;
using test::content;
using test::Folder;

const std::vector<std::string> kColumns{"id", "status", "message", "seconds", "dice", "ended"};

bool holds(const std::string& page, const std::string& text) {
  return page.find(text) != std::string::npos;
}

void put_record(const Folder& folder, const std::string& id, const std::string& file,
                const std::string& ending = "") {
  const Json row{{"id", id}, {"status", ending.empty() ? "ok" : "failed"}, {"ended", "now"}};
  const Json outputs = Json::array({{{"Name", file}, {"Role", "qc"}}});
  const Json larch{{"App", "app"}, {"Status", "done"}, {"Row", row}, {"Outputs", outputs}};
  std::ofstream(folder / (id + ending + ".larch.json")) << Json{{"Larch", larch}}.dump(2);
}

TEST_CASE("failures stand first, then what was rejected, the worst score, and notes") {
  std::vector<PageCase> cases;
  for (const auto& [id, status, dice] :
       std::vector<std::array<const char*, 3>>{{"good", "ok", "0.95"},
                                               {"unscored", "ok", "n/a"},
                                               {"warned", "ok", "n/a"},
                                               {"bad", "ok", "0.2"},
                                               {"nothing", "rejected", "0"},
                                               {"broken", "failed", "n/a"}}) {
    cases.push_back({{{"id", id}, {"status", status}, {"dice", dice}}, {}});
  }
  cases[2].story.notes = 1;
  const std::string page = case_page("out", kColumns, cases);
  CHECK(is_case_page(page));
  size_t last = 0;
  for (const std::string id : {"broken", "nothing", "bad", "good", "warned", "unscored"}) {
    INFO(id);
    const size_t at = page.find("<h2><span>" + id + "</span>");
    CHECK((at != std::string::npos && at > last));
    last = at;
  }
  CHECK(holds(page, ">ok 4</button>"));
  CHECK_FALSE(holds(page, "n/a"));
}

TEST_CASE("hostile texts bring no element, attribute or address into the page; letters stay") {
  const std::string attack = "</script><img src=x onerror=alert(1)>\"'&{{cases}} ü脑";
  const Json larch{
      {"App", attack},
      {"Build", {{"Version", attack}}},
      {"CommandLine", attack},
      {"Notes", {attack, 7, nullptr}},
      {"Structures", {{{"Name", attack}, {"Color", "#00ff00;x:url(//a)"}, {"Dice", "0.5"}}, 3}},
      {"Outputs",
       {{{"Name", "../../etc/passwd.png"}},
        {{"Name", "/etc/passwd.png"}},
        {{"Name", "javascript:alert(1)//ü#?.png"}},
        9}}};
  PageCase one{{{"id", attack}, {"status", attack}, {"message", "\xff\x01"}, {attack, attack}},
               story_of(larch, attack + ".larch.json")};
  const std::string page = case_page(attack, {"id", "status", "message", attack}, {one});
  for (const char* text :
       {"<img src=x", "etc/passwd", "href=\"javascript:", "url(", "</script><"}) {
    INFO(text);
    CHECK_FALSE(holds(page, text));
  }
  CHECK(holds(page, "<img src=\"javascript%3Aalert%281%29/%C3%BC%23%3F.png\""));
  CHECK(holds(
      page,
      "<title>&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;{{cases}} ü脑<"));
  CHECK(holds(page, "<p class=\"message\">\xef\xbf\xbd </p>"));
  CHECK(one.story.notes == 1);
}

TEST_CASE("the page comes with the first picture, and then follows the records") {
  const Folder folder;
  const std::string page = larch::detail::page_name(folder.string());
  put_record(folder, "plain", "plain.nii.gz");
  StatusTable table(folder.string(), kColumns);
  table.finish();
  CHECK_FALSE(std::filesystem::exists(page));
  put_record(folder, "shown", "shown.png");
  table.finish();
  CHECK(holds(content(page), "<span>plain</span>"));
  CHECK(holds(content(page), "<a href=\"shown.png\"><img src=\"shown.png\""));
  put_record(folder, "shown", "", ".failed");
  table.finish();
  CHECK(holds(content(page), ">failed 1</button>"));
  CHECK_FALSE(holds(content(page), "shown.png"));
  std::ofstream(page) << "<html>my site</html>";
  StatusTable(folder.string(), kColumns).finish();
  CHECK(content(page) == "<html>my site</html>");
  CHECK_THROWS_AS(StatusTable(folder.string(), kColumns, /*makes_pictures=*/true), OutputError);
}

}  // namespace
}  // namespace larch::cases

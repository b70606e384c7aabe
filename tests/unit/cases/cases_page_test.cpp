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

PageCase page_case(const std::string& id, const std::string& status, const std::string& dice,
                   int warnings = 0) {
  PageCase one{{{"id", id}, {"status", status}, {"dice", dice}}, {}};
  one.story.warnings = warnings;
  return one;
}

size_t place_of(const std::string& page, const std::string& id) {
  return page.find("<h2><span>" + id + "</span>");
}

bool holds(const std::string& page, const std::string& text) {
  return page.find(text) != std::string::npos;
}

void put_record(const Folder& folder, const std::string& id, const Json& outputs,
                const std::string& ending = "") {
  const Json row{{"id", id}, {"status", ending.empty() ? "ok" : "failed"}, {"ended", "now"}};
  const Json larch{{"App", "app"}, {"Status", "done"}, {"Row", row}, {"Outputs", outputs}};
  std::ofstream(folder / (id + ending + ".larch.json")) << Json{{"Larch", larch}}.dump(2);
}

TEST_CASE("failures stand first, then what was rejected, the worst score, and warnings") {
  const std::vector<PageCase> cases{page_case("good", "ok", "0.95"),
                                    page_case("unscored", "ok", "n/a"),
                                    page_case("warned", "ok", "n/a", 1),
                                    page_case("bad", "ok", "0.2"),
                                    page_case("nothing", "rejected", "0"),
                                    page_case("broken", "failed", "n/a")};
  std::vector<const PageCase*> all;
  for (const PageCase& one : cases) all.push_back(&one);
  const std::string page = case_page("out", kColumns, all);
  CHECK(is_case_page(page));
  size_t last = 0;
  for (const char* id : {"broken", "nothing", "bad", "good", "warned", "unscored"}) {
    INFO(id);
    const size_t at = place_of(page, id);
    REQUIRE(at != std::string::npos);
    CHECK(at > last);
    last = at;
  }
  CHECK(holds(page, "data-status=\"ok\" aria-pressed=\"false\">ok 4</button>"));
  CHECK(holds(page, "<dt>dice</dt><dd>0.2</dd>"));
  CHECK_FALSE(holds(page, "n/a"));
  CHECK_FALSE(holds(page, "{{"));
}

TEST_CASE("a hostile record puts no element, no attribute and no address outside into the page") {
  const std::string attack = "</script><img src=x onerror=alert(1)>\"'&{{cases}}";
  const Json larch{
      {"App", attack},
      {"Build", {{"Version", attack}}},
      {"CommandLine", attack},
      {"Notes", {attack, 7, nullptr}},
      {"Structures", {{{"Name", attack}, {"Color", "#00ff00;x:url(//a)"}, {"Dice", "0.5"}}, 3}},
      {"Outputs",
       {{{"Name", "../../etc/passwd.png"}},
        {{"Name", "/etc/passwd.png"}},
        {{"Name", "javascript:alert(1)//a.png"}},
        {{"Name", attack + ".gif"}},
        9}}};
  PageCase one{{{"id", attack}, {"status", attack}, {"message", attack}, {attack, attack}},
               story_of(larch, attack + ".larch.json")};
  const std::string page = case_page(attack, {"id", "status", "message", attack}, {&one});
  CHECK_FALSE(holds(page, attack.substr(0, 12) + "<"));
  CHECK_FALSE(holds(page, "<img src=x"));
  CHECK_FALSE(holds(page, "etc/passwd"));
  CHECK_FALSE(holds(page, "href=\"javascript:"));
  CHECK_FALSE(holds(page, "url("));
  CHECK(holds(page, "<img src=\"javascript%3Aalert%281%29/a.png\""));
  CHECK(holds(page, "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;{{cases}}"));
  CHECK(one.story.warnings == 1);
}

TEST_CASE("letters outside of ASCII stay, and what is no UTF-8 is replaced") {
  const Json larch{{"App", "app"}, {"Outputs", {{{"Name", "Fall ü#1?.png"}, {"Role", "qc"}}}}};
  const PageCase one{{{"id", "Fall ü#1?"}, {"status", "ok"}, {"message", "\xff\x01"}},
                     story_of(larch, "r.larch.json")};
  const std::string page = case_page("Größe 脑", kColumns, {&one});
  CHECK(holds(page, "<title>Größe 脑</title>"));
  CHECK(holds(page, "<img src=\"Fall%20%C3%BC%231%3F.png\""));
  CHECK(holds(page, "alt=\"Fall ü#1?.png\""));
  CHECK(holds(page, "<p class=\"message\">\xef\xbf\xbd </p>"));
}

TEST_CASE("structures have colour, volume and score; the picture is not the label map") {
  const Json larch = Json::parse(R"({"App": "pbt-detect", "Build": {"Version": "1.2"},
      "CommandLine": "pbt-detect --list a.tsv", "Notes": ["it touches the border"],
      "Structures": [{"Name": "liver", "Color": "#e63c32", "VolumeMl": 1512.34, "Dice": 0.9312}],
      "Outputs": [{"Name": "a.png", "Role": "output"}, {"Name": "a.tsv"},
                  {"Name": "a.qc.png", "Role": "qc"}]})");
  const CaseStory story = story_of(larch, "a.larch.json");
  CHECK(holds(story.words, "<i style=\"background:#e63c32\"></i>liver <b>1512 ml</b> Dice 0.931"));
  CHECK(holds(story.words, "<li>it touches the border</li>"));
  CHECK(holds(story.picture, "src=\"a.qc.png\""));
  CHECK(holds(story.files, "<a href=\"a.tsv\">a.tsv</a>"));
  CHECK(holds(story.files, "<a href=\"a.larch.json\">"));
  CHECK(story.run == "pbt-detect 1.2 <code>pbt-detect --list a.tsv</code>");
}

TEST_CASE("the page comes with the first picture, and then follows the records") {
  const Folder folder;
  const std::string page = page_name(folder.string());
  put_record(folder, "plain", Json::array({{{"Name", "plain.nii.gz"}, {"Role", "output"}}}));
  StatusTable table(folder.string(), kColumns);
  table.finish();
  CHECK_FALSE(std::filesystem::exists(page));
  put_record(folder, "shown", Json::array({{{"Name", "shown.png"}, {"Role", "qc"}}}));
  table.finish();
  CHECK(place_of(content(page), "plain") != std::string::npos);
  CHECK(holds(content(page), "no picture"));
  put_record(folder, "shown", Json::array(), ".failed");
  table.finish();
  CHECK(holds(content(page), "failed 1</button>"));
  CHECK_FALSE(holds(content(page), "shown.png"));
}

TEST_CASE("another index.html is never replaced, and a run with pictures says so") {
  const Folder folder;
  const std::string page = page_name(folder.string());
  std::ofstream(page) << "<html>my site</html>";
  put_record(folder, "a", Json::array({{{"Name", "a.png"}, {"Role", "qc"}}}));
  StatusTable(folder.string(), kColumns).finish();
  CHECK(content(page) == "<html>my site</html>");
  CHECK_THROWS_AS(StatusTable(folder.string(), kColumns, /*makes_pictures=*/true), OutputError);
}

}  // namespace
}  // namespace larch::cases

// The page that a search of the built site finds first: node search.js SITE WORDS...
// The site's own scripts run here, with as little of a browser as they need.
"use strict";
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const [site, ...searches] = process.argv.slice(2);
const sandbox = {
  document: { getElementById: () => null },
  SPHINX_HIGHLIGHT_ENABLED: false,
  _: (text) => text,
  _ready: () => {},
};
sandbox.window = sandbox;
vm.createContext(sandbox);
const read = (name) => fs.readFileSync(path.join(site, name), "utf8");
for (const name of ["base-stemmer.js", "english-stemmer.js", "language_data.js", "searchtools.js"])
  if (fs.existsSync(path.join(site, "_static", name)))
    vm.runInContext(read(path.join("_static", name)), sandbox);
vm.runInContext(read("searchindex.js"), sandbox);
sandbox.searches = searches;
const found = vm.runInContext(
  "searches.map((words) => Search._performSearch(...Search._parseQuery(words)).map((hit) => hit[0]))",
  sandbox,
);
for (const pages of found) console.log(pages.length ? pages[pages.length - 1] : "nothing");
if (process.env.SHOW) console.error(found.map((pages) => pages.slice(-6).reverse()));

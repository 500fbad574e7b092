// How results of the search are ordered: where words are on many pages, what explains comes first; where the query is a name, names do.
var FOLDERS = { start: 4, guides: 4, frameworks: 2, operate: 4, how: 1, "coming-from": -3, examples: -3, project: -5 };
var NAMED = /[._(]/.test(new URLSearchParams(location.search).get("q") ?? "");

var Scorer = {
  score: ([page, , , , score, , kind]) =>
    score + (kind === "object" ? (NAMED ? 20 : 0) : (FOLDERS[page.split("/")[0]] ?? 0)),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

// The sentences of the screen's scripts, which the page brings along in the reader's language: they are here without a
// connection. `touchstone.say("saved", { n: 3 })`. The first script: it makes the one name that all of them share.
"use strict";

const touchstone = (() => {
  const texts = JSON.parse(document.getElementById("judge-texts").textContent);
  const rules = new Intl.PluralRules(texts.language);
  const numbers = new Intl.NumberFormat(texts.language, { maximumFractionDigits: 1, useGrouping: false });
  // Which form belongs to a category of the language ("one", "few", "other") is read off the numbers that have it.
  const formOf = new Map();
  texts.form_of.forEach((form, n) => {
    if (!formOf.has(rules.select(n))) formOf.set(rules.select(n), texts.forms[form]);
  });

  function fill(text, values) {
    return text.replace(/%\((\w+)\)s/g, (_, name) => (typeof values[name] === "number" ? numbers.format(values[name]) : values[name]));
  }

  return {
    say: (name, values = {}) => fill(texts.plain[name], values),
    // A sentence that depends on a number: `n` chooses the form.
    count(name, n, values = {}) {
      const form = formOf.get(rules.select(n)) || texts.forms[texts.form_of[2]];
      return fill(form[name], { n, ...values });
    },
    // The screen's own words for a problem of the server's, by its type; the server's are English, for programs.
    refusal(type, status) {
      const [title, detail] = texts.refusals[type.split("/").pop()] || [touchstone.say("answered", { status }), ""];
      return { title, detail };
    },
  };
})();

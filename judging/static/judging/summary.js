// The session: a summary on request and at the end, and one quiet reminder to take a break.
"use strict";

touchstone.openSummary = ({ clock, waiting, breakMinutes, completion }) => {
  const byId = (id) => document.getElementById(id);

  function duration(minutes) {
    return minutes < 1 ? touchstone.say("less than a minute") : touchstone.count("minutes", Math.floor(minutes));
  }

  const rounded = (seconds) => (seconds < 10 ? Math.round(seconds * 10) / 10 : Math.round(seconds));

  function facts() {
    clock.count(false);
    const { judged, minutes, seconds } = clock.summary();
    const rows = [
      ["session judged", String(judged)],
      ["session time", duration(minutes)],
      ["session median", seconds === null ? touchstone.say("none yet") : touchstone.count("seconds", rounded(seconds))],
    ];
    const n = waiting();
    if (n) rows.push(["session unsent", touchstone.count("unsent", n)]);
    return rows.map(([name, value]) => [touchstone.say(name), value]);
  }

  function fill(list) {
    list.replaceChildren(...facts().flatMap(([term, value]) => ["dt", "dd"].map((name, index) => {
      const element = document.createElement(name);
      element.textContent = index ? value : term;
      return element;
    })));
  }

  byId("break-close").addEventListener("click", () => { byId("break-note").hidden = true; });
  if (completion && completion.url) {
    byId("completion").href = completion.url;
    byId("completion").hidden = false;
  }

  return {
    open() {
      fill(byId("summary-facts"));
      byId("summary").showModal();
    },
    atTheEnd: () => fill(byId("empty-facts")),
    remind() {
      clock.count(false);
      if (!clock.isTimeForBreak(breakMinutes)) return;
      byId("break-text").textContent = touchstone.say("break", { duration: duration(clock.summary().minutes) });
      byId("break-note").hidden = false;
    },
  };
};

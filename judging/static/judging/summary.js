// The session: a summary on request and at the end, and one quiet reminder to take a break.
"use strict";

touchstone.openSummary = ({ clock, waiting, breakMinutes, completion }) => {
  const byId = (id) => document.getElementById(id);

  function duration(minutes) {
    if (minutes < 1) return "less than a minute";
    const whole = Math.floor(minutes);
    return whole === 1 ? "1 minute" : `${whole} minutes`;
  }

  function facts() {
    clock.count(false);
    const { judged, minutes, seconds } = clock.summary();
    const rows = [
      ["Judged in this session", String(judged)],
      ["Active time", duration(minutes)],
      ["Usual time for one", seconds === null ? "none yet" : `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} seconds`],
    ];
    const n = waiting();
    if (n) rows.push(["Still to be sent", `${n}, kept in this browser`]);
    return rows;
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
      byId("break-text").textContent = `You have judged for ${duration(clock.summary().minutes)}. Rested eyes judge better.`;
      byId("break-note").hidden = false;
    },
  };
};
